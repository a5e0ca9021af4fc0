import { backoffMs, withJitter } from '../../../lib/backoff.ts'
import { readQuantity } from '../../../lib/hex.ts'
import { failureReason, hostOf, readResponseBody, splitCredentials } from '../../../lib/http-fetch.ts'
import { chunk } from '../../../lib/turns.ts'
import { isCallMethod, type Method, type NodeMethod, type NodeParams, type Params } from '../../../protocol/json-rpc-methods.ts'
import type { ChainIdentity } from './chain-id.ts'
import { RequestSocket } from './request-socket.ts'
import { type JsonRpcRequest, requestText } from './request-text.ts'
import { type BatchAnswer, type ParseAnswer, parseBatch, parseLogsResult, parseRawResult, parseResult } from './rpc-answer.ts'
import { UpstreamError, type UpstreamErrorKind } from './upstream-error.ts'

/** One JSON-RPC request to the node, and its result. A long list of logs may be a `LongList`. */
export type RequestFn = <Q extends NodeMethod>(method: Q, params: NodeParams<Q>, signal?: AbortSignal) => Promise<unknown>

/** A request of a batch. */
export type BatchRequest = { readonly [Q in NodeMethod]: { readonly method: Q; readonly params: NodeParams<Q> } }[NodeMethod]

/** Several requests to one endpoint, which it reads in this order: the answer of each. */
export type RequestBatchFn = (requests: readonly BatchRequest[], signal?: AbortSignal) => Promise<readonly BatchAnswer[]>

/**
 * Waits until each endpoint that answered since `answeredSince` has said of which chain it is, when asked after `askedAfter`. Fails
 * if it is of another one, or does not say.
 */
export type ConfirmChain = (answers: { readonly answeredSince: number; readonly askedAfter: number }) => Promise<void>

/** One forwarded request, and its result in the bytes that the node sent. */
export type RawRequestFn = <M extends Method>(method: M, params: Params<M>, signal?: AbortSignal) => Promise<Buffer>

export const REQUEST_TIMEOUT_MS = 5_000
export const ANSWER_BOUND_BYTES = 16 * 2 ** 20
/** How long a failed endpoint is not used. */
const BACKOFF = { minMs: 250, maxMs: 30_000 }
const BACKOFF_JITTER = [0.5, 1.5] as const
/** How long an endpoint of another chain is not used. */
const WRONG_CHAIN_BACKOFF_MS = 60_000
/** How often the heads of the endpoints are compared. An answer that takes longer is not: the chain moves on meanwhile. */
const COMPARE_INTERVAL_MS = 10_000
const COMPARE_BOUND_MS = 1_000
/** How long an endpoint gets no batch after it refused one, and how many of its requests go out at once then. */
const BATCHES_REFUSED_MS = 600_000
const SINGLES_BOUND = 8
/** An endpoint further behind the newest head is asked after the others. */
const LAG_BOUND_BLOCKS = 5
/** How long an endpoint is asked after the others: longer each time, unless it was asked first for the longest time. */
const ASIDE = { minMs: 60_000, maxMs: 3_600_000 }

type Call = { readonly method: NodeMethod; readonly params: readonly unknown[] }
type RpcRequest<T> = (Call | { readonly batch: readonly Call[] }) & { readonly parse: ParseAnswer<T> }

/** Sends one request or one batch to an endpoint. */
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
  /** When it was last asked for its chain and named the right one, and when it last answered any request. */
  chainAskedAt: number
  answeredAt: number
  /** Under way: its chain is asked for beside the requests. */
  confirming: Promise<void> | null
  /** Until when it is asked after the others, and how often in a row that was so. */
  asideUntil: number
  asideTimes: number
  /** Until when its batches are sent as single requests. */
  batchesRefusedUntil: number
  /** Its head in the last comparison, if another one was newer. */
  headBehind: number | null
}

type Options = {
  readonly urls: readonly string[]
  /** The chain that every endpoint must be of. */
  readonly chain: ChainIdentity
  readonly now: () => number
  readonly random: () => number
  readonly warn: (kind: string, detail: unknown) => void
  /** Whether a failure is the endpoint's fault. By default it is, unless it concerns one request. */
  readonly isEndpointFault?: (error: UpstreamError) => boolean
  /** Receives the host of each request's endpoint, its duration, and why it failed. */
  readonly onAnswer?: (endpoint: string, seconds: number, failed: UpstreamErrorKind | null) => void
  /** The way to an endpoint. By default it is HTTP or WebSocket, by the scheme of the URL. */
  readonly exchange?: (url: string) => Exchange
}

/** Tries the endpoints in order, those that lag or hang last, backs off from a failing one, and refuses those of another chain. */
export class EndpointPool {
  readonly #options: Options
  readonly #endpoints: readonly Endpoint[]
  #lastId = 0
  #comparedAt: number

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

  /** A batch is answered by one endpoint, since its answers are compared with each other. */
  readonly requestBatch: RequestBatchFn = async (batch, signal) => {
    let lastError = new UpstreamError('unreachable', 'every endpoint failed recently')
    for (const endpoint of this.#inOrder()) {
      if (this.#isResting(endpoint)) continue
      try {
        return await this.#batchFrom(endpoint, batch, signal)
      } catch (failure) {
        signal?.throwIfAborted()
        if (!(failure instanceof UpstreamError && failure.isRetryable)) throw failure
        lastError = failure
      }
    }
    throw lastError
  }

  readonly confirmChain: ConfirmChain = async ({ answeredSince, askedAfter }) => {
    const endpoints = this.#endpoints.filter(({ answeredAt }) => answeredAt >= answeredSince)
    await Promise.all(endpoints.map((endpoint) => this.#confirm(endpoint, askedAfter)))
  }

  /** What the first endpoint answers is of no use: the others are asked before it for a while. */
  readonly leaveEndpoint = (): void => {
    const [first] = this.#inOrder()
    if (first) this.#putAside(first, { reason: 'its answers are of no use' })
  }

  /** Tries one endpoint after the other; fails with the error of the last one tried. */
  async #request<T>(request: RpcRequest<T>, signal?: AbortSignal): Promise<T> {
    let lastError = new UpstreamError('unreachable', 'every endpoint failed recently')
    for (const endpoint of this.#inOrder()) {
      if (this.#isResting(endpoint)) continue
      try {
        const result = await this.#requestFrom(endpoint, request, signal)
        this.#compareHeads()
        return result
      } catch (failure) {
        signal?.throwIfAborted()
        if (!(failure instanceof UpstreamError && failure.isRetryable)) throw failure
        lastError = failure
        this.#recordFailure(endpoint, lastError)
      }
    }
    throw lastError
  }

  async #requestFrom<T>(endpoint: Endpoint, request: RpcRequest<T>, signal?: AbortSignal): Promise<T> {
    const isWrong = () => this.#options.chain.isWrong([endpoint.url])
    try {
      // Another part of the process may have found it to be of another chain.
      if (!endpoint.isChainChecked || isWrong()) await this.#checkChain(endpoint, signal)
    } catch (failure) {
      signal?.throwIfAborted()
      // The relay itself sends this request, so a failure is always the endpoint's fault.
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
      this.#options.warn('upstream refuses batches', { endpoint: hostOf(endpoint.url), reason: failure.message })
      return this.#singlesFrom(endpoint, batch, signal)
    }
  }

  /** The first request goes before all others and the last one after them. Fails only if the first one does. */
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

  /** First those that are not aside, in the order of the URLs; then the one that is so for the shortest time. */
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
    this.#options.warn('upstream put aside', { endpoint: hostOf(endpoint.url), ...detail })
  }

  #recordFailure(endpoint: Endpoint, error: UpstreamError): void {
    const { isEndpointFault } = this.#options
    // An endpoint that lacks one method or one block is not at fault.
    if (isEndpointFault?.(error) ?? !error.isRequestSpecific) this.#backOff(endpoint, error)
    // After a timeout a cheap request has to succeed before the next expensive one.
    else if (isEndpointFault && error.kind === 'unreachable') endpoint.isChainChecked = false
  }

  #isResting({ backoffUntil }: Endpoint): boolean {
    return this.#options.now() < backoffUntil
  }

  /** Finds the endpoints that lag behind or stand still, beside the requests. */
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
        // Where the chain stands still too, the lag does not grow.
        else if (standsStill) this.#putAside(endpoint, { reason: 'it stands still', head, newest })
      }
    }
    void Promise.all(endpoints.map((endpoint) => this.#headOf(endpoint))).then(compare)
  }

  /** Null if the endpoint does not answer in time: its next request shows what is wrong with it. */
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
    endpoint.backoffUntil = this.#options.now() + Math.max(waitMs, error.retryAfterMs ?? 0)
    if (error.kind === 'unreachable' && error.message === TIMEOUT_MESSAGE) this.#putAside(endpoint, { reason: 'it hangs' })
    this.#options.warn(`upstream ${error.kind}`, { endpoint: hostOf(endpoint.url), message: error.message })
  }

  /** An endpoint that does not say its chain stays in use, unlike one of another chain. */
  async #confirm(endpoint: Endpoint, askedAfter: number): Promise<void> {
    // A request that is under way may have been sent too early.
    await endpoint.confirming?.catch(() => {})
    if (endpoint.chainAskedAt > askedAfter) return
    endpoint.confirming ??= this.#checkChain(endpoint).finally(() => {
      endpoint.confirming = null
    })
    try {
      await endpoint.confirming
    } catch (failure) {
      if (!(failure instanceof UpstreamError)) throw failure
      if (failure.kind === 'wrong_chain') this.#backOff(endpoint, failure)
      // The step that asked is tried again, whatever the endpoint says of this method.
      throw failure.isRetryable ? failure : new UpstreamError('unreadable', `eth_chainId: ${failure.message}`)
    }
  }

  /** Checked again after each failure: another node may now answer under the same URL. */
  async #checkChain(endpoint: Endpoint, signal?: AbortSignal): Promise<void> {
    const askedAt = this.#options.now()
    const chainId = await this.#chainIdOf(endpoint, signal)
    const mismatch = chainId === null ? null : this.#options.chain.checkUrl(endpoint.url, chainId)
    if (mismatch) throw new UpstreamError('wrong_chain', mismatch)
    endpoint.isChainChecked = true
    endpoint.chainAskedAt = askedAt
  }

  /** Null from a node that serves only the seven required methods: it cannot be checked, and the operator chose it. */
  async #chainIdOf(endpoint: Endpoint, signal?: AbortSignal): Promise<number | null> {
    try {
      const answer = await this.#send(endpoint, { method: 'eth_chainId', params: [], parse: parseResult }, signal)
      const chainId = readQuantity(answer)
      if (chainId === null && answer !== null) throw new UpstreamError('unreadable', 'eth_chainId is not a number')
      return chainId
    } catch (failure) {
      if (failure instanceof UpstreamError && failure.kind === 'unknown_method') return null
      throw failure
    }
  }

  async #send<T>(endpoint: Endpoint, request: RpcRequest<T>, signal?: AbortSignal): Promise<T> {
    const id = this.#lastId + 1
    const payload = 'batch' in request ? request.batch.map((call, index) => jsonRpc(call, id + index)) : jsonRpc(request, id)
    this.#lastId += 'batch' in request ? request.batch.length : 1
    const deadline = new AbortController()
    // `AbortSignal.timeout` also fires for an answered request, and each time costs 0.15 ms.
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
      throw 'batch' in request || isCallMethod(request.method) ? asRequestSpecific(error) : error
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

/** Whether the endpoint does not take batches, or none so long. */
const isBatchRefusal = ({ kind, isRefused }: UpstreamError): boolean => isRefused || kind === 'too_large'

/** Calls and batches are optional reads. Their failures must not make an endpoint unavailable for required reads. */
const asRequestSpecific = ({ kind, message, retryAfterMs, detail }: UpstreamError): UpstreamError =>
  new UpstreamError(kind, message, retryAfterMs, true, detail)

/** The way to an endpoint and back, by the scheme of its URL. */
export function exchangeWith(url: string): Exchange {
  if (!/^wss?:/.test(url)) return (request, signal) => post(url, request, signal)
  const socket = new RequestSocket(url, ANSWER_BOUND_BYTES)
  // Only HTTP answers have a status of their own.
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
