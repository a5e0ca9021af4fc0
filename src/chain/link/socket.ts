import { Subject } from 'rxjs'
import { WebSocket } from 'ws'
import { z } from 'zod'
import type { Hex } from '../../protocol/fields.ts'
import { HexQuantity } from '../logs/log-schema.ts'
import type { ChainIdentity } from '../rpc/chain-id.ts'
import { parseJson } from '../rpc/client.ts'

/** What one upstream socket says. A link is live or down; a clean close is a failure too. */
export type LinkSignal =
  /** Logs of these addresses are pushed now: pre-confirmed or, where the node refuses that, as they are sealed. */
  | { readonly type: 'live'; readonly subscription: 'pendingLogs' | 'logs'; readonly addresses: readonly Hex[] }
  | {
      readonly type: 'log'
      readonly subscription: 'pendingLogs' | 'logs'
      readonly log: unknown
      readonly receivedAt: number
    }
  | { readonly type: 'head'; readonly header: unknown }
  /** It said something that is no message. */
  | { readonly type: 'unreadable' }
  /** `refused`: the node is there, and will not let itself be subscribed to. */
  | { readonly type: 'down'; readonly reason: string; readonly isRefused: boolean }

const HANDSHAKE_BOUND_MS = 5_000
/** How long a question may go unanswered: one for the chain is then given up, one for a subscription ends the link. */
const ANSWER_BOUND_MS = 2_000
const PING_INTERVAL_MS = 10_000
const PONG_BOUND_MS = 5_000
const MESSAGE_BOUND_BYTES = 8 * 2 ** 20
/** A notification may overtake the answer that names its subscription; so many wait for it. */
const EARLY_NOTIFICATIONS_BOUND = 2_000
/** A subscription that was replaced may still speak; so many are remembered. */
const SUBSCRIPTIONS_BOUND = 32

type Options = {
  /** The chain that the node must be of. */
  readonly chain: ChainIdentity
  readonly now: () => number
  readonly warn: (kind: string, detail: unknown) => void
}

/** The upstream socket is lost, or was never there; says why. */
export class LinkError extends Error {
  /** Whether the node is there, and will not let itself be subscribed to. */
  readonly isRefused: boolean

  constructor(reason: string, isRefused = false) {
    super(reason)
    this.isRefused = isRefused
  }
}

const Message = z.union([
  z.object({
    method: z.literal('eth_subscription'),
    params: z.object({ subscription: z.string(), result: z.unknown() }),
  }),
  z.object({ id: z.int(), error: z.object({ code: z.number(), message: z.string() }) }),
  z.object({ id: z.int(), result: z.unknown() }),
])

type LogSubscriptionKind = 'pendingLogs' | 'logs'
type SubscriptionKind = LogSubscriptionKind | 'newHeads'

/** What was asked of the node and is not answered yet. */
type PendingRequest = {
  readonly onResult: (result: unknown) => void
  readonly onError: (failure: RequestFailure) => void
}

/** Why a question has no answer; the code is null where nothing was said at all. */
type RequestFailure = { readonly code: number | null; readonly message: string }

/** What a node says that does not know a method. */
const UNKNOWN_METHOD = -32601

/** One life of one socket: asks for the chain, subscribes, re-subscribes when the tokens change, and watches its pulse. */
export class LinkSocket {
  readonly signals = new Subject<LinkSignal>()
  readonly #options: Options
  readonly #socket: WebSocket
  readonly #requests = new Map<number, PendingRequest>()
  readonly #kindBySubscription = new Map<string, SubscriptionKind>()
  readonly #timers = new Set<NodeJS.Timeout>()
  #earlyNotifications: { subscription: string; result: unknown; receivedAt: number }[] = []
  #addresses: readonly Hex[] = []
  #isReady = false
  /** What is to be subscribed to, and under which id it is. */
  readonly #logSubscriptions = new Map<LogSubscriptionKind, string | null>([['pendingLogs', null]])
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
    this.#socket.on('open', () => this.#checkChain())
    this.#socket.on('message', (data, isBinary) => {
      if (!isBinary) this.#handleMessage(String(data), options.now())
    })
    this.#socket.on('error', (failure) => this.#end(failure.message))
    this.#socket.on('close', (code) => this.#end(`closed with ${code}`))
  }

  /** Listens to these tokens from now on. The former subscription goes only when the new one speaks. */
  setAddresses(addresses: readonly Hex[]): void {
    this.#addresses = addresses
    if (this.#isReady) this.#subscribeToLogs()
  }

  /** Tries what was refused or found silent once more, and listens to sealed logs beside it. */
  retrySubscriptions(): void {
    if (!this.#isReady) return
    this.#subscribe('pendingLogs')
    if (!this.#logSubscriptions.has('logs')) this.#subscribe('logs')
  }

  unsubscribe(): void {
    this.#hasEnded = true
    this.#cleanUp()
  }

  #checkChain(): void {
    this.#startPinging()
    this.#request('eth_chainId', [], {
      onResult: (result) => {
        const chainId = HexQuantity.safeParse(result).data
        const mismatch = chainId === undefined ? 'it does not say a number' : this.#options.chain.findMismatch(chainId)
        if (mismatch) this.#end(`wrong chain: ${mismatch}`)
        else this.#start()
      },
      // A node that cannot be asked was chosen by the operator; one that can and will not is not to be trusted now.
      onError: ({ code, message }) => {
        if (code === null || code === UNKNOWN_METHOD) this.#start()
        else this.#end(`eth_chainId refused: ${code} ${message}`)
      },
    })
  }

  #start(): void {
    this.#isReady = true
    this.#request('eth_subscribe', ['newHeads'], {
      onResult: (id) => this.#addSubscription(id, 'newHeads'),
      onError: (failure) => this.#options.warn('upstream refuses newHeads', failure),
    })
    this.#subscribeToLogs()
  }

  #subscribeToLogs(): void {
    for (const kind of this.#logSubscriptions.keys()) this.#subscribe(kind)
  }

  #subscribe(kind: LogSubscriptionKind): void {
    const addresses = this.#addresses
    // To the node an empty list means every contract there is.
    if (addresses.length === 0) return
    this.#request('eth_subscribe', [kind, { address: addresses }], {
      onResult: (id) => {
        const previousId = this.#logSubscriptions.get(kind) ?? null
        this.#logSubscriptions.set(kind, typeof id === 'string' ? id : null)
        this.signals.next({ type: 'live', subscription: kind, addresses })
        this.#addSubscription(id, kind)
        if (previousId !== null)
          this.#request('eth_unsubscribe', [previousId], { onResult: () => {}, onError: () => {} })
      },
      onError: (failure) => {
        if (failure.code === null) return this.#end(`${kind} refused: ${failure.message}`)
        this.#options.warn(`upstream refuses ${kind}`, failure)
        this.#logSubscriptions.delete(kind)
        if (this.#logSubscriptions.size > 0) return
        // Where nothing pre-confirmed can be heard, what is sealed may be.
        if (kind === 'pendingLogs') this.#subscribe('logs')
        else this.#end(`${kind} refused: ${failure.message}`, true)
      },
    })
  }

  #addSubscription(id: unknown, kind: SubscriptionKind): void {
    if (typeof id !== 'string') return this.#end('a subscription was answered without an id')
    this.#kindBySubscription.set(id, kind)
    // The heads are subscribed to once and for all: only former subscriptions to logs may be forgotten.
    const oldest = [...this.#kindBySubscription.keys()].find(
      (known) => this.#kindBySubscription.get(known) !== 'newHeads',
    )
    if (this.#kindBySubscription.size > SUBSCRIPTIONS_BOUND && oldest !== undefined)
      this.#kindBySubscription.delete(oldest)
    const notifications = this.#earlyNotifications.filter(({ subscription }) => subscription === id)
    this.#earlyNotifications = this.#earlyNotifications.filter(({ subscription }) => subscription !== id)
    for (const { result, receivedAt } of notifications) this.#emit(kind, result, receivedAt)
  }

  #handleMessage(text: string, receivedAt: number): void {
    const message = Message.safeParse(parseJson(text))
    if (!message.success) {
      this.#options.warn('upstream message unreadable', { begins: text.slice(0, 120) })
      return this.signals.next({ type: 'unreadable' })
    }
    if ('method' in message.data) {
      const { subscription, result } = message.data.params
      const kind = this.#kindBySubscription.get(subscription)
      if (kind) this.#emit(kind, result, receivedAt)
      else if (this.#requests.size > 0 && this.#earlyNotifications.length < EARLY_NOTIFICATIONS_BOUND) {
        this.#earlyNotifications.push({ subscription, result, receivedAt })
      }
      return
    }
    const request = this.#requests.get(message.data.id)
    this.#requests.delete(message.data.id)
    if ('error' in message.data) request?.onError(message.data.error)
    else request?.onResult(message.data.result)
    if (this.#requests.size === 0) this.#earlyNotifications = []
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
      if (this.#requests.delete(id))
        request.onError({ code: null, message: `not answered within ${ANSWER_BOUND_MS} ms` })
    })
    this.#socket.send(JSON.stringify({ jsonrpc: '2.0', id, method, params }))
  }

  /** A half-open connection looks quiet: only an unanswered ping tells. */
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

  #schedule(ms: number, callback: () => void): void {
    const timer = setTimeout(() => {
      this.#timers.delete(timer)
      callback()
    }, ms)
    this.#timers.add(timer)
  }

  #end(reason: string, isRefused = false): void {
    if (this.#hasEnded) return
    this.#hasEnded = true
    this.#cleanUp()
    this.signals.error(new LinkError(reason, isRefused))
  }

  #cleanUp(): void {
    for (const timer of this.#timers) clearTimeout(timer)
    this.#timers.clear()
    this.#socket.removeAllListeners()
    // A socket that is torn down while it opens still reports an error; nobody is left to hear it.
    this.#socket.on('error', () => {})
    this.#socket.terminate()
  }
}
