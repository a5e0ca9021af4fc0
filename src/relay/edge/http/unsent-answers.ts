import type { ServerResponse } from 'node:http'
import type { Socket } from 'node:net'
import type { Duplex } from 'node:stream'
import { Budget } from '../limits/budget.ts'
import type { EdgeContext } from '../live/edge-context.ts'
import { isTaken } from '../transport/socket-takeover.ts'

/** Bytes of answers that wait for their clients: in total, and for one client. A page of history has up to four megabytes. */
const [BOUND_BYTES, PER_CLIENT_BOUND_BYTES] = [256 * 2 ** 20, 64 * 2 ** 20]

type UnsentAnswer = { readonly client: string; readonly bytes: number }

/** The answers that are not sent completely, by connection. */
export class UnsentAnswers {
  readonly #countRefusal: EdgeContext['countRefusal']
  readonly #budget: Budget
  readonly #pending = new WeakMap<Duplex, number>()
  readonly #held = new Map<Duplex, Map<ServerResponse, UnsentAnswer>>()

  constructor(countRefusal: EdgeContext['countRefusal'], budget = new Budget(BOUND_BYTES, PER_CLIENT_BOUND_BYTES)) {
    this.#countRefusal = countRefusal
    this.#budget = budget
  }

  start(socket: Socket, outgoing: ServerResponse): void {
    if (isTaken(socket)) return
    this.#pending.set(socket, (this.#pending.get(socket) ?? 0) + 1)
    outgoing.once('close', () => {
      this.#pending.set(socket, (this.#pending.get(socket) ?? 1) - 1)
      if (outgoing.statusCode >= 400) this.#countRefusal(outgoing.statusCode, outgoing.req)
    })
  }

  isAnswering(socket: Duplex): boolean {
    return (this.#pending.get(socket) ?? 0) > 0
  }

  /** Counts the unsent rest of a finished answer until the client has taken it. Cuts the connection if that is too much. */
  hold(socket: Socket, outgoing: ServerResponse, clientOf: () => string): void {
    const bytes = outgoing.writableLength
    const held = this.#held.get(socket) ?? new Map<ServerResponse, UnsentAnswer>()
    if (!outgoing.writableEnded || bytes === 0 || socket.destroyed || held.has(outgoing)) return
    const client = clientOf()
    if (!this.#budget.reserve(bytes, client)) return void socket.destroy()
    this.#held.set(socket, held.set(outgoing, { client, bytes }))
    outgoing.once('close', () => this.#release(socket, outgoing))
  }

  /** Releases the answers of a closed connection. */
  forget(socket: Socket): void {
    for (const outgoing of this.#held.get(socket)?.keys() ?? []) this.#release(socket, outgoing)
  }

  #release(socket: Duplex, outgoing: ServerResponse): void {
    const held = this.#held.get(socket)
    const answer = held?.get(outgoing)
    if (!held || !answer) return
    this.#budget.release(answer.bytes, answer.client)
    held.delete(outgoing)
    if (held.size === 0) this.#held.delete(socket)
  }
}
