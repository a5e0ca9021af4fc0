import type { BlockList, Socket } from 'node:net'
import type { Duplex } from 'node:stream'
import { networkAddressOf } from '../limits/client-address.ts'
import { LocalCounts } from '../limits/usage-counts.ts'
import type { EdgeContext } from '../live/edge-context.ts'
import type { UnsentAnswers } from './unsent-answers.ts'

const IDLE_CHECKS_PER_BOUND = 10

type TcpBounds = {
  /** A connection without a first request is closed after this time. */
  readonly idleBoundMs: number
  /** Limit of open connections. `maxPerAddress` is that of one address; for IPv6, a /64 network counts as one address. */
  readonly bound: number
  readonly maxPerAddress: () => number
  readonly trustedProxies: BlockList | undefined
  readonly countRefusal: EdgeContext['countRefusal']
}

/** Keeps all connections of the port, because Node's server forgets those that became WebSockets or streams. */
export class TcpConnections {
  readonly #bounds: TcpBounds
  readonly #sockets = new Set<Socket>()
  readonly #byNetwork = new LocalCounts()
  /** Connections that have sent no request yet, oldest first, with the times at which they were accepted. */
  readonly #idleSince = new Map<Duplex, number>()
  readonly #idleTimer: NodeJS.Timeout
  readonly #answers: UnsentAnswers
  readonly #remove: (this: Socket) => void

  constructor(bounds: TcpBounds, answers: UnsentAnswers) {
    this.#bounds = bounds
    this.#answers = answers
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
    const isFull = () => this.#sockets.size >= bound && !this.#cutOldestIdle()
    if ((network !== '' && this.#byNetwork.count(network) >= maxPerAddress()) || isFull()) {
      countRefusal('none')
      return void socket.destroy()
    }
    this.#sockets.add(socket)
    this.#byNetwork.change(network, 1)
    socket.on('close', this.#remove)
    this.#idleSince.set(socket, performance.now())
  }

  #forget(socket: Socket): void {
    this.#sockets.delete(socket)
    this.#idleSince.delete(socket)
    this.#byNetwork.change(this.#networkOf(socket), -1)
    this.#answers.forget(socket)
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

  /** Node does not count connections that never sent a byte as idle. */
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
