import type { CloseReason } from '../../protocol/close-codes.ts'
import type { ByteBudget } from '../edge/limits/byte-budget.ts'
import { wsFrame, wsHeader } from '../edge/transport/encode-message.ts'
import type { ServerWebSocket, WebSocketOutlet } from '../edge/transport/websocket-outlet.ts'
import { answerBody, type Caller, type Reply, type RpcBackend } from './answer-rpc-body.ts'
import type { RateLimiter } from './rate-limiter.ts'
import { invalidParams, limitExceeded } from './rpc-error.ts'
import type { SubscriptionNotice } from './subscriptions/subscription-notice.ts'
import type { Subscriptions } from './subscriptions/subscriptions.ts'

/** Limit of messages of one connection that are answered at once. */
const IN_PROGRESS_BOUND = 16
/** Limit of the characters of waiting messages. The relay stops reading the connection while messages wait. */
const QUEUE_BOUND_CHARS = 524_288
const SUBSCRIPTIONS_BOUND = 100
/** Weight of a filter in addition to one for each address and topic. A filter without any has no weight. */
const FILTER_WEIGHT = 50
/** Limit of requests in a row that exceed the rate. Beyond it, the connection is closed. */
const OVER_RATE_BOUND = 1_000
/** Time for which a burst may exceed the limit of the backlog, since a disconnected subscriber cannot resume. */
const BURST_BOUND_MS = 1_000
/** Limit of the backlog during a burst, unless `maxBacklogBytes` is higher. */
const BURST_BOUND_BYTES = 8 * 2 ** 20
/** Limit of the time in which a client with a backlog reads nothing. Beyond it, the client is disconnected. */
const STALLED_BOUND_MS = 60_000

export type RpcSessionContext = {
  readonly backend: RpcBackend
  readonly subscriptions: Subscriptions
  readonly rates: RateLimiter
  readonly filterBudget: ByteBudget
  /** Counts the bytes of long answers that clients have not received yet. */
  readonly unsentBudget: ByteBudget
  readonly maxBacklogBytes: number
  readonly uptime: () => number
  readonly idPrefix: string
}

/** JSON-RPC over one WebSocket: calls, answers and subscriptions. */
export class RpcSession {
  readonly address: string
  readonly #context: RpcSessionContext
  readonly #webSocket: ServerWebSocket
  readonly #outlet: WebSocketOutlet
  /** Called once, as soon as the session ends. */
  readonly #onEnd: (reason: CloseReason | 'client') => void
  readonly #queue: string[] = []
  #queuedChars = 0
  #inProgress = 0
  readonly #closeById = new Map<string, () => void>()
  #lastId = 0
  #overRateCount = 0
  #isClosed = false
  #drainPromise: Promise<void> | null = null
  /** Position in the output up to which bytes are never overdue: a client may read a long answer slowly. */
  #graceUpTo = 0
  /** Time since which the client has had too many overdue bytes; null if it has not. */
  #behindSince: number | null = null
  #lastTakenBytes = 0
  #progressedAt: number
  readonly #caller: Caller

  constructor(
    webSocket: ServerWebSocket,
    outlet: WebSocketOutlet,
    address: string,
    context: RpcSessionContext,
    onEnd: (reason: CloseReason | 'client') => void,
  ) {
    this.address = address
    this.#onEnd = onEnd
    this.#context = context
    this.#webSocket = webSocket
    this.#outlet = outlet
    this.#progressedAt = context.uptime()
    this.#caller = {
      client: address,
      takeRate: (methods, prepaid = 0) => methods.map((method, index) => this.#takeRate(method, index < prepaid ? 1 : 0)),
      isLocal: (method) => method === 'eth_subscribe' || method === 'eth_unsubscribe',
      runLocal: (method, params) => (method === 'eth_subscribe' ? this.#subscribe(params) : String(this.#unsubscribe(params))),
      reserve: (bytes) => !this.#isClosed && this.#context.unsentBudget.reserve(bytes, this.address),
      hasHttpStatus: false,
    }
  }

  receive(text: string): void {
    if (this.#isClosed) return
    this.#queue.push(text)
    this.#queuedChars += text.length
    if (this.#queuedChars > QUEUE_BOUND_CHARS && this.#queue.length > 1) return this.close('too_many_messages')
    this.#answerNext()
  }

  /** Counts a ping or an unrequested pong as a request. */
  countControlFrame(): void {
    this.#takeRate('')
  }

  /** Pings the client, or disconnects it if it answered no ping or reads nothing. */
  heartbeat(): void {
    const { uptime } = this.#context
    const { backlog, takenBytes } = this.#outlet
    if (backlog === 0 || takenBytes !== this.#lastTakenBytes) this.#progressedAt = uptime()
    this.#lastTakenBytes = takenBytes
    if (uptime() - this.#progressedAt >= STALLED_BOUND_MS) this.close('too_slow')
    // A ping would wait behind the backlog, and a pong is not read while reading is paused.
    else if (backlog === 0 && !this.#webSocket.isPaused && this.#outlet.ping()) this.close('no_pong')
  }

  close(closeReason: CloseReason): void {
    if (this.#isClosed) return
    this.release(closeReason)
    this.#outlet.end(closeReason, null)
  }

  release(reason: CloseReason | 'client' = 'client'): void {
    if (this.#isClosed) return
    this.#isClosed = true
    this.#onEnd(reason)
    this.#queue.length = 0
    for (const close of this.#closeById.values()) close()
    this.#closeById.clear()
  }

  #answerNext(): void {
    while (this.#queue.length > 0 && this.#inProgress < IN_PROGRESS_BOUND && this.#hasReadEnough) {
      const text = this.#queue.shift() ?? ''
      this.#queuedChars -= text.length
      this.#inProgress += 1
      void this.#answer(text)
    }
    if (this.#isClosed) return
    const isQueued = this.#queue.length > 0
    if (isQueued && !this.#webSocket.isPaused) this.#webSocket.pause()
    if (!isQueued && this.#webSocket.isPaused) this.#webSocket.resume()
    // No answer in progress would start the next one, so the session continues when the backlog is sent.
    if (isQueued && this.#inProgress === 0) void this.#drained.then(() => this.#answerNext())
  }

  /** The next messages of a client wait until it has read most of its answers. */
  get #hasReadEnough(): boolean {
    return this.#outlet.backlog <= this.#context.maxBacklogBytes || !this.#outlet.willDrain
  }

  async #answer(text: string): Promise<void> {
    await answerBody(text, this.#context.backend, this.#caller, (answer) => this.#write(answer))
    this.#inProgress -= 1
    this.#answerNext()
  }

  #takeRate(method: string, prepaid = 0): boolean {
    const { rates, uptime } = this.#context
    const isAllowed = rates.take(this.address, [method], uptime(), prepaid) === 0
    this.#overRateCount = isAllowed ? 0 : this.#overRateCount + 1
    if (this.#overRateCount > OVER_RATE_BOUND) this.close('too_many_messages')
    return isAllowed
  }

  #subscribe(params: unknown): string {
    if (this.#isClosed) return 'null'
    if (this.#closeById.size >= SUBSCRIPTIONS_BOUND)
      throw limitExceeded(`a connection has at most ${SUBSCRIPTIONS_BOUND} subscriptions; end some`)
    this.#lastId += 1
    const id = this.#context.idPrefix + this.#lastId.toString(16).padStart(8, '0')
    const { subscriptions, filterBudget } = this.#context
    let weight = 0
    const releaseWeight = () => filterBudget.release(weight, this.address)
    const charge = (termCount: number): void => {
      const newWeight = termCount === 0 ? 0 : FILTER_WEIGHT + termCount
      if (!filterBudget.reserve(newWeight, this.address))
        throw limitExceeded('the filters of your address name too many addresses and topics; end some, or name fewer')
      weight = newWeight
    }
    try {
      const close = subscriptions.open(params, { id, notify: (notice) => this.#notify(id, notice) }, charge)
      this.#closeById.set(id, () => {
        close()
        releaseWeight()
      })
    } catch (failure) {
      releaseWeight()
      throw failure
    }
    return `"${id}"`
  }

  #unsubscribe(params: unknown): boolean {
    const [id] = Array.isArray(params) ? params : []
    if (typeof id !== 'string') throw invalidParams("params[0] must be a subscription's id")
    this.#closeById.get(id)?.()
    return this.#closeById.delete(id)
  }

  #notify(id: string, notice: SubscriptionNotice): void {
    if (this.#isClosed) return
    // No bytes are sent before the end of the turn of the event loop, so only the first write of a turn is checked.
    if (this.#outlet.cork() && this.#isTooSlow()) return this.close('too_slow')
    this.#outlet.write(notice.bytes(id, encodeFrame))
    const { takenBytes, backlog } = this.#outlet
    if (notice.isLate && backlog <= BURST_BOUND_BYTES) this.#graceUpTo = takenBytes + backlog
  }

  #isTooSlow(): boolean {
    const { maxBacklogBytes, uptime } = this.#context
    const overdue = this.#overdueBytes
    if (overdue <= maxBacklogBytes) this.#behindSince = null
    else this.#behindSince ??= uptime()
    const isBurst = this.#behindSince === null || uptime() - this.#behindSince < BURST_BOUND_MS
    return !isBurst || overdue > Math.max(maxBacklogBytes, BURST_BOUND_BYTES)
  }

  get #overdueBytes(): number {
    const { backlog, takenBytes } = this.#outlet
    return backlog - Math.max(0, Math.min(backlog, this.#graceUpTo - takenBytes))
  }

  /** Resolves when all bytes are sent, or the connection is closed. */
  get #drained(): Promise<void> {
    if (this.#outlet.isClosed) return Promise.resolve()
    this.#drainPromise ??= this.#outlet.drained().then(() => {
      this.#drainPromise = null
    })
    return this.#drainPromise
  }

  #write({ chunks, reservedBytes }: Reply): void {
    if (reservedBytes > 0) void this.#drained.then(() => this.#context.unsentBudget.release(reservedBytes, this.address))
    if (this.#isClosed || chunks.length === 0) return
    this.#outlet.cork()
    this.#outlet.write(wsHeader(chunks.reduce((sum, { length }) => sum + length, 0)))
    for (const piece of chunks) this.#outlet.write(piece)
    this.#graceUpTo = this.#outlet.takenBytes + this.#outlet.backlog
  }
}

const encodeFrame = (text: string): Buffer => wsFrame(Buffer.from(text))
