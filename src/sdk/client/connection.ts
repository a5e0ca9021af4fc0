import type { Message } from '../generated/messages.ts'
import { type ConnectionEnd, endOf, type OpenConnection } from './connection-openers.ts'
import { errorOf, RelayError } from './http-requests.ts'
import type { StreamState, TransportName } from './stream-types.ts'

/** Network and clock of a connection: tests replace both. */
export type Environment = {
  readonly open: Readonly<Record<TransportName, OpenConnection>>
  /** If undefined, the connection uses a WebSocket, or SSE if a WebSocket does not open. */
  readonly transport: TransportName | undefined
  readonly now: () => number
  readonly random: () => number
  /** Calls `callback` once after `ms`. Returns a function that cancels the call. */
  readonly after: (ms: number, callback: () => void) => () => void
}

type ConnectionHandlers = {
  readonly query: () => URLSearchParams
  readonly onMessage: (message: Message) => void
  readonly onState: (change: Partial<StreamState>) => void
  /** Called if the relay would refuse each later attempt too: the connection stays closed. */
  readonly onRefusal: (refusal: RelayError) => void
}

const FIRST_MESSAGE_BOUND_MS = 10_000
/** Number of missed heartbeats after which the client reconnects. */
const MISSED_HEARTBEATS = 3
/** Average wait before the first new attempt. Each failure doubles it, up to `RETRY_BOUND_MS`. */
const RETRY_MS = 500
const RETRY_BOUND_MS = 30_000
const REQUESTED_WAIT_BOUND_MS = 3_600_000

/** Keeps one connection open. Closes it if the relay is silent, and reconnects as the close code requires. */
export class Connection {
  readonly #environment: Environment
  readonly #handlers: ConnectionHandlers
  #transport: TransportName
  #hasHello = false
  #attempts = 0
  #retryMs = 0
  #hasBye = false
  #lastMessageAt = 0
  #silenceMs = FIRST_MESSAGE_BOUND_MS
  #disconnect: () => void = () => {}
  #cancelTimer: () => void = () => {}

  constructor(environment: Environment, handlers: ConnectionHandlers) {
    this.#environment = environment
    this.#handlers = handlers
    this.#transport = environment.transport ?? 'websocket'
  }

  open(): void {
    this.close()
    this.#hasHello = false
    this.#retryMs = 0
    this.#hasBye = false
    this.#silenceMs = FIRST_MESSAGE_BOUND_MS
    this.#lastMessageAt = this.#environment.now()
    this.#handlers.onState({ phase: 'connecting', transport: this.#transport, retryMs: null, attempts: this.#attempts })
    this.#watch()
    let isCurrent = true
    const close = this.#environment.open[this.#transport](this.#handlers.query(), {
      onMessage: (text) => isCurrent && this.#receive(text),
      onRetry: (ms) => {
        if (isCurrent) this.#retryMs = ms
      },
      onEnd: (end) => isCurrent && this.#end(end),
    })
    this.#disconnect = () => {
      isCurrent = false
      close()
    }
  }

  close(): void {
    this.#cancelTimer()
    this.#disconnect()
  }

  #receive(text: string): void {
    this.#lastMessageAt = this.#environment.now()
    let message: Message | null = null
    try {
      message = JSON.parse(text)
    } catch {
      // `message` stays null, and the connection ends below.
    }
    if (!message?.type) return this.#end({ reason: 'no message' })
    switch (message.type) {
      case 'hello':
        this.#hasHello = true
        if (message.heartbeat_s !== null) this.#silenceMs = MISSED_HEARTBEATS * 1_000 * message.heartbeat_s
        this.#handlers.onState({ phase: 'replaying' })
        break
      case 'heartbeat':
        this.#attempts = 0
        break
      case 'bye':
        this.#retryMs = message.retry_ms
        this.#hasBye = true
        break
      case 'error':
        return this.#end(endOf(errorOf(message.code, message)))
    }
    this.#handlers.onMessage(message)
  }

  /** Checks for silence with one timer, because a new timer for each message would be expensive. */
  #watch(): void {
    const leftMs = this.#lastMessageAt + this.#silenceMs - this.#environment.now()
    if (leftMs <= 0) return this.#end({ reason: 'the relay is silent' })
    this.#cancelTimer = this.#environment.after(leftMs, () => this.#watch())
  }

  #end({ code = 0, reason, refusal }: ConnectionEnd): void {
    this.close()
    if (refusal) return this.#handlers.onRefusal(refusal)
    if (code >= 4_000 && code < 4_100) return this.#handlers.onRefusal(new RelayError(code, reason.split(' ')[0] ?? '', reason))
    if (!this.#hasHello && !this.#environment.transport && code < 4_000) {
      // Tries SSE, since a proxy may block WebSockets. Only an HTTP answer contains the relay's reason for a refusal.
      const isBlocked = this.#transport === 'websocket'
      this.#transport = isBlocked ? 'sse' : 'websocket'
      if (isBlocked) return this.open()
    }
    // The relay spreads the clients to which it says bye itself. A further attempt needs a delay of its own.
    const backoffMs = this.#hasBye
      ? 0
      : Math.min(RETRY_MS * 2 ** this.#attempts, RETRY_BOUND_MS) * (0.5 + this.#environment.random())
    const waitMs = Math.round(Math.min(this.#retryMs, REQUESTED_WAIT_BOUND_MS) + backoffMs)
    this.#attempts += 1
    this.#handlers.onState({ phase: 'waiting', reason, retryMs: waitMs, attempts: this.#attempts })
    this.#cancelTimer = this.#environment.after(waitMs, () => this.open())
  }
}
