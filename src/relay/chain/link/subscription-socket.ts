import { Subject } from 'rxjs'
import { WebSocket } from 'ws'
import { z } from 'zod'
import { BoundedMap } from '../../../lib/bounded-map.ts'
import { readQuantity } from '../../../lib/hex.ts'
import { parseShallowJson } from '../../../lib/safe-json.ts'
import { chunk } from '../../../lib/turns.ts'
import { MANAGERS_BOUND } from '../../config/pool-settings.ts'
import type { Host } from '../../host.ts'
import { type ReadFilter, requestFilterOf } from '../logs/log-filter.ts'
import type { ChainIdentity } from '../rpc/chain-identity.ts'
import { requestText } from '../rpc/request-text.ts'
import { classifyHandshake, UpstreamError } from '../rpc/upstream-error.ts'

/** Events of one upstream WebSocket. A clean close counts as a loss, like a failure. */
export type LinkSignal =
  /**
   * The node accepted a subscription to logs: `pendingLogs` are pre-confirmed, `logs` are sealed. It pushes those that match
   * `pushed`: of the wanted `filters` the node may refuse those with topics.
   */
  | {
      readonly type: 'live'
      readonly subscription: 'pendingLogs' | 'logs'
      readonly filters: readonly ReadFilter[]
      readonly pushed: readonly ReadFilter[]
    }
  /** `log` is one pushed log, or an array of logs that arrived together. */
  | { readonly type: 'log'; readonly subscription: 'pendingLogs' | 'logs'; readonly log: unknown; readonly receivedAt: number }
  /** The node refuses pre-confirmed logs of the new filters. It may still push logs of the previous ones. */
  | { readonly type: 'refused' }
  | { readonly type: 'heads_live' }
  | { readonly type: 'head'; readonly header: unknown }
  /** The node sent this number of messages that are not JSON-RPC. */
  | { readonly type: 'unreadable'; readonly count: number }
  /** The relay leaves this node, to connect to the next one. */
  | { readonly type: 'left'; readonly what: 'link' }
  /** The socket was lost or never opened. `isRefused`: the node answers, but refuses subscriptions. */
  | { readonly type: 'down'; readonly reason: string; readonly isRefused: boolean }

const HANDSHAKE_BOUND_MS = 5_000
/** Limit of the wait for an answer. Without one, a chain check is skipped, and a subscription to logs ends the socket. */
const ANSWER_BOUND_MS = 2_000
const PING_INTERVAL_MS = 10_000
const PONG_BOUND_MS = 5_000
const MESSAGE_BOUND_BYTES = 8 * 2 ** 20
/** Limit of kept notifications that arrive before the answer with their subscription id. */
const EARLY_NOTIFICATIONS_BOUND = 2_000
/** Limit of messages of one read of the socket whose logs are emitted as one signal. */
const UNEMITTED_BOUND = 512
/** Limit of addresses per subscription: to write a longer list would block the event loop for too long. */
const PART_BOUND_ADDRESSES = 10_000
/** Limit of the subscriptions into which a list of addresses is split after a node refused a longer part of it. */
const PARTS_BOUND = 16
/** Limit of known ids of subscriptions to logs. Those of replaced subscriptions are kept, since the node may still push for them. */
const SUBSCRIPTIONS_BOUND = 8 * (PARTS_BOUND + MANAGERS_BOUND)

type Options = Pick<Host, 'now' | 'log'> & { readonly chain: ChainIdentity; readonly onMessage?: (json: Buffer) => void }

const Answer = z.union([
  z.object({ id: z.int(), error: z.object({ code: z.number(), message: z.string() }) }),
  z.object({ id: z.int(), result: z.unknown() }),
])

type Notification = { readonly subscription: string; readonly result: unknown }

/** Reads each pushed log, so it checks the message by hand: a schema takes four times as long. */
function readNotification(message: unknown): Notification | null {
  if (!isObject(message) || message.method !== 'eth_subscription' || !isObject(message.params)) return null
  const { subscription, result } = message.params
  return typeof subscription === 'string' && result !== undefined ? { subscription, result } : null
}

const isObject = (value: unknown): value is Readonly<Record<string, unknown>> => typeof value === 'object' && value !== null

type LogSubscriptionKind = 'pendingLogs' | 'logs'
type SubscriptionKind = LogSubscriptionKind | 'newHeads'

/** A subscription in progress: one part after the other. A later attempt has a higher `nth`. */
type Attempt = {
  readonly nth: number
  readonly kind: LogSubscriptionKind
  readonly filters: readonly ReadFilter[]
  /** Limit of the addresses of one part. */
  readonly partSize: number
  /** The parts that are not requested yet. */
  readonly parts: readonly ReadFilter[]
  /** Subscription ids of the parts that the node has accepted. */
  readonly ids: readonly string[]
  /** The filters with topics that the node has refused. */
  readonly refused: readonly ReadFilter[]
}

type PendingRequest = { readonly onResult: (result: unknown) => void; readonly onError: (failure: RequestFailure) => void }

const noAttempt: Pick<Attempt, 'nth' | 'ids'> = { nth: 0, ids: [] }

/** Error of a request. `code` is null if the node did not answer in time. */
type RequestFailure = { readonly code: number | null; readonly message: string }

const UNKNOWN_METHOD_CODE = -32601

/** One WebSocket, from open to close. It checks the chain, subscribes, subscribes again if the tokens change, and pings. */
export class SubscriptionSocket {
  readonly signals = new Subject<LinkSignal>()
  readonly #options: Options
  readonly #socket: WebSocket
  readonly #requests = new Map<number, PendingRequest>()
  readonly #kindBySubscription = new BoundedMap<string, LogSubscriptionKind>(SUBSCRIPTIONS_BOUND)
  #headSubscription: string | null = null
  #unemitted: { readonly kind: LogSubscriptionKind; readonly results: unknown[]; readonly receivedAt: number } | null = null
  #earlyNotifications: { subscription: string; result: unknown; receivedAt: number }[] = []
  #filters: readonly ReadFilter[] = []
  #isReady = false
  /** The kinds of logs to subscribe to, each with the ids of its open subscriptions. */
  readonly #logSubscriptions = new Map<LogSubscriptionKind, Pick<Attempt, 'nth' | 'ids'>>([['pendingLogs', noAttempt]])
  #attemptCount = 0
  #lastId = 0
  #hasEnded = false

  constructor(url: string, options: Options) {
    this.#options = options
    this.#socket = new WebSocket(url, {
      handshakeTimeout: HANDSHAKE_BOUND_MS,
      maxPayload: MESSAGE_BOUND_BYTES,
      perMessageDeflate: false,
      followRedirects: false,
    })
    this.#socket.on('open', () => {
      this.#startPinging()
      this.#checkChain(() => this.#start())
    })
    this.#socket.on('message', (data, isBinary) => {
      if (isBinary) return
      const json = Buffer.isBuffer(data) ? data : Buffer.from(String(data))
      options.onMessage?.(json)
      this.#handleMessage(json, options.now())
    })
    this.#socket.on('unexpected-response', (_, response) => {
      const { message, retryAfterMs } = classifyHandshake(response)
      this.#end(message, 'unreachable', retryAfterMs)
    })
    this.#socket.on('error', (failure) => this.#end(failure.message))
    this.#socket.on('close', (code) => this.#end(`closed with ${code}`))
  }

  /** Subscribes to the logs that match these filters. The previous subscription ends only after the node accepts the new one. */
  setFilters(filters: readonly ReadFilter[]): void {
    this.#filters = filters
    if (this.#isReady) this.#subscribeToLogs()
  }

  /** Subscribes to pre-confirmed logs again, and to sealed logs if the socket is not subscribed to them. */
  retrySubscriptions(): void {
    if (!this.#isReady) return
    this.#subscribe('pendingLogs')
    if (!this.#logSubscriptions.has('logs')) this.#subscribe('logs')
  }

  /** Asks for the chain id again: behind a load balancer, another node may answer on this socket by now. */
  checkChainAgain(): void {
    if (this.#isReady) this.#checkChain(() => {})
  }

  /** Ends the socket as if it was lost, so that the link tries the next URL. */
  leave(reason: string): void {
    if (!this.#hasEnded) this.signals.next({ type: 'left', what: 'link' })
    this.#end(reason)
  }

  unsubscribe(): void {
    this.#hasEnded = true
    this.#cleanUp()
  }

  #checkChain(onRight: () => void): void {
    this.#request('eth_chainId', [], {
      onResult: (result) => {
        const chainId = readQuantity(result)
        const mismatch = chainId === null ? 'eth_chainId is not a number' : this.#options.chain.findMismatch(chainId)
        if (mismatch) this.#end(`wrong chain: ${mismatch}`)
        else onRight()
      },
      // A node without eth_chainId, or with a late answer, is accepted. A node that answers with another error is not trusted.
      onError: ({ code, message }) => {
        if (code === null || code === UNKNOWN_METHOD_CODE) onRight()
        else this.#end(`eth_chainId refused: ${code} ${message}`)
      },
    })
  }

  #start(): void {
    this.#isReady = true
    this.#request('eth_subscribe', ['newHeads'], {
      onResult: (id) => {
        this.signals.next({ type: 'heads_live' })
        this.#addSubscription(id, 'newHeads')
      },
      onError: (failure) => this.#warnOfRefusal('newHeads', failure),
    })
    this.#subscribeToLogs()
  }

  #subscribeToLogs(): void {
    for (const kind of this.#logSubscriptions.keys()) this.#subscribe(kind)
  }

  #subscribe(kind: LogSubscriptionKind): void {
    const filters = this.#filters
    const [whole] = filters
    // An empty list would subscribe to the logs of every contract.
    if (!whole || whole.addresses.length === 0) return
    this.#attemptCount += 1
    this.#requestParts(this.#attemptCount, kind, filters, Math.min(whole.addresses.length, PART_BOUND_ADDRESSES))
  }

  #requestParts(nth: number, kind: LogSubscriptionKind, filters: readonly ReadFilter[], partSize: number): void {
    const parts = filters.flatMap((filter) => partsOf(filter, partSize))
    this.#requestPart({ nth, kind, filters, partSize, parts, ids: [], refused: [] })
  }

  #requestPart(attempt: Attempt): void {
    const { nth, kind, filters, partSize, ids, refused } = attempt
    const [part, ...parts] = attempt.parts
    if (!part) return
    const next = (after: Attempt) => (parts.length > 0 ? this.#requestPart(after) : this.#replaceSubscriptions(after))
    this.#request('eth_subscribe', [kind, requestFilterOf(part)], {
      onResult: (id) => {
        if (typeof id !== 'string') return this.#end('a subscription was answered without an id')
        next({ ...attempt, parts, ids: [...ids, id] })
        // Logs that were pushed before this answer follow the signal that the subscription is live.
        this.#addSubscription(id, kind)
      },
      onError: (failure) => {
        if (failure.code === null) return this.#end(`${kind} refused: ${failure.message}`)
        if (part.topics) {
          this.#warnOfRefusal(kind, failure, part)
          return next({ ...attempt, parts, refused: [...refused, part] })
        }
        const size = filters[0]?.addresses.length ?? 0
        const smaller = Math.ceil(partSize / 2)
        const maySplit = ids.length === 0 && smaller < partSize && smaller * PARTS_BOUND >= size
        if (maySplit && failure.code !== UNKNOWN_METHOD_CODE) return this.#requestParts(nth, kind, filters, smaller)
        this.#unsubscribe(ids)
        this.#reportRefusal(kind, failure)
      },
    })
  }

  /** Called when the node has answered for all parts. Ends the previous subscriptions. */
  #replaceSubscriptions({ nth, kind, filters, ids, refused }: Attempt): void {
    const previous = this.#logSubscriptions.get(kind) ?? noAttempt
    if (previous.nth > nth) return this.#unsubscribe(ids)
    this.#logSubscriptions.set(kind, { nth, ids })
    const pushed = refused.length > 0 ? filters.filter((filter) => !refused.includes(filter)) : filters
    this.signals.next({ type: 'live', subscription: kind, filters, pushed })
    this.#unsubscribe(previous.ids)
  }

  #reportRefusal(kind: LogSubscriptionKind, failure: RequestFailure): void {
    this.#warnOfRefusal(kind, failure)
    // The previous subscription stays, since logs of the previous addresses are better than none.
    if (kind === 'pendingLogs' && this.#logSubscriptions.get(kind)?.ids.length) return this.signals.next({ type: 'refused' })
    this.#logSubscriptions.delete(kind)
    if (this.#logSubscriptions.size > 0) return
    // Without pre-confirmed logs, sealed logs are better than none.
    if (kind === 'pendingLogs') this.#subscribe('logs')
    else this.#end(`${kind} refused: ${failure.message}`, 'forbidden')
  }

  #warnOfRefusal(subscription: SubscriptionKind, { code, message }: RequestFailure, part?: ReadFilter): void {
    const ofPools = part && { pool_manager: part.addresses[0] }
    this.#options.log('subscription_refused', { subscription, code, reason: message, ...ofPools })
  }

  #unsubscribe(ids: readonly string[]): void {
    for (const id of ids) this.#request('eth_unsubscribe', [id], { onResult: () => {}, onError: () => {} })
  }

  #addSubscription(id: unknown, kind: SubscriptionKind): void {
    if (typeof id !== 'string') return this.#end('a subscription was answered without an id')
    if (kind === 'newHeads') this.#headSubscription = id
    else this.#kindBySubscription.set(id, kind)
    const notifications = this.#earlyNotifications.filter(({ subscription }) => subscription === id)
    this.#earlyNotifications = this.#earlyNotifications.filter(({ subscription }) => subscription !== id)
    for (const { result, receivedAt } of notifications) this.#emit(kind, result, receivedAt)
  }

  #handleMessage(json: Buffer, receivedAt: number): void {
    const message = parseShallowJson(json)
    const notification = readNotification(message)
    if (notification) return this.#handleNotification(notification, receivedAt)
    this.#emitLogs()
    const answer = Answer.safeParse(message)
    if (!answer.success) {
      this.#options.log('message_unreadable', { begins: json.toString('utf8', 0, 120) })
      return this.signals.next({ type: 'unreadable', count: 1 })
    }
    const request = this.#requests.get(answer.data.id)
    this.#requests.delete(answer.data.id)
    if ('error' in answer.data) request?.onError(answer.data.error)
    else request?.onResult(answer.data.result)
    if (this.#requests.size === 0) this.#earlyNotifications = []
  }

  #handleNotification({ subscription, result }: Notification, receivedAt: number): void {
    const kind = this.#kindBySubscription.get(subscription)
    if (subscription === this.#headSubscription) {
      this.#emitLogs()
      this.#emit('newHeads', result, receivedAt)
    } else if (kind) this.#addLog(kind, result, receivedAt)
    else if (this.#requests.size > 0 && this.#earlyNotifications.length < EARLY_NOTIFICATIONS_BOUND)
      this.#earlyNotifications.push({ subscription, result, receivedAt })
  }

  /** Collects the logs of all messages in one read of the socket, to emit them as one signal. Most messages push one log. */
  #addLog(kind: LogSubscriptionKind, result: unknown, receivedAt: number): void {
    if (this.#unemitted?.kind !== kind || this.#unemitted.results.length === UNEMITTED_BOUND) this.#emitLogs()
    if (!this.#unemitted) {
      this.#unemitted = { kind, results: [], receivedAt }
      queueMicrotask(() => this.#emitLogs())
    }
    this.#unemitted.results.push(result)
  }

  #emitLogs(): void {
    const unemitted = this.#unemitted
    this.#unemitted = null
    if (!unemitted || this.#hasEnded) return
    const { kind, results, receivedAt } = unemitted
    this.#emit(kind, results.length === 1 ? results[0] : results.flat(), receivedAt)
  }

  #emit(kind: SubscriptionKind, result: unknown, receivedAt: number): void {
    if (kind === 'newHeads') this.signals.next({ type: 'head', header: result })
    else this.signals.next({ type: 'log', subscription: kind, log: result, receivedAt })
  }

  #request(method: string, params: readonly unknown[], request: PendingRequest): void {
    this.#lastId += 1
    const id = this.#lastId
    this.#requests.set(id, request)
    this.#schedule(ANSWER_BOUND_MS, () => {
      if (this.#requests.delete(id)) request.onError({ code: null, message: `not answered within ${ANSWER_BOUND_MS} ms` })
    })
    this.#socket.send(requestText({ jsonrpc: '2.0', id, method, params }))
  }

  /** A connection that was lost without a close looks like a quiet one. Only a missing pong reveals the loss. */
  #startPinging(): void {
    let hasAnswered = true
    this.#socket.on('pong', () => {
      hasAnswered = true
    })
    const ping = () => {
      hasAnswered = false
      this.#socket.ping()
      this.#schedule(PONG_BOUND_MS, () => {
        if (!hasAnswered) this.#end(`no pong within ${PONG_BOUND_MS} ms`)
      })
      this.#schedule(PING_INTERVAL_MS, ping)
    }
    this.#schedule(PING_INTERVAL_MS, ping)
  }

  /** Calls back unless the socket has ended by then. */
  #schedule(ms: number, callback: () => void): void {
    setTimeout(() => {
      if (!this.#hasEnded) callback()
    }, ms).unref()
  }

  /** A node that answers, but refuses subscriptions, is `forbidden`. */
  #end(reason: string, kind: 'unreachable' | 'forbidden' = 'unreachable', retryAfterMs: number | null = null): void {
    if (this.#hasEnded) return
    this.#emitLogs()
    this.#hasEnded = true
    this.#cleanUp()
    this.signals.error(new UpstreamError(kind, reason, retryAfterMs))
  }

  #cleanUp(): void {
    this.#socket.removeAllListeners()
    // A socket that is terminated while it opens still emits an error, which would crash the process if unhandled.
    this.#socket.on('error', () => {})
    this.#socket.terminate()
  }
}

/** Splits the list of addresses of a filter into parts of at most `size`. */
const partsOf = (filter: ReadFilter, size: number): readonly ReadFilter[] =>
  filter.addresses.length <= size ? [filter] : chunk(filter.addresses, size).map((addresses) => ({ ...filter, addresses }))
