import type { Socket } from 'node:net'
import { setImmediate as nextTurn } from 'node:timers/promises'
import type { RawData } from 'ws'
import type { Attendance } from '../edge/limits/connections.ts'
import { type Line, WebSocketOutlet } from '../edge/transport/websocket-outlet.ts'
import { Refusal } from '../protocol/refusal.ts'
import { textOf } from './http.ts'
import { RpcConversation, type RpcHouse } from './socket-session.ts'

/** How large a message may be that asks something, and in how many packets it may come. */
export const RPC_MESSAGE_BOUND_BYTES = 131_072
export const RPC_CHUNKS_BOUND = 1_024
/** Signs of life asked for in one go; then whatever else is due has its turn. */
const BEATS_AT_ONCE = 250

const full = new Refusal(503, 'full', 'Too many are connected; come back later.')
const tooMany = new Refusal(429, 'too_many_connections', 'Too many connections come from your address; close some.')

type Options = RpcHouse & {
  readonly attendance: Attendance
  readonly count: { came(): void; went(): void }
}

/** Everybody who asks and listens over a WebSocket at `/rpc`. */
export class RpcLines {
  readonly #options: Options
  readonly #conversations = new Set<RpcConversation>()
  #beating = false

  constructor(options: Options) {
    this.#options = options
  }

  /** How many are connected now. */
  get present(): number {
    return this.#conversations.size
  }

  /** Why nobody else can come in from an address; null if there is room. */
  objection(address: string): Refusal | null {
    const objection = this.#options.attendance.objection(address)
    return objection === null ? null : objection === 'full' ? full : tooMany
  }

  welcome(line: Line, socket: Socket, address: string): void {
    const { attendance, count } = this.#options
    const outlet = new WebSocketOutlet(line, socket)
    const conversation = new RpcConversation(line, outlet, address, this.#options)
    this.#conversations.add(conversation)
    attendance.enter(conversation)
    count.came()
    const over = () => {
      conversation.over()
      if (!this.#conversations.delete(conversation)) return
      attendance.leave(conversation)
      count.went()
    }
    line.on('message', (data: RawData) => conversation.hear(textOf(data as Buffer)))
    line.on('ping', () => conversation.count())
    line.on('pong', () => {
      if (!outlet.answered()) conversation.count()
    })
    line.on('close', over)
    line.on('error', over)
  }

  /** Asks everybody for a sign of life. */
  async beat(): Promise<void> {
    if (this.#beating) return
    this.#beating = true
    try {
      let beats = 0
      for (const conversation of this.#conversations) {
        conversation.beat()
        beats += 1
        if (beats % BEATS_AT_ONCE === 0) await nextTurn()
      }
    } finally {
      this.#beating = false
    }
  }

  /** Sends everybody away. */
  drain(): void {
    for (const conversation of this.#conversations) conversation.part('going_away')
  }
}
