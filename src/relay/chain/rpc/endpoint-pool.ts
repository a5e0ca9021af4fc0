import { backoffMs, withJitter } from '../../../lib/backoff.ts'
import { readQuantity } from '../../../lib/hex.ts'
import { failureReason, hostOf, readResponseBody, splitCredentials } from '../../../lib/http-fetch.ts'
import { chunk } from '../../../lib/turns.ts'
import { isCallMethod, type Method, type NodeMethod, type NodeParams, type Params } from '../../../protocol/json-rpc-methods.ts'
import type { Host } from '../../host.ts'
import { type BatchAnswer, type ParseAnswer, parseBatch, parseLogsResult, parseRawResult, parseResult } from './answer-envelope.ts'
import type { ChainIdentity } from './chain-identity.ts'
import { RequestSocket } from './request-socket.ts'
import { type JsonRpcRequest, requestText } from './request-text.ts'
import { UpstreamError, type UpstreamErrorKind } from './upstream-error.ts'

/** Sends one JSON-RPC request, and returns the result. A long list of logs is a `UnparsedLogs`. */
export type RequestFn = <Q extends NodeMethod>(method: Q, params: NodeParams<Q>, signal?: AbortSignal) => Promise<unknown>

export type BatchRequest = { readonly [Q in NodeMethod]: { readonly method: Q; readonly params: NodeParams<Q> } }[NodeMethod]

/** Sends several requests to one endpoint, which reads them in this order, and returns the answer of each. */
export type RequestBatchFn = (requests: readonly BatchRequest[], signal?: AbortSignal) => Promise<readonly BatchAnswer[]>

/** Fails if an endpoint that answered since `answeredSince` is of another chain. Asks it unless it was asked after `askedAfter`. */
export type ConfirmChain = (
  answers: { readonly answeredSince: number; readonly askedAfter: number },
  signal?: AbortSignal,
) => Promise<void>

/** Resolves when the next request may be sent. Rejects if the signal aborts before. */
export type UntilItsTurn = (signal?: AbortSignal) => Promise<void>

/** Forwards one request, and returns the result in the bytes that the node sent. */
export type RawRequestFn = <M extends Method>(method: M, params: Params<M>, signal?: AbortSignal) => Promise<Buffer>

export const REQUEST_TIMEOUT_MS = 5_000
export const ANSWER_BOUND_BYTES = 16 * 2 ** 20
/** Limits of the time for which a failed endpoint is not used. This time doubles with each failure in a row. */
const BACKOFF = { minMs: 250, maxMs: 30_000 }
const BACKOFF_JITTER = [0.5, 1.5] as const
const WRONG_CHAIN_BACKOFF_MS = 60_000
/** Interval between comparisons of the endpoints' heads. */
const COMPARE_INTERVAL_MS = 10_000
/** Limit of the wait for a head to compare. A slower answer is ignored, since the chain has newer blocks by then. */
const COMPARE_BOUND_MS = 1_000
/** Time for which an endpoint that refused a batch gets single requests instead of batches. */
const BATCHES_REFUSED_MS = 600_000
/** Limit of parallel requests to an endpoint that gets single requests instead of batches. */
const SINGLES_BOUND = 8
const LAG_BOUND_BLOCKS = 5
/** Time that an endpoint has, once it is asked first, to make settling advance. */
const FIRST_CHANCE_MS = 5_000
/** Limits of the time for which a bad endpoint is tried last. It doubles each time, unless `maxMs` passed since the last. */
const ASIDE = { minMs: 60_000, maxMs: 3_600_000 }

type Call = { readonly method: NodeMethod; readonly params: readonly unknown[] }
type RpcRequest<T> = (Call | { readonly batch: readonly Call[] }) & { readonly parse: ParseAnswer<T> }

export type Exchange = (
  payload: JsonRpcRequest | readonly JsonRpcRequest[],
  signal: AbortSignal,
) => Promise<{ readonly response: Response; readonly body: Buffer }>

type Endpoint = {
  readonly url: string
  readonly exchange: Exchange
  failures: number
  backoffUntil: number
  isChainChecked: boolean
  /** Time at which the last successful check of the endpoint's chain began. */
  chainAskedAt: number
  /** Time of the endpoint's last result, whatever the request. */
  answeredAt: number
  /** The current check of the endpoint's chain, in parallel with other requests; null if there is none. */
  confirming: Promise<void> | null
  /** Until this time the endpoint is tried after all others. */
  asideUntil: number
  /** Number of times in a row that the endpoint was put aside, which means tried after all others. */
  asideTimes: number
  /** Until this time the endpoint gets single requests instead of batches. */
  batchesRefusedUntil: number
  /** Head of the endpoint in the last comparison, if another endpoint had a newer one; null otherwise. */
  headBehind: number | null
}

type Options = Pick<Host, 'now' | 'random' | 'log'> & {
  readonly urls: readonly string[]
  readonly chain: ChainIdentity
  /** Decides whether a failure is the endpoint's fault. By default, every failure is that does not concern one request only. */
  readonly isEndpointFault?: (error: UpstreamError) => boolean
  /** Called after each request, with the host of its endpoint. */
  readonly onAnswer?: (endpoint: string, seconds: number, failed: UpstreamErrorKind | null) => void
  /** Awaited before each request to an endpoint, so that repeats and checks count too. By default, nothing is awaited. */
  readonly untilItsTurn?: UntilItsTurn
  /** Connects to an endpoint; by default over HTTP or WebSocket, as the scheme of the URL says. */
  readonly exchange?: (url: string) => Exchange
}

/** Sends a request to the first endpoint that works. Tries lagging and hanging ones last, and uses none of another chain. */
export class EndpointPool {
  readonly #options: Options
  readonly #endpoints: readonly Endpoint[]
  #lastId = 0
  #comparedAt: number
  /** The endpoint that was asked first by the last request, and since when. */
  #first: { readonly endpoint: Endpoint | undefined; readonly since: number } = { endpoint: undefined, since: NEVER }

  constructor(options: Options) {
    this.#options = options
    this.#comparedAt = options.now()
    const { urls, exchange = exchangeWith } = options
    this.#endpoints = urls.map((url) => ({
      ...{ url, exchange: exchange(url), failures: 0 },
      ...{ isChainChecked: false, chainAskedAt: NEVER, answeredAt: NEVER, confirming: null },
      ...{ backoffUntil: 0, asideUntil: 0, asideTimes: 0, batchesRefusedUntil: 0, headBehind: null },
    }))
  }

  readonly request: RequestFn = (method, params, signal) =>
    this.#request({ method, params, parse: method === 'eth_getLogs' ? parseLogsResult : parseResult }, signal)

  readonly requestRaw: RawRequestFn = (method, params, signal) => this.#request({ method, params, parse: parseRawResult }, signal)

  /** One endpoint answers a whole batch, since the caller compares its answers with each other. */
  readonly requestBatch: RequestBatchFn = (batch, signal) =>
    this.#inTurn((endpoint) => this.#batchFrom(endpoint, batch, signal), signal)

  readonly confirmChain: ConfirmChain = async ({ answeredSince, askedAfter }, signal) => {
    const endpoints = this.#endpoints.filter(({ answeredAt }) => answeredAt >= answeredSince)
    await Promise.all(endpoints.map((endpoint) => this.#confirm(endpoint, askedAfter, signal)))
  }

  /**
   * Makes the first endpoint the last one for a while. Called if settling does not advance with its answers. Returns false if it is
   * the first only since a moment ago, so that the answers were those of another.
   */
  readonly leaveEndpoint = (): boolean => {
    const [first] = this.#inOrder()
    if (!first || this.#endpoints.length < 2) return true
    this.#noteFirst(first)
    if (this.#options.now() - this.#first.since < FIRST_CHANCE_MS) return false
    this.#putAside(first, { reason: 'settling does not advance' })
    return true
  }

  #noteFirst(endpoint: Endpoint | undefined): void {
    if (endpoint === this.#first.endpoint) return
    const isKnown = this.#first.endpoint !== undefined
    this.#first = { endpoint, since: isKnown ? this.#options.now() : NEVER }
  }

  #request<T>(request: RpcRequest<T>, signal?: AbortSignal): Promise<T> {
    return this.#inTurn(async (endpoint) => {
      const result = await this.#requestFrom(endpoint, request, signal)
      this.#compareHeads()
      return result
    }, signal)
  }

  /** Asks one endpoint after the other until one answers. Fails with the error of the last one. */
  async #inTurn<T>(ask: (endpoint: Endpoint) => Promise<T>, signal?: AbortSignal): Promise<T> {
    let lastError = new UpstreamError('unreachable', 'every endpoint failed recently')
    const endpoints = this.#inOrder()
    this.#noteFirst(endpoints[0])
    for (const endpoint of endpoints) {
      if (this.#isResting(endpoint)) continue
      try {
        return await ask(endpoint)
      } catch (failure) {
        signal?.throwIfAborted()
        if (!(failure instanceof UpstreamError)) throw failure
        lastError = failure
        // Another endpoint may still have what this one has deleted.
        if (failure.kind === 'gone') continue
        if (!failure.isRetryable) throw failure
        this.#recordFailure(endpoint, failure)
      }
    }
    throw lastError
  }

  async #requestFrom<T>(endpoint: Endpoint, request: RpcRequest<T>, signal?: AbortSignal): Promise<T> {
    const isWrong = () => this.#options.chain.isWrong([endpoint.url])
    try {
      // Another part of the process may have found since the check that the endpoint is of another chain.
      if (!endpoint.isChainChecked || isWrong()) await this.#checkChain(endpoint, signal)
    } catch (failure) {
      signal?.throwIfAborted()
      // The relay itself, and no client, sends the request for the chain id, so its failure is always the endpoint's fault.
      if (failure instanceof UpstreamError) this.#backOff(endpoint, failure)
      throw failure
    }
    const wasWrong = isWrong()
    const result = await this.#send(endpoint, request, signal)
    if (isWrong() && !wasWrong) throw new UpstreamError('wrong_chain', 'it turned out to be of another chain before it answered')
    endpoint.failures = 0
    endpoint.answeredAt = this.#options.now()
    return result
  }

  async #batchFrom(endpoint: Endpoint, batch: readonly Call[], signal?: AbortSignal): Promise<readonly BatchAnswer[]> {
    if (this.#options.now() < endpoint.batchesRefusedUntil) return this.#singlesFrom(endpoint, batch, signal)
    try {
      return await this.#requestFrom(endpoint, { batch, parse: parseBatch(batch.length) }, signal)
    } catch (failure) {
      if (!(failure instanceof UpstreamError && isBatchRefusal(failure))) throw failure
      endpoint.batchesRefusedUntil = this.#options.now() + BATCHES_REFUSED_MS
      this.#options.log('batches_refused', { endpoint: hostOf(endpoint.url), reason: failure.message })
      return this.#singlesFrom(endpoint, batch, signal)
    }
  }

  /** Sends a batch as single requests: the first before all others, the last after them. Fails only if the first one fails. */
  async #singlesFrom(endpoint: Endpoint, batch: readonly Call[], signal?: AbortSignal): Promise<readonly BatchAnswer[]> {
    const answer = ({ method, params }: Call) =>
      this.#requestFrom(endpoint, { method, params, parse: parseResult }, signal).then(
        (result): BatchAnswer => ({ ok: true, result }),
        (error: unknown): BatchAnswer => {
          if (error instanceof UpstreamError) return { ok: false, error }
          throw error
        },
      )
    const answers: BatchAnswer[] = []
    for (const part of [batch.slice(0, 1), ...chunk(batch.slice(1, -1), SINGLES_BOUND), batch.slice(1).slice(-1)]) {
      answers.push(...(await Promise.all(part.map(answer))))
      const [first] = answers
      if (first && !first.ok && first.error.isRetryable) throw first.error
    }
    return answers
  }

  /** Returns the endpoints in the order of their URLs. Those put aside follow, in the order in which that time ends. */
  #inOrder(): readonly Endpoint[] {
    const now = this.#options.now()
    return this.#endpoints.toSorted((a, b) => Math.max(now, a.asideUntil) - Math.max(now, b.asideUntil))
  }

  #putAside(endpoint: Endpoint, detail: object): void {
    const now = this.#options.now()
    if (this.#endpoints.length < 2) return
    if (now < endpoint.asideUntil) {
      endpoint.asideUntil = Math.max(endpoint.asideUntil, now + ASIDE.minMs)
      return
    }
    endpoint.asideTimes = now - endpoint.asideUntil > ASIDE.maxMs ? 1 : endpoint.asideTimes + 1
    endpoint.asideUntil = now + backoffMs(ASIDE, endpoint.asideTimes)
    this.#options.log('upstream_aside', { endpoint: hostOf(endpoint.url), ...detail })
  }

  #recordFailure(endpoint: Endpoint, error: UpstreamError): void {
    const { isEndpointFault } = this.#options
    // An endpoint that lacks only a method or a block is not at fault.
    if (isEndpointFault?.(error) ?? !error.isRequestSpecific) this.#backOff(endpoint, error)
    // After a timeout, the cheap eth_chainId has to succeed before the next request, which may be expensive.
    else if (isEndpointFault && error.kind === 'unreachable') endpoint.isChainChecked = false
  }

  #isResting({ backoffUntil }: Endpoint): boolean {
    return this.#options.now() < backoffUntil
  }

  #compareHeads(): void {
    const { now } = this.#options
    const endpoints = this.#endpoints.filter((endpoint) => !this.#isResting(endpoint))
    if (endpoints.length < 2 || now() - this.#comparedAt < COMPARE_INTERVAL_MS) return
    this.#comparedAt = now()
    const compare = (heads: readonly (number | null)[]) => {
      const newest = heads.reduce<number>((highest, head) => Math.max(highest, head ?? 0), 0)
      for (const [index, endpoint] of endpoints.entries()) {
        const head = heads[index] ?? newest
        const standsStill = head < newest && head === endpoint.headBehind
        endpoint.headBehind = head < newest ? head : null
        if (newest - head > LAG_BOUND_BLOCKS) this.#putAside(endpoint, { reason: 'it lags', head, newest })
        // A small lag counts only if the endpoint was behind at the last comparison too, and has gained no block since.
        else if (standsStill) this.#putAside(endpoint, { reason: 'it stands still', head, newest })
      }
    }
    void Promise.all(endpoints.map((endpoint) => this.#headOf(endpoint))).then(compare)
  }

  /** Returns null if the endpoint fails, or does not answer in time. */
  async #headOf(endpoint: Endpoint): Promise<number | null> {
    const { now } = this.#options
    const requestedAt = now()
    const request = { method: 'eth_blockNumber', params: [], parse: parseResult } as const
    const answer = await this.#requestFrom(endpoint, request).catch(() => null)
    return now() - requestedAt > COMPARE_BOUND_MS ? null : readQuantity(answer)
  }

  #backOff(endpoint: Endpoint, error: UpstreamError): void {
    if (this.#isResting(endpoint)) return
    endpoint.failures += 1
    const waitMs =
      error.kind === 'wrong_chain'
        ? WRONG_CHAIN_BACKOFF_MS
        : withJitter(backoffMs(BACKOFF, endpoint.failures), BACKOFF_JITTER, this.#options.random())
    endpoint.isChainChecked = false
    const restMs = Math.round(Math.max(waitMs, error.retryAfterMs ?? 0))
    endpoint.backoffUntil = this.#options.now() + restMs
    if (error.kind === 'unreachable' && error.message === TIMEOUT_MESSAGE) this.#putAside(endpoint, { reason: 'it hangs' })
    const kind = error.kind === 'wrong_chain' ? 'wrong_chain' : 'upstream_failed'
    this.#options.log(kind, { endpoint: hostOf(endpoint.url), error: error.kind, reason: error.message, again_in_ms: restMs })
  }

  /** Checks the chain of an endpoint. Afterwards only an endpoint of another chain is not used for a while. */
  async #confirm(endpoint: Endpoint, askedAfter: number, signal?: AbortSignal): Promise<void> {
    // The current check may have begun before `askedAfter`, so it is awaited and may be repeated.
    await endpoint.confirming?.catch(() => {})
    signal?.throwIfAborted()
    if (endpoint.chainAskedAt > askedAfter) return
    endpoint.confirming ??= this.#checkChain(endpoint, signal).finally(() => {
      endpoint.confirming = null
    })
    try {
      await endpoint.confirming
    } catch (failure) {
      signal?.throwIfAborted()
      // The check ends with the caller that began it, which is no failure of the others: they try again.
      const error = failure instanceof UpstreamError ? failure : new UpstreamError('unreachable', failureReason(failure))
      if (error.kind === 'wrong_chain') this.#backOff(endpoint, error)
      // The error has to be retryable, so that the caller tries again.
      throw error.isRetryable ? error : new UpstreamError('unreadable', `eth_chainId: ${error.message}`)
    }
  }

  /** Checks the chain before the first request and after each failure, since another node may then answer under the URL. */
  async #checkChain(endpoint: Endpoint, signal?: AbortSignal): Promise<void> {
    const askedAt = this.#options.now()
    const request = { method: 'eth_chainId', params: [], parse: parseResult } as const
    const answer = await this.#send(endpoint, request, signal).catch((failure: unknown) => {
      // The operator may choose a node without eth_chainId. Its chain cannot be checked.
      if (failure instanceof UpstreamError && failure.kind === 'unknown_method') return null
      throw failure
    })
    const chainId = readQuantity(answer)
    if (chainId === null && answer !== null) throw new UpstreamError('unreadable', 'eth_chainId is not a number')
    const mismatch = chainId === null ? null : this.#options.chain.checkUrl(endpoint.url, chainId)
    if (mismatch) throw new UpstreamError('wrong_chain', mismatch)
    endpoint.isChainChecked = true
    endpoint.chainAskedAt = askedAt
  }

  async #send<T>(endpoint: Endpoint, request: RpcRequest<T>, signal?: AbortSignal): Promise<T> {
    await this.#options.untilItsTurn?.(signal)
    const id = this.#lastId + 1
    const payload = 'batch' in request ? request.batch.map((call, index) => jsonRpc(call, id + index)) : jsonRpc(request, id)
    this.#lastId += 'batch' in request ? request.batch.length : 1
    const deadline = new AbortController()
    // `AbortSignal.timeout` also fires for an answered request, which costs 0.15 ms each time.
    const timer = setTimeout(() => deadline.abort(timeoutReason()), REQUEST_TIMEOUT_MS)
    const sentAt = this.#options.now()
    let failed: UpstreamErrorKind | null = null
    const bounds = signal ? AbortSignal.any([signal, deadline.signal]) : deadline.signal
    try {
      const { response, body } = await endpoint.exchange(payload, bounds)
      return request.parse(response, body, id)
    } catch (failure) {
      const error = failure instanceof UpstreamError ? failure : new UpstreamError('unreachable', failureReason(failure))
      failed = error.kind
      throw 'batch' in request || isOptional(request, error) ? asRequestSpecific(error) : error
    } finally {
      clearTimeout(timer)
      this.#options.onAnswer?.(hostOf(endpoint.url), (this.#options.now() - sentAt) / 1_000, failed)
    }
  }
}

const NEVER = Number.NEGATIVE_INFINITY
const TIMEOUT_MESSAGE = 'The operation was aborted due to timeout'
const timeoutReason = () => new DOMException(TIMEOUT_MESSAGE, 'TimeoutError')

const jsonRpc = ({ method, params }: Call, id: number): JsonRpcRequest => ({ jsonrpc: '2.0', id, method, params })

/** Whether the endpoint takes no batches, or only shorter ones. */
const isBatchRefusal = ({ kind, isRefused }: UpstreamError): boolean => isRefused || kind === 'too_large'

/** Whether the relay can do without the answer: that to a call, and that to a filter with topics, if the node refuses it. */
const isOptional = ({ method, params: [filter] }: Call, { isAboutFilter }: UpstreamError): boolean =>
  isCallMethod(method) ||
  (isAboutFilter && method === 'eth_getLogs' && typeof filter === 'object' && filter !== null && 'topics' in filter)

/** Makes an error concern one request only. Calls and batches are optional reads, whose failure must not stop required ones. */
const asRequestSpecific = ({ kind, message, retryAfterMs, detail, status }: UpstreamError): UpstreamError =>
  new UpstreamError(kind, message, retryAfterMs, true, detail, status)

export function exchangeWith(url: string): Exchange {
  if (!/^wss?:/.test(url)) return (request, signal) => post(url, request, signal)
  const socket = new RequestSocket(url, ANSWER_BOUND_BYTES)
  // An answer over a WebSocket has no HTTP status, so each one gets this response, with the status 200.
  const response = new Response()
  return async (payload, signal) => ({ response, body: await socket.exchange(payload, signal) })
}

const post = async (url: string, payload: Parameters<Exchange>[0], signal: AbortSignal) => {
  const { address, authHeaders } = splitCredentials(url)
  const response = await fetch(address, {
    method: 'POST',
    headers: { 'content-type': 'application/json', ...authHeaders },
    body: requestText(payload),
    redirect: 'error',
    signal,
  })
  const body = await readResponseBody(response, ANSWER_BOUND_BYTES)
  if (!body) throw new UpstreamError('too_large', `the answer is longer than ${ANSWER_BOUND_BYTES} bytes`)
  return { response, body }
}
