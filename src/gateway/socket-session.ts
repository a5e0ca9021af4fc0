import type { ByteBudget } from '../edge/limits/byte-budget.ts'
import { wsFrame, wsHeader } from '../edge/transport/encode.ts'
import type { ServerWebSocket, WebSocketOutlet } from '../edge/transport/websocket-outlet.ts'
import type { CloseReason } from '../protocol/close-codes.ts'
import type { RateLimiter } from './rate-limit.ts'
import { answerBody, type Caller, type Reply, type RpcBackend } from './rpc-batch.ts'
import { errorCodes, RpcError } from './rpc-error.ts'
import type { SubscriptionNotice } from './subscriber-index.ts'
import type { Subscriptions } from './subscriptions.ts'

/** Messages of one connection that are being answered, and what the others may hold that wait; while any do, none is read. */
const IN_PROGRESS_BOUND = 16
const QUEUE_BOUND_CHARS = 524_288
/** Subscriptions of one connection. */
const SUBSCRIPTIONS_BOUND = 100
/** What a filter weighs beside what it names; one that names nothing weighs nothing. */
const FILTER_WEIGHT = 50
/** Requests over the rate, in a row, that are answered before the connection is closed. */
const OVER_RATE_BOUND = 1_000
/** There is no coming back to where one was: so long a burst may stay unread beyond the bound, and up to so much of it. */
const BURST_BOUND_MS = 1_000
const BURST_BOUND_BYTES = 8 * 2 ** 20
/** Whoever takes nothing of what it is owed for this long is gone. */
const STALLED_BOUND_MS = 60_000

/** What all conversations share. */
export type RpcSessionContext = {
  readonly backend: RpcBackend
  readonly subscriptions: Subscriptions
  readonly rates: RateLimiter
  /** What the filters of each address weigh. */
  readonly filterBudget: ByteBudget
  /** What long answers hold until they are taken. */
  readonly unsentBudget: ByteBudget
  readonly backlogBoundBytes: number
  readonly uptime: () => number
  /** What every subscription's id begins with in this process. */
  readonly idPrefix: string
  readonly countSlowDisconnect: () => void
}

/** JSON-RPC over one WebSocket: questions, answers, and what was subscribed to. */
export class RpcSession {
  readonly address: string
  readonly #context: RpcSessionContext
  readonly #webSocket: ServerWebSocket
  readonly #outlet: WebSocketOutlet
  readonly #queue: string[] = []
  #queuedChars = 0
  #inProgress = 0
  readonly #closeById = new Map<string, () => void>()
  #lastId = 0
  #overRateCount = 0
  #isClosed = false
  #drainPromise: Promise<void> | null = null
  /** Of all bytes ever written, those up to here are forgiven: whoever asks for much may take its time to read it. */
  #graceUpTo = 0
  /** Since when it has had more to read than it may. */
  #behindSince: number | null = null
  #lastProgress = 0
  #progressedAt: number
  readonly #caller: Caller

  constructor(webSocket: ServerWebSocket, outlet: WebSocketOutlet, address: string, context: RpcSessionContext) {
    this.address = address
    this.#context = context
    this.#webSocket = webSocket
    this.#outlet = outlet
    this.#progressedAt = context.uptime()
    this.#caller = {
      client: address,
      takeRate: (methods) => methods.map((method) => this.#takeRate(method)),
      isLocal: (method) => method === 'eth_subscribe' || method === 'eth_unsubscribe',
      runLocal: (method, params) =>
        method === 'eth_subscribe' ? this.#subscribe(params) : String(this.#unsubscribe(params)),
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

  /** Counts one thing said that is no request, such as a ping. */
  countControlFrame(): void {
    this.#takeRate('')
  }

  /** A sign of life is asked for; whoever gave none, or takes nothing that it is owed, is gone. */
  heartbeat(): void {
    const { uptime } = this.#context
    const { backlog, progress } = this.#outlet
    if (backlog === 0 || progress !== this.#lastProgress) this.#progressedAt = uptime()
    this.#lastProgress = progress
    if (uptime() - this.#progressedAt >= STALLED_BOUND_MS) this.#disconnectSlow()
    // A ping would stand behind whatever is unread; while nothing is read from it, its pong would not be heard either.
    else if (backlog === 0 && !this.#webSocket.isPaused && this.#outlet.ping()) this.close('no_pong')
  }

  close(closeReason: CloseReason): void {
    if (this.#isClosed) return
    this.release()
    this.#outlet.end(closeReason, null)
  }

  /** The connection is gone, or as good as gone. */
  release(): void {
    this.#isClosed = true
    this.#queue.length = 0
    for (const close of this.#closeById.values()) close()
    this.#closeById.clear()
  }

  #disconnectSlow(): void {
    this.#context.countSlowDisconnect()
    this.close('too_slow')
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
    // With nothing under way, it goes on when what was said is read.
    if (isQueued && this.#inProgress === 0) void this.#drained.then(() => this.#answerNext())
  }

  /** Whether it has read most of what it was answered: until then it is asked to wait. */
  get #hasReadEnough(): boolean {
    return this.#outlet.backlog <= this.#context.backlogBoundBytes || !this.#outlet.willDrain
  }

  async #answer(text: string): Promise<void> {
    await answerBody(text, this.#context.backend, this.#caller, (answer) => this.#write(answer))
    this.#inProgress -= 1
    this.#answerNext()
  }

  #takeRate(method: string): boolean {
    const { rates, uptime } = this.#context
    const isAllowed = rates.take(this.address, [method], uptime())
    this.#overRateCount = isAllowed ? 0 : this.#overRateCount + 1
    if (this.#overRateCount > OVER_RATE_BOUND) this.close('too_many_messages')
    return isAllowed
  }

  #subscribe(params: unknown): string {
    if (this.#isClosed) return 'null'
    if (this.#closeById.size >= SUBSCRIPTIONS_BOUND)
      throw new RpcError(
        errorCodes.limitExceeded,
        `a connection has at most ${SUBSCRIPTIONS_BOUND} subscriptions; end some`,
      )
    this.#lastId += 1
    const id = this.#context.idPrefix + this.#lastId.toString(16).padStart(8, '0')
    const { subscriptions, filterBudget } = this.#context
    let weight = 0
    const releaseWeight = () => filterBudget.release(weight, this.address)
    const charge = (termCount: number): void => {
      const newWeight = termCount === 0 ? 0 : FILTER_WEIGHT + termCount
      if (!filterBudget.reserve(newWeight, this.address))
        throw new RpcError(
          errorCodes.limitExceeded,
          'the subscriptions of your address name too much; end some, or name less',
        )
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
    if (typeof id !== 'string')
      throw new RpcError(errorCodes.invalidParams, "invalid params: params[0] must be a subscription's id")
    this.#closeById.get(id)?.()
    return this.#closeById.delete(id)
  }

  #notify(id: string, notice: SubscriptionNotice): void {
    if (this.#isClosed) return
    // What was said in this very turn cannot have been read by now.
    if (this.#outlet.cork() && this.#isTooSlow()) return this.#disconnectSlow()
    this.#outlet.write(notice.bytes(id, encodeFrame))
    const { takenBytes, backlog } = this.#outlet
    if (notice.isLate && backlog <= BURST_BOUND_BYTES) this.#graceUpTo = takenBytes + backlog
  }

  #isTooSlow(): boolean {
    const { backlogBoundBytes, uptime } = this.#context
    const overdue = this.#overdueBytes
    if (overdue <= backlogBoundBytes) this.#behindSince = null
    else this.#behindSince ??= uptime()
    const isBurst = this.#behindSince === null || uptime() - this.#behindSince < BURST_BOUND_MS
    return !isBurst || overdue > Math.max(backlogBoundBytes, BURST_BOUND_BYTES)
  }

  /** What it should have read by now. */
  get #overdueBytes(): number {
    const { backlog, takenBytes } = this.#outlet
    return backlog - Math.max(0, Math.min(backlog, this.#graceUpTo - takenBytes))
  }

  /** Resolves when everything said is read; of whoever is gone already, at once. */
  get #allSent(): Promise<void> {
    return this.#outlet.isClosed ? Promise.resolve() : this.#drained
  }

  /** Resolves when everything said is read, or nobody reads any more. */
  get #drained(): Promise<void> {
    this.#drainPromise ??= this.#outlet.drained().then(() => {
      this.#drainPromise = null
    })
    return this.#drainPromise
  }

  #write({ chunks, reservedBytes }: Reply): void {
    if (reservedBytes > 0)
      void this.#allSent.then(() => this.#context.unsentBudget.release(reservedBytes, this.address))
    if (this.#isClosed || chunks.length === 0) return
    this.#outlet.cork()
    this.#outlet.write(wsHeader(chunks.reduce((sum, { length }) => sum + length, 0)))
    for (const piece of chunks) this.#outlet.write(piece)
    this.#graceUpTo = this.#outlet.takenBytes + this.#outlet.backlog
  }
}

const encodeFrame = (text: string): Buffer => wsFrame(Buffer.from(text))
