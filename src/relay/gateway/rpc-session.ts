import type { IncomingMessage } from 'node:http'
import type { CloseReason } from '../../protocol/close-codes.ts'
import { Client } from '../edge/clients/client.ts'
import type { Clients } from '../edge/clients/clients.ts'
import type { Budget } from '../edge/limits/budget.ts'
import type { RateLimiter } from '../edge/limits/rate-limiter.ts'
import { wsFrame, wsHeader } from '../edge/transport/encode-message.ts'
import type { ServerWebSocket, WebSocketEvents, WebSocketOutlet } from '../edge/transport/websocket-outlet.ts'
import type { Host } from '../host.ts'
import { answerBody, type Caller, type Reply, type RpcBackend } from './answer-rpc-body.ts'
import { invalidParams, limitExceeded } from './rpc-error.ts'
import { decodeText } from './rpc-request-parser.ts'
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
/** The WebSocket code for a client that may reconnect. */
const TRY_AGAIN_LATER = 1_013

/** The parts that JSON-RPC over HTTP and over WebSocket share. */
export type RpcContext = Pick<Host, 'uptime'> & {
  readonly backend: RpcBackend
  readonly clients: Clients
  readonly subscriptions: Subscriptions
  readonly rates: RateLimiter
  readonly filterBudget: Budget
  /** Counts the bytes of long answers that clients have not received yet. */
  readonly unsentBudget: Budget
  readonly maxBacklogBytes: number
  readonly heartbeatMs: number
  readonly addressOf: (incoming: IncomingMessage) => string
  /** Begins the ids of all subscriptions of this process. */
  readonly idPrefix: string
}

/** Opens a session on a new WebSocket, or closes that if another process has accepted the last client that the limits allow. */
export function openRpcSession(webSocket: ServerWebSocket, outlet: WebSocketOutlet, address: string, context: RpcContext): void {
  const { clients } = context
  const session = new RpcSession(webSocket, outlet, address, context)
  webSocket.events = session
  if (!clients.add(session)) return
  clients.remove(session)
  webSocket.close(TRY_AGAIN_LATER)
}

/** JSON-RPC over one WebSocket: calls, answers and subscriptions. */
class RpcSession extends Client implements WebSocketEvents {
  readonly #context: RpcContext
  readonly #webSocket: ServerWebSocket
  readonly #outlet: WebSocketOutlet
  readonly #queue: string[] = []
  #queuedChars = 0
  #inProgress = 0
  readonly #closeById = new Map<string, () => void>()
  #lastId = 0
  #overRateCount = 0
  #drainPromise: Promise<void> | null = null
  readonly #caller: Caller

  constructor(webSocket: ServerWebSocket, outlet: WebSocketOutlet, address: string, context: RpcContext) {
    const { maxBacklogBytes, heartbeatMs, uptime } = context
    // A disconnected subscriber cannot resume.
    const patience = { maxBacklogBytes, patienceMs: BURST_BOUND_MS, atOnceBytes: Math.max(maxBacklogBytes, BURST_BOUND_BYTES) }
    super({ transport: 'rpc', address, outlet, heartbeatMs, patience, uptime: uptime() })
    this.#context = context
    this.#webSocket = webSocket
    this.#outlet = outlet
    this.#caller = {
      client: address,
      takeRate: (methods, prepaid = 0) => methods.map((method, index) => this.#takeRate(method, index < prepaid ? 1 : 0)),
      isLocal: (method) => method === 'eth_subscribe' || method === 'eth_unsubscribe',
      runLocal: (method, params) => (method === 'eth_subscribe' ? this.#subscribe(params) : String(this.#unsubscribe(params))),
      reserve: (bytes) => !this.isGone && this.#context.unsentBudget.reserve(bytes, this.address),
      hasHttpStatus: false,
    }
  }

  onMessage(data: unknown): void {
    if (this.isGone) return
    const text = data instanceof Buffer ? decodeText(data) : ''
    this.#queue.push(text)
    this.#queuedChars += text.length
    if (this.#queuedChars > QUEUE_BOUND_CHARS && this.#queue.length > 1) return this.#disconnect('too_many_messages')
    this.#answerNext()
  }

  /** A ping counts as a request, and so does a pong that was not requested. */
  onPing(): void {
    this.#takeRate('')
  }

  onPong(): void {
    if (!this.#outlet.receivePong()) this.#takeRate('')
  }

  onClose(): void {
    this.#context.clients.remove(this)
  }

  override heartbeat(): CloseReason | null {
    // A ping would wait behind the backlog, and a pong is not read while reading is paused.
    const mayPing = this.#outlet.backlog === 0 && !this.#webSocket.isPaused
    return mayPing && this.#outlet.ping() ? 'no_pong' : null
  }

  override onGone(): void {
    this.#queue.length = 0
    for (const close of this.#closeById.values()) close()
    this.#closeById.clear()
  }

  #disconnect(reason: CloseReason): void {
    this.#context.clients.disconnect(this, reason)
  }

  #answerNext(): void {
    while (this.#queue.length > 0 && this.#inProgress < IN_PROGRESS_BOUND && this.#hasReadEnough) {
      const text = this.#queue.shift() ?? ''
      this.#queuedChars -= text.length
      this.#inProgress += 1
      void this.#answer(text)
    }
    if (this.isGone) return
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
    if (this.#overRateCount > OVER_RATE_BOUND) this.#disconnect('too_many_messages')
    return isAllowed
  }

  #subscribe(params: unknown): string {
    if (this.isGone) return 'null'
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
    if (this.isGone) return
    // No bytes are sent before the end of the turn of the event loop, so only the first write of a turn is checked.
    if (this.#outlet.cork() && !this.#context.clients.mayWrite(this)) return
    this.#outlet.write(notice.bytes(id, encodeFrame))
    if (notice.isLate && this.#outlet.backlog <= BURST_BOUND_BYTES) this.excuseBacklog()
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
    if (this.isGone || chunks.length === 0) return
    this.#outlet.cork()
    this.#outlet.write(wsHeader(chunks.reduce((sum, { length }) => sum + length, 0)))
    for (const piece of chunks) this.#outlet.write(piece)
    this.excuseBacklog()
  }
}

const encodeFrame = (text: string): Buffer => wsFrame(Buffer.from(text))
