import type { ServerResponse } from 'node:http'
import type { BlockList, Socket } from 'node:net'
import type { Duplex } from 'node:stream'
import { ByteBudget } from '../limits/byte-budget.ts'
import { networkAddressOf } from '../limits/client-address.ts'
import type { StreamServices } from '../live/edge-context.ts'
import { isTaken } from '../transport/socket-takeover.ts'

/** Limits of the bytes of untaken answers: in total, and of one client. A page of history has up to about 4 MiB. */
const [UNSENT_BOUND_BYTES, UNSENT_PER_CLIENT_BOUND_BYTES] = [256 * 2 ** 20, 64 * 2 ** 20]
const IDLE_CHECKS_PER_BOUND = 10

type UnsentAnswer = { readonly client: string; readonly bytes: number }

type TcpBounds = {
  /** A connection without a first request is closed after this time. */
  readonly idleBoundMs: number
  /** Limit of open connections. `maxPerAddress` is that of one address; for IPv6, a /64 network counts as one address. */
  readonly bound: number
  readonly maxPerAddress: () => number
  readonly trustedProxies: BlockList | undefined
  readonly countRefusal: StreamServices['countRefusal']
}

/** Keeps all connections of the port, because Node's server forgets those that became WebSockets or streams. */
export class TcpConnections {
  readonly #bounds: TcpBounds
  readonly #sockets = new Set<Socket>()
  readonly #countByNetwork = new Map<string, number>()
  /** Connections that have sent no request yet, oldest first, with the times at which they were accepted. */
  readonly #idleSince = new Map<Duplex, number>()
  readonly #idleTimer: NodeJS.Timeout
  readonly #pendingAnswers = new WeakMap<Duplex, number>()
  readonly #unsentBudget: ByteBudget
  readonly #unsent = new Map<Duplex, Map<ServerResponse, UnsentAnswer>>()
  readonly #remove: (this: Socket) => void

  constructor(bounds: TcpBounds, unsentBudget = new ByteBudget(UNSENT_BOUND_BYTES, UNSENT_PER_CLIENT_BOUND_BYTES)) {
    this.#bounds = bounds
    this.#unsentBudget = unsentBudget
    this.#idleTimer = setInterval(() => this.#closeIdle(), bounds.idleBoundMs / IDLE_CHECKS_PER_BOUND).unref()
    const remove = (socket: Socket) => this.#forget(socket)
    // All sockets share one function, because a function per socket would use memory as long as the client is connected.
    this.#remove = function onClose() {
      remove(this)
    }
  }

  /** Accepts a connection, or cuts it if its address has too many. At the total limit, cuts the oldest idle one or this one. */
  add(socket: Socket): void {
    const { bound, maxPerAddress, countRefusal } = this.#bounds
    const network = this.#networkOf(socket)
    const count = this.#countByNetwork.get(network) ?? 0
    const isFull = () => this.#sockets.size >= bound && !this.#cutOldestIdle()
    if ((network !== '' && count >= maxPerAddress()) || isFull()) {
      countRefusal('none')
      return void socket.destroy()
    }
    this.#sockets.add(socket)
    this.#countByNetwork.set(network, count + 1)
    socket.on('close', this.#remove)
    this.#idleSince.set(socket, performance.now())
  }

  #forget(socket: Socket): void {
    this.#sockets.delete(socket)
    this.#idleSince.delete(socket)
    const network = this.#networkOf(socket)
    const count = (this.#countByNetwork.get(network) ?? 0) - 1
    if (count > 0) this.#countByNetwork.set(network, count)
    else this.#countByNetwork.delete(network)
    for (const outgoing of this.#unsent.get(socket)?.keys() ?? []) this.#release(socket, outgoing)
  }

  /** Returns '' for a trusted proxy. Node keeps the address of a closed socket if it was read while the socket was open. */
  #networkOf({ remoteAddress = '' }: Socket): string {
    return networkAddressOf(remoteAddress, this.#bounds.trustedProxies)
  }

  /** Cuts the oldest connection without a request. Returns false if there is none. */
  #cutOldestIdle(): boolean {
    const [oldest] = this.#idleSince.keys()
    if (!oldest) return false
    this.#idleSince.delete(oldest)
    oldest.destroy()
    return true
  }

  /** Closes idle connections, in one interval for all: Node restarts the timeout of a single socket at every later write. */
  #closeIdle(): void {
    const now = performance.now()
    for (const [socket, since] of this.#idleSince) {
      if (now - since < this.#bounds.idleBoundMs) return
      this.#idleSince.delete(socket)
      socket.destroy()
    }
  }

  markUsed(socket: Duplex): void {
    this.#idleSince.delete(socket)
  }

  startAnswer(socket: Socket, outgoing: ServerResponse): void {
    this.markUsed(socket)
    if (isTaken(socket)) return
    this.#pendingAnswers.set(socket, (this.#pendingAnswers.get(socket) ?? 0) + 1)
    outgoing.once('close', () => {
      this.#pendingAnswers.set(socket, (this.#pendingAnswers.get(socket) ?? 1) - 1)
      if (outgoing.statusCode >= 400) this.#bounds.countRefusal(outgoing.statusCode)
    })
  }

  /** Counts the unsent bytes of a finished answer until the client has taken them. Cuts the connection if they are too many. */
  holdAnswer(socket: Socket, outgoing: ServerResponse, clientOf: () => string): void {
    const bytes = outgoing.writableLength
    const held = this.#unsent.get(socket) ?? new Map<ServerResponse, UnsentAnswer>()
    if (!outgoing.writableEnded || bytes === 0 || socket.destroyed || held.has(outgoing)) return
    const client = clientOf()
    if (!this.#unsentBudget.reserve(bytes, client)) return void socket.destroy()
    this.#unsent.set(socket, held.set(outgoing, { client, bytes }))
    outgoing.once('close', () => this.#release(socket, outgoing))
  }

  #release(socket: Duplex, outgoing: ServerResponse): void {
    const held = this.#unsent.get(socket)
    const answer = held?.get(outgoing)
    if (!held || !answer) return
    this.#unsentBudget.release(answer.bytes, answer.client)
    held.delete(outgoing)
    if (held.size === 0) this.#unsent.delete(socket)
  }

  isAnswering(socket: Duplex): boolean {
    return (this.#pendingAnswers.get(socket) ?? 0) > 0
  }

  /** Destroys the connections that never sent a byte, because Node does not count them as idle. */
  destroyUnused(): void {
    for (const socket of this.#sockets) if (socket.bytesRead === 0) socket.destroy()
  }

  destroyAll(): void {
    for (const socket of this.#sockets) socket.destroy()
  }

  close(): void {
    clearInterval(this.#idleTimer)
  }
}
