import { catchError, defer, from, map, type Observable, of, switchMap, throwError } from 'rxjs'
import { z } from 'zod'
import { backoffMs, withJitter } from '../../backoff.ts'
import { HexQuantity } from '../logs/log-schema.ts'
import type { ChainIdentity } from './chain-id.ts'
import { classify, UpstreamError } from './error.ts'
import { isCallMethod, type Method, type NodeMethod, type NodeParams, type Params } from './method-params.ts'
import { sliceResult } from './raw-result.ts'

/** One JSON-RPC request to the node, and its result. */
export type RequestFn = <Q extends NodeMethod>(method: Q, params: NodeParams<Q>) => Observable<unknown>

/** One forwarded request, and its result in the bytes that the node sent. */
export type RawRequestFn = <M extends Method>(method: M, params: Params<M>) => Observable<Buffer>

const REQUEST_TIMEOUT_MS = 5_000
export const ANSWER_BOUND_BYTES = 16 * 2 ** 20
/** A longer answer is forwarded without parsing. */
const PARSE_BOUND_BYTES = 65_536
/** How long a failed endpoint is not used. */
const BACKOFF = { minMs: 250, maxMs: 30_000 }
const BACKOFF_JITTER = [0.5, 1.5] as const
/** How long an endpoint of another chain is not used. */
const WRONG_CHAIN_BACKOFF_MS = 60_000

/** The code of an error that has none. */
const UNKNOWN_ERROR_CODE = -32_000

/** An error or a result. `result` may be anything, but zod still requires it to be present. */
const Answer = z.union([
  z.object({
    id: z.unknown(),
    error: z.object({
      // Some nodes send text as a code, or no code.
      code: z.number().catch(UNKNOWN_ERROR_CODE),
      message: z.string().catch('the upstream gives no message'),
      data: z.unknown().optional(),
    }),
  }),
  z.object({ id: z.unknown(), result: z.unknown() }),
])

/** Reads an answer; throws an `UpstreamError` if it is unusable. */
type ParseAnswer<T> = (response: Response, body: Buffer, id: number) => T
type RpcRequest<T> = { readonly method: NodeMethod; readonly params: readonly unknown[]; readonly parse: ParseAnswer<T> }

type Endpoint = { readonly url: string; failures: number; backoffUntil: number; isChainChecked: boolean }

type Options = {
  readonly urls: readonly string[]
  /** The chain that every endpoint must be of. */
  readonly chain: ChainIdentity
  readonly now: () => number
  readonly random: () => number
  readonly warn: (kind: string, detail: unknown) => void
  /** Whether a failure is the endpoint's fault. By default it is, unless it concerns one request. */
  readonly isEndpointFault?: (error: UpstreamError) => boolean
}

/** Tries the endpoints in order, backs off from a failing one, and refuses those of another chain. */
export class Rpc {
  readonly #options: Options
  readonly #endpoints: readonly Endpoint[]
  #lastId = 0

  constructor(options: Options) {
    this.#options = options
    this.#endpoints = options.urls.map((url) => ({ url, failures: 0, backoffUntil: 0, isChainChecked: false }))
  }

  readonly request: RequestFn = (method, params) => this.#requestFrom(0, { method, params, parse: parseResult }, null)

  readonly requestRaw: RawRequestFn = (method, params) => this.#requestFrom(0, { method, params, parse: parseRawResult }, null)

  /** Tries the endpoints from this index on; fails with the error of the last one tried. */
  #requestFrom<T>(index: number, request: RpcRequest<T>, lastError: UpstreamError | null): Observable<T> {
    const endpoint = this.#endpoints[index]
    if (!endpoint) return throwError(() => lastError ?? new UpstreamError('unreachable', 'every endpoint failed recently'))
    if (this.#options.now() < endpoint.backoffUntil) return this.#requestFrom(index + 1, request, lastError)
    return this.#checkChain(endpoint).pipe(
      catchError((failure: unknown) => {
        // The relay itself sends this request, so a failure is always the endpoint's fault.
        if (failure instanceof UpstreamError) this.#backOff(endpoint, failure)
        return throwError(() => failure)
      }),
      switchMap(() => this.#send(endpoint, request)),
      map((result) => {
        endpoint.failures = 0
        return result
      }),
      catchError((failure: unknown) => {
        const error = failure instanceof UpstreamError ? failure : new UpstreamError('unreachable', String(failure))
        if (!error.isRetryable) return throwError(() => error)
        // An endpoint that lacks one method or one block is not at fault.
        if (this.#options.isEndpointFault?.(error) ?? !error.isRequestSpecific) this.#backOff(endpoint, error)
        // After a timeout a cheap request has to succeed before the next expensive one.
        else if (this.#options.isEndpointFault && error.kind === 'unreachable') endpoint.isChainChecked = false
        return this.#requestFrom(index + 1, request, error)
      }),
    )
  }

  #backOff(endpoint: Endpoint, error: UpstreamError): void {
    if (this.#options.now() < endpoint.backoffUntil) return
    endpoint.failures += 1
    const waitMs =
      error.kind === 'wrong_chain'
        ? WRONG_CHAIN_BACKOFF_MS
        : withJitter(backoffMs(BACKOFF, endpoint.failures), BACKOFF_JITTER, this.#options.random())
    endpoint.isChainChecked = false
    endpoint.backoffUntil = this.#options.now() + Math.max(waitMs, error.retryAfterMs ?? 0)
    this.#options.warn(`upstream ${error.kind}`, { endpoint: hostOf(endpoint.url), message: error.message })
  }

  /** Checked again after each failure: another node may now answer under the same URL. */
  #checkChain(endpoint: Endpoint): Observable<unknown> {
    if (endpoint.isChainChecked) return of(null)
    return this.#send(endpoint, { method: 'eth_chainId', params: [], parse: parseResult }).pipe(
      map((answer) => {
        const chainId = HexQuantity.safeParse(answer)
        if (!chainId.success && answer !== null) throw new UpstreamError('unreadable', 'eth_chainId is not a number')
        return chainId.data ?? null
      }),
      // A node that serves only the seven required methods cannot be checked; the operator chose it.
      catchError((failure: unknown) =>
        failure instanceof UpstreamError && failure.kind === 'unknown_method' ? of(null) : throwError(() => failure),
      ),
      map((chainId) => {
        const mismatch = chainId === null ? null : this.#options.chain.findMismatch(chainId)
        if (mismatch) throw new UpstreamError('wrong_chain', mismatch)
        endpoint.isChainChecked = true
      }),
    )
  }

  #send<T>(endpoint: Endpoint, { method, params, parse }: RpcRequest<T>): Observable<T> {
    return defer(() => {
      this.#lastId += 1
      return from(post(endpoint.url, { jsonrpc: '2.0', id: this.#lastId, method, params }, parse))
    }).pipe(catchError((failure: unknown) => throwError(() => (isCallMethod(method) ? asRequestSpecific(failure) : failure))))
  }
}

/** Calls are optional reads. Their failures must not make an endpoint unavailable for required reads. */
const asRequestSpecific = (failure: unknown): unknown =>
  failure instanceof UpstreamError
    ? new UpstreamError(failure.kind, failure.message, failure.retryAfterMs, true, failure.detail)
    : failure

/** An upstream's name for logs, without path and query, which may hold a key. */
export const hostOf = (url: string): string => new URL(url).host

/** Moves credentials from a URL to a header. `fetch` refuses them in a URL, and its error repeats the whole URL. */
export function splitCredentials(text: string): {
  readonly address: string
  readonly authHeaders: Readonly<Record<string, string>>
} {
  const url = new URL(text)
  const { username, password } = url
  if (username === '' && password === '') return { address: text, authHeaders: {} }
  url.username = ''
  url.password = ''
  const credentials = `${decodeURIComponent(username)}:${decodeURIComponent(password)}`
  return { address: url.href, authHeaders: { authorization: `Basic ${Buffer.from(credentials).toString('base64')}` } }
}

async function post<T>(
  url: string,
  request: { readonly id: number; readonly [field: string]: unknown },
  parse: ParseAnswer<T>,
): Promise<T> {
  const signal = AbortSignal.timeout(REQUEST_TIMEOUT_MS)
  let response: Response
  let body: Buffer
  try {
    const { address, authHeaders } = splitCredentials(url)
    response = await fetch(address, {
      method: 'POST',
      headers: { 'content-type': 'application/json', ...authHeaders },
      body: JSON.stringify(request),
      redirect: 'error',
      signal,
    })
    body = await readBody(response, ANSWER_BOUND_BYTES)
  } catch (failure) {
    if (failure instanceof UpstreamError) throw failure
    throw new UpstreamError('unreachable', failureReason(failure))
  }
  return parse(response, body, request.id)
}

const parseResult: ParseAnswer<unknown> = (response, body, id) => {
  const answer = Answer.safeParse(parseJson(body.toString('utf8')))
  if (answer.data && 'error' in answer.data) throw classify(response, answer.data.error)
  if (!response.ok) throw classify(response, null)
  if (!answer.success) throw new UpstreamError('unreadable', 'the answer is not JSON-RPC')
  if (answer.data.id !== id) throw new UpstreamError('unreadable', 'the answer has another id')
  return answer.data.result
}

const parseRawResult: ParseAnswer<Buffer> = (response, body, id) => {
  const text = response.ok && body.length > PARSE_BOUND_BYTES ? sliceResult(body, id) : null
  return text ?? Buffer.from(JSON.stringify(parseResult(response, body, id) ?? null))
}

async function readBody(response: Response, boundBytes: number): Promise<Buffer> {
  const chunks: Uint8Array[] = []
  let length = 0
  for await (const chunk of response.body ?? []) {
    length += chunk.length
    if (length > boundBytes) throw new UpstreamError('too_large', `the answer is longer than ${boundBytes} bytes`)
    chunks.push(chunk)
  }
  return Buffer.concat(chunks)
}

/** Null if the text is not JSON. */
export function parseJson(text: string): unknown {
  try {
    return JSON.parse(text)
  } catch {
    return null
  }
}

/** The most specific reason: `fetch` hides it in the cause. */
export function failureReason(failure: unknown): string {
  if (!(failure instanceof Error)) return String(failure)
  return failure.cause instanceof Error && failure.cause.message ? failure.cause.message : failure.message
}
