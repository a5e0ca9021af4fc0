import type { Socket } from 'node:net'
import { MARK, nowMicros, numberOf, timeOf } from '../bench/message-stamp.ts'
import { request } from '../integration/http/raw-connection.ts'
import { handshake } from '../integration/http/raw-websocket-client.ts'
import { frame, opcodes } from '../integration/http/websocket-frames.ts'
import { objection } from '../support/message-validator.ts'
import { AnswerReader, type Carrier, call, FramesReader, LineReader, type Way } from './crowd-stream-readers.ts'
import type { TookOne } from './latency-recorder.ts'
import { type Kept, keptOf, orderOfPosition, type Story } from './received-history.ts'

/** What a connection says of itself, as far as anybody here looks at it. */
export type Said = {
  readonly type: string
  readonly req?: number
  readonly id?: string | null
  readonly reason?: string
  readonly resume?: string
  readonly code?: number
}

/** How a connection ended: a WebSocket's code, and the last word where there was one. */
export type Over = { readonly code: number | null; readonly bye: Said | null; readonly byUs: boolean }

type Asked = {
  readonly carrier: Carrier
  /** The selection; null for a WebSocket that will ask later. */
  readonly query: string | null
  readonly heartbeatS?: number
  /** Whether a position is said in a header, where the carrier has one. */
  readonly byHeader?: boolean
  readonly snapshot?: boolean
  readonly took?: TookOne
}

/** One connection of one of the crowd: what comes over it goes into the story. */
export class Connection {
  readonly socket: Socket
  readonly over: Promise<Over>
  readonly live: Promise<void>
  readonly #story: Story
  readonly #asked: Asked
  readonly #since: string | null
  readonly #watchers = new Set<(said: Said) => void>()
  #isLive: () => void = () => {}
  #bye: Said | null = null
  #code: number | null = null
  #byUs = false
  #lives = false

  constructor(way: Way, story: Story, asked: Asked) {
    this.#story = story
    this.#asked = asked
    this.#since = asked.query === null ? null : story.last
    this.socket = call(way)
    this.live = new Promise((resolve) => {
      this.#isLive = resolve
    })
    const body =
      asked.carrier === 'ws'
        ? new FramesReader({ text: this.#take, ping: this.#pong, close: this.#closed })
        : new LineReader(this.#take, asked.carrier)
    const answer = new AnswerReader(body, (head) => this.#story.fault(`was answered ${head.split('\r\n')[0]}`))
    this.socket.on('data', (bytes: Buffer) => {
      if (!this.#byUs) answer.read(bytes)
    })
    this.socket.on('end', () => this.socket.end())
    this.socket.on('error', () => this.socket.destroy())
    this.over = new Promise((resolve) => {
      this.socket.once('close', () => resolve({ code: this.#code, bye: this.#bye, byUs: this.#byUs }))
    })
    this.socket.write(this.#opening())
  }

  /** Says something over a WebSocket. */
  say(message: unknown): void {
    if (this.socket.writable) this.socket.write(frame({ payload: JSON.stringify(message) }))
  }

  /** Asks something over a WebSocket; the answer is taken as it comes. Resolves with it, or with the connection's end. */
  ask(
    message: { readonly req: number; readonly [field: string]: unknown },
    type: string,
    take: (answer: Said) => void,
  ): Promise<unknown> {
    const answered = new Promise<void>((resolve) => {
      const look = (said: Said) => {
        if (said.req !== message.req) return
        this.#watchers.delete(look)
        if (said.type === type) take(said)
        else this.#story.fault(`asked ${JSON.stringify(message)}, and heard ${JSON.stringify(said)}`)
        resolve()
      }
      this.#watchers.add(look)
    })
    this.say(message)
    return Promise.race([answered, this.over])
  }

  /** Leaves; nothing that comes from now on is heard. */
  leave(how: 'reset' | 'close' | 'half' | 'farewell'): Promise<Over> {
    if (how === 'reset' || how === 'close') this.#byUs = true
    if (how === 'reset') this.socket.resetAndDestroy()
    else if (how === 'close') this.socket.destroy()
    else if (how === 'farewell' && this.#asked.carrier === 'ws') {
      if (this.socket.writable) this.socket.write(frame({ opcode: opcodes.close, payload: Buffer.of(0x03, 0xe8) }))
    } else this.socket.end()
    return this.over
  }

  #opening(): string {
    const { carrier, query, heartbeatS, byHeader = false, snapshot = false } = this.#asked
    const isInHeader = byHeader && carrier !== 'ws'
    const parameters = new URLSearchParams(query ?? '')
    if (!snapshot) parameters.set('snapshot', 'false')
    if (heartbeatS) parameters.set('heartbeat', String(heartbeatS))
    if (this.#since !== null && !isInHeader) parameters.set('since', this.#since)
    if (carrier === 'ws') return handshake(`/v1/ws?${parameters}`)
    parameters.set('format', carrier === 'sse-named' ? 'sse' : carrier)
    if (carrier === 'sse-named') parameters.set('events', 'named')
    const header = this.#since !== null && isInHeader ? [`last-event-id: ${this.#since}`] : []
    return request(`GET /v1/stream?${parameters}`, header)
  }

  readonly #take = (message: Buffer): void => {
    if (this.#byUs) return
    if (this.#asked.carrier === 'text') return this.#story.read(message, this.#asked.query ?? '')
    const kept = keptOf(message)
    if (kept) {
      this.#story.hear(message, kept)
      if (kept.type === 'transfer') this.#time(message, kept)
      return
    }
    const said: Said = JSON.parse(message.toString())
    const wrong = objection(said)
    if (wrong !== null) this.#story.fault(`heard what is not as published: ${wrong}: ${message}`)
    this.#hear(said)
    for (const look of this.#watchers) look(said)
  }

  #time(message: Buffer, { order }: Kept): void {
    // What is told again was made while nobody was here.
    if (!this.#asked.took || !this.#lives) return
    const at = message.indexOf(MARK)
    if (at < 0) return
    this.#asked.took({ number: numberOf(message, at), order, micros: nowMicros() - timeOf(message, at) })
  }

  #hear(said: Said): void {
    const { query } = this.#asked
    if (said.type === 'gap') this.#story.fault(`lost something: ${JSON.stringify(said)}`)
    if (said.type === 'subscribed' && query !== null && said.req === undefined) {
      const asked = this.#since
      if (asked !== null && said.resume !== 'full')
        this.#story.fault(`asked for ${asked}, and was resumed ${said.resume}`)
      if (asked !== null && said.id !== asked) this.#story.fault(`asked for ${asked}, and is at ${said.id}`)
      if (asked === null && said.id) this.#story.begin(query, orderOfPosition(said.id))
    }
    if (said.type === 'bye') this.#bye = said
    // What an answer to a request names is where another selection begins: whoever asked takes it.
    if (said.id && said.req === undefined) this.#story.pass(said.id)
    if (said.type !== 'live') return
    this.#lives = true
    this.#isLive()
  }

  readonly #pong = (): void => {
    if (this.socket.writable) this.socket.write(frame({ opcode: opcodes.pong }))
  }

  readonly #closed = (payload: Buffer): void => {
    this.#code = payload.length < 2 ? 1_005 : payload.readUInt16BE(0)
    const reason = payload.toString('utf8', 2)
    const bye = this.#bye
    if (bye && reason !== `${bye.reason} ${bye.id}`) this.#story.fault(`was told ${bye.id}, and closed as ${reason}`)
    if (this.socket.writable) this.socket.end(frame({ opcode: opcodes.close, payload }))
  }
}
