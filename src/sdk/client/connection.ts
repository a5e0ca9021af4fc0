import type { Message } from '../generated/messages.ts'
import type { OpenConnection } from './connection-openers.ts'
import { mayRetry, RelayError, type StocktapeError, shownError } from './errors.ts'
import type { Http } from './http-requests.ts'
import type { StreamState, TransportName } from './stream-types.ts'

/** Network and clock of a connection: tests replace both. */
export type Environment = {
  readonly open: Readonly<Record<TransportName, OpenConnection>>
  /** If undefined, the connection uses a WebSocket, or SSE if a WebSocket does not open. */
  readonly transport: TransportName | undefined
  readonly http: Pick<Http, 'probe' | 'isKnown' | 'errorOf' | 'retry'>
  /** Milliseconds that no step of the clock changes. */
  readonly now: () => number
  readonly wallTime: () => number
  readonly random: () => number
  /** Calls `callback` once after `ms`. Returns a function that cancels the call. */
  readonly after: (ms: number, callback: () => void) => () => void
}

type ConnectionHandlers = {
  readonly query: () => URLSearchParams
  readonly onMessage: (message: Message) => void
  readonly onState: (change: Partial<StreamState>) => void
  /** Called after each failure. If it `isFinal`, the connection stays closed. */
  readonly onError: (error: StocktapeError, isFinal: boolean) => void
}

const FIRST_MESSAGE_BOUND_MS = 10_000
/** Number of missed heartbeats after which the client reconnects. */
const MISSED_HEARTBEATS = 3
/** Average wait before the first new attempt. Each failure doubles it, up to `RETRY_BOUND_MS`. */
const RETRY_MS = 500
const RETRY_BOUND_MS = 30_000
const REQUESTED_WAIT_BOUND_MS = 3_600_000
/** Time after which the client asks whether there is a relay that has never answered. */
const PROBE_AFTER_MS = 500

/** Keeps one connection open. Closes it if the relay is silent, and reconnects as the close code requires. */
export class Connection {
  readonly #environment: Environment
  readonly #handlers: ConnectionHandlers
  #transport: TransportName
  #hasHello = false
  #attempts = 0
  /** Number of times that a connection was closed. */
  #closed = 0
  #retryMs = 0
  #hasBye = false
  #lastMessageAt = 0
  #silenceMs = FIRST_MESSAGE_BOUND_MS
  #disconnect: () => void = () => {}
  #cancelTimer: () => void = () => {}
  #cancelProbe: () => void = () => {}

  constructor(environment: Environment, handlers: ConnectionHandlers) {
    this.#environment = environment
    this.#handlers = handlers
    this.#transport = environment.transport ?? 'websocket'
  }

  open(): void {
    this.close()
    const { now, after, http, open } = this.#environment
    this.#hasHello = false
    this.#retryMs = 0
    this.#hasBye = false
    this.#silenceMs = FIRST_MESSAGE_BOUND_MS
    this.#lastMessageAt = now()
    this.#handlers.onState({ phase: 'connecting', transport: this.#transport, source: null, retryAt: null })
    this.#watch()
    if (!http.isKnown) this.#cancelProbe = after(PROBE_AFTER_MS, () => void this.#probe())
    const current = this.#closed
    this.#disconnect = open[this.#transport](this.#handlers.query(), {
      onMessage: (text) => current === this.#closed && this.#receive(text),
      onRetry: (ms) => {
        if (current === this.#closed) this.#retryMs = ms
      },
      onEnd: (error) => current === this.#closed && void this.#end(error),
    })
  }

  close(): void {
    this.#closed += 1
    this.#cancelProbe()
    this.#cancelTimer()
    this.#disconnect()
  }

  /** An unknown relay may be at another URL. A connection that only waits would not show it. */
  async #probe(): Promise<void> {
    const before = this.#closed
    const error = await this.#environment.http.probe()
    // A relay that only says when to ask again may yet accept the connection.
    if (error?.retryAfterMs === 0 && before === this.#closed && !this.#hasHello) this.#fail(error)
  }

  #receive(text: string): void {
    this.#lastMessageAt = this.#environment.now()
    let message: Message | null = null
    try {
      message = JSON.parse(text)
    } catch {
      // `message` stays null, and the connection ends below.
    }
    if (!message?.type) return void this.#end(this.#environment.http.errorOf('not_a_relay', text))
    switch (message.type) {
      case 'hello':
        this.#hasHello = true
        this.#environment.http.isKnown = true
        if (message.heartbeat_s !== null) this.#silenceMs = MISSED_HEARTBEATS * 1_000 * message.heartbeat_s
        this.#handlers.onState({ phase: 'replaying' })
        break
      case 'heartbeat':
        this.#attempts = 0
        this.#handlers.onState({ attempts: 0 })
        break
      case 'bye':
        this.#retryMs = message.retry_ms
        this.#hasBye = true
        break
      case 'error':
        return void this.#end(new RelayError(message.code, message, this.#retryMs))
    }
    this.#handlers.onMessage(message)
  }

  /** Checks for silence with one timer, because a new timer for each message would be expensive. */
  #watch(): void {
    const leftMs = this.#lastMessageAt + this.#silenceMs - this.#environment.now()
    if (leftMs <= 0) return void this.#end(this.#environment.http.errorOf('silent', null))
    this.#cancelTimer = this.#environment.after(leftMs, () => this.#watch())
  }

  async #end(error: StocktapeError): Promise<void> {
    this.close()
    const { transport, http } = this.#environment
    if (this.#hasHello || error instanceof RelayError) return this.#fail(error)
    // The end of a socket does not say why. If the relay answers a request, a proxy may block WebSockets.
    const before = this.#closed
    const found = await http.probe()
    if (before !== this.#closed) return
    if (found || transport || this.#transport === 'sse') return this.#fail(found ?? error)
    this.#transport = 'sse'
    this.open()
  }

  /** Waits for the next attempt, or gives up. */
  #fail(error: StocktapeError): void {
    this.close()
    const { transport, http, wallTime, random, after } = this.#environment
    if (!this.#hasHello) this.#transport = transport ?? 'websocket'
    if (!mayRetry(error, this.#attempts, http, Number.POSITIVE_INFINITY)) return this.#handlers.onError(error, true)
    // The relay spreads the clients to which it says bye itself. A further attempt needs a delay of its own.
    const backoffMs = this.#hasBye
      ? 0
      : Math.min(RETRY_MS * 2 ** this.#attempts, http.retry?.maxDelay ?? RETRY_BOUND_MS) * (0.5 + random())
    const askedMs = Math.max(this.#retryMs, error.retryAfterMs)
    const waitMs = Math.round(Math.min(askedMs, REQUESTED_WAIT_BOUND_MS) + backoffMs)
    this.#attempts += 1
    const retryAt = new Date(wallTime() + waitMs)
    this.#handlers.onState({ phase: 'waiting', source: null, error: shownError(error), retryAt, attempts: this.#attempts })
    this.#handlers.onError(error, false)
    this.#cancelTimer = after(waitMs, () => this.open())
  }
}
