import { catchError, defer, from, map, type Observable, of, switchMap, throwError } from 'rxjs'
import { z } from 'zod'
import type { ChainIdentity } from './identity.ts'
import { HexQuantity } from './log.ts'
import { type About, isCall, type Question } from './methods.ts'
import { classify, UpstreamError } from './upstream-error.ts'

/** One question to the node, and its answer. */
export type Ask = <Q extends Question>(method: Q, params: About<Q>) => Observable<unknown>

/** How long one question may take in all, and how long its answer may be. */
const DEADLINE_MS = 5_000
const ANSWER_BOUND_BYTES = 16 * 2 ** 20
/** How long an endpoint that failed is left alone: doubled each time, drawn anew each time. */
const REST_LEAST_MS = 250
const REST_MOST_MS = 30_000
/** How long one that is of another chain is left alone. */
const WRONG_CHAIN_REST_MS = 60_000

/** Either an error or a result: to zod a field that may be anything must still be there. */
const Answer = z.union([
  z.object({ id: z.unknown(), error: z.object({ code: z.number(), message: z.string() }) }),
  z.object({ id: z.unknown(), result: z.unknown() }),
])

type Endpoint = { readonly url: string; failures: number; restUntil: number; chainChecked: boolean }

type Options = {
  readonly urls: readonly string[]
  /** The chain that every endpoint must be of. */
  readonly chain: ChainIdentity
  readonly now: () => number
  readonly dice: () => number
  readonly say: (kind: string, detail: unknown) => void
}

/** Asks the endpoints in their order, leaves a failing one alone for a while, and refuses those of another chain. */
export class Rpc {
  readonly #options: Options
  readonly #endpoints: readonly Endpoint[]
  #lastId = 0

  constructor(options: Options) {
    this.#options = options
    this.#endpoints = options.urls.map((url) => ({ url, failures: 0, restUntil: 0, chainChecked: false }))
  }

  readonly ask: Ask = (method, params) => this.#askFrom(0, method, params, null)

  /** Tries the endpoints from the `index`-th on; passes on what the last one that was tried answered. */
  #askFrom(
    index: number,
    method: Question,
    params: readonly unknown[],
    before: UpstreamError | null,
  ): Observable<unknown> {
    const endpoint = this.#endpoints[index]
    if (!endpoint) return throwError(() => before ?? new UpstreamError('unreachable', 'every endpoint failed just now'))
    if (this.#options.now() < endpoint.restUntil) return this.#askFrom(index + 1, method, params, before)
    return this.#checkChain(endpoint).pipe(
      switchMap(() => this.#send(endpoint, method, params)),
      map((result) => {
        endpoint.failures = 0
        return result
      }),
      catchError((failure: unknown) => {
        const error = failure instanceof UpstreamError ? failure : new UpstreamError('unreachable', String(failure))
        if (!error.passing) return throwError(() => error)
        // An endpoint that lacks one method, or has yet to see one block, is not at fault.
        if (!error.ofQuestion) this.#rest(endpoint, error)
        return this.#askFrom(index + 1, method, params, error)
      }),
    )
  }

  #rest(endpoint: Endpoint, error: UpstreamError): void {
    const rest =
      error.kind === 'wrong_chain'
        ? WRONG_CHAIN_REST_MS
        : Math.min(REST_MOST_MS, REST_LEAST_MS * 2 ** Math.min(endpoint.failures, 16)) * (0.5 + this.#options.dice())
    endpoint.failures += 1
    endpoint.chainChecked = false
    endpoint.restUntil = this.#options.now() + Math.max(rest, error.retryAfterMs ?? 0)
    this.#options.say(`upstream ${error.kind}`, { endpoint: nameOf(endpoint.url), message: error.message })
  }

  /** Asked once after each failure: what answers under a name may have changed. */
  #checkChain(endpoint: Endpoint): Observable<unknown> {
    if (endpoint.chainChecked) return of(null)
    return this.#send(endpoint, 'eth_chainId', []).pipe(
      map((answer) => {
        const said = HexQuantity.safeParse(answer)
        if (!said.success && answer !== null) throw new UpstreamError('unreadable', 'eth_chainId is not a number')
        return said.data ?? null
      }),
      // A node that serves no more than the seven methods cannot be asked; the operator chose it.
      catchError((failure: unknown) =>
        failure instanceof UpstreamError && failure.kind === 'unknown_method' ? of(null) : throwError(() => failure),
      ),
      map((said) => {
        const objection = said === null ? null : this.#options.chain.objection(said)
        if (objection) throw new UpstreamError('wrong_chain', objection)
        endpoint.chainChecked = true
      }),
    )
  }

  #send(endpoint: Endpoint, method: Question, params: readonly unknown[]): Observable<unknown> {
    return defer(() => {
      this.#lastId += 1
      return from(post(endpoint.url, { jsonrpc: '2.0', id: this.#lastId, method, params }))
    }).pipe(catchError((failure: unknown) => throwError(() => (isCall(method) ? besides(failure) : failure))))
  }
}

/** What is only asked besides says nothing against an endpoint, however it fails: what is needed must not wait for it. */
const besides = (failure: unknown): unknown =>
  failure instanceof UpstreamError
    ? new UpstreamError(failure.kind, failure.message, failure.retryAfterMs, true)
    : failure

/** An upstream's name in our own log: never its path or query, which may hold a key. */
export const nameOf = (url: string): string => new URL(url).host

async function post(
  url: string,
  question: { readonly id: number; readonly [field: string]: unknown },
): Promise<unknown> {
  const signal = AbortSignal.timeout(DEADLINE_MS)
  let response: Response
  let body: string
  try {
    response = await fetch(url, {
      method: 'POST',
      headers: { 'content-type': 'application/json' },
      body: JSON.stringify(question),
      redirect: 'error',
      signal,
    })
    body = await readBounded(response, ANSWER_BOUND_BYTES)
  } catch (failure) {
    if (failure instanceof UpstreamError) throw failure
    throw new UpstreamError('unreachable', reasonOf(failure))
  }
  const answer = Answer.safeParse(parseJson(body))
  if (answer.data && 'error' in answer.data) throw classify(response, answer.data.error)
  if (!response.ok) throw classify(response, null)
  if (!answer.success) throw new UpstreamError('unreadable', 'the answer is not JSON-RPC')
  if (answer.data.id !== question.id) throw new UpstreamError('unreadable', 'the answer has another id')
  return answer.data.result
}

/** Reads a body up to a bound. */
export async function readBounded(response: Response, boundBytes: number): Promise<string> {
  const chunks: Uint8Array[] = []
  let length = 0
  for await (const chunk of response.body ?? []) {
    length += chunk.length
    if (length > boundBytes) throw new UpstreamError('too_large', `the answer is longer than ${boundBytes} bytes`)
    chunks.push(chunk)
  }
  return Buffer.concat(chunks).toString('utf8')
}

/** JSON or null: what is not JSON says nothing. */
export function parseJson(text: string): unknown {
  try {
    return JSON.parse(text)
  } catch {
    return null
  }
}

/** What is wrong, in the words of the layer that knows: `fetch` hides it in the cause. */
export function reasonOf(failure: unknown): string {
  if (!(failure instanceof Error)) return String(failure)
  return failure.cause instanceof Error && failure.cause.message ? failure.cause.message : failure.message
}
