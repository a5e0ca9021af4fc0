import { catchError, defer, from, map, type Observable, of, switchMap, throwError } from 'rxjs'
import { z } from 'zod'
import { HexQuantity } from '../logs/log-schema.ts'
import type { ChainIdentity } from './chain-id.ts'
import { classify, UpstreamError } from './error.ts'
import { type About, isCall, type Method, type Params, type Question } from './methods.ts'
import { resultText } from './raw-result.ts'

/** One question to the node, and its answer. */
export type Ask = <Q extends Question>(method: Q, params: About<Q>) => Observable<unknown>

/** One question that is passed on, and the answer's result in the very bytes in which it came. */
export type Pass = <M extends Method>(method: M, params: Params<M>) => Observable<Buffer>

/** How long one question may take in all, and how long its answer may be. */
const DEADLINE_MS = 5_000
export const ANSWER_BOUND_BYTES = 16 * 2 ** 20
/** A longer answer that is passed on is not read. */
const READ_BOUND_BYTES = 65_536
/** How long an endpoint that failed is left alone: doubled each time, drawn anew each time. */
const REST_LEAST_MS = 250
const REST_MOST_MS = 30_000
/** How long one that is of another chain is left alone. */
const WRONG_CHAIN_REST_MS = 60_000

/** What an error is called that has no code. */
const UNNAMED_CODE = -32_000

/** Either an error or a result: to zod a field that may be anything must still be there. */
const Answer = z.union([
  z.object({
    id: z.unknown(),
    error: z.object({
      // Some nodes write words for a code, or say nothing.
      code: z.number().catch(UNNAMED_CODE),
      message: z.string().catch('the upstream says no more'),
      data: z.unknown().optional(),
    }),
  }),
  z.object({ id: z.unknown(), result: z.unknown() }),
])

/** What is made of an answer; throws what speaks against it. */
type Read<T> = (response: Response, body: Buffer, id: number) => T
type Asked<T> = { readonly method: Question; readonly params: readonly unknown[]; readonly read: Read<T> }

type Endpoint = { readonly url: string; failures: number; restUntil: number; chainChecked: boolean }

type Options = {
  readonly urls: readonly string[]
  /** The chain that every endpoint must be of. */
  readonly chain: ChainIdentity
  readonly now: () => number
  readonly dice: () => number
  readonly say: (kind: string, detail: unknown) => void
  /** Whether a failure speaks against its endpoint; where nothing else is said, whenever it is not about one question. */
  readonly blames?: (error: UpstreamError) => boolean
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

  readonly ask: Ask = (method, params) => this.#askFrom(0, { method, params, read: readResult }, null)

  readonly pass: Pass = (method, params) => this.#askFrom(0, { method, params, read: readText }, null)

  /** Tries the endpoints from the `index`-th on; passes on what the last one that was tried answered. */
  #askFrom<T>(index: number, asked: Asked<T>, before: UpstreamError | null): Observable<T> {
    const endpoint = this.#endpoints[index]
    if (!endpoint) return throwError(() => before ?? new UpstreamError('unreachable', 'every endpoint failed just now'))
    if (this.#options.now() < endpoint.restUntil) return this.#askFrom(index + 1, asked, before)
    return this.#checkChain(endpoint).pipe(
      catchError((failure: unknown) => {
        // Nobody but us asks for that, so it speaks against the endpoint, whoever it was asked for.
        if (failure instanceof UpstreamError) this.#rest(endpoint, failure)
        return throwError(() => failure)
      }),
      switchMap(() => this.#send(endpoint, asked)),
      map((result) => {
        endpoint.failures = 0
        return result
      }),
      catchError((failure: unknown) => {
        const error = failure instanceof UpstreamError ? failure : new UpstreamError('unreachable', String(failure))
        if (!error.passing) return throwError(() => error)
        // An endpoint that lacks one method, or has yet to see one block, is not at fault.
        if (this.#options.blames?.(error) ?? !error.ofQuestion) this.#rest(endpoint, error)
        // One that did not answer is asked something that takes no time before it is asked anything else.
        else if (this.#options.blames && error.kind === 'unreachable') endpoint.chainChecked = false
        return this.#askFrom(index + 1, asked, error)
      }),
    )
  }

  #rest(endpoint: Endpoint, error: UpstreamError): void {
    if (this.#options.now() < endpoint.restUntil) return
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
    return this.#send(endpoint, { method: 'eth_chainId', params: [], read: readResult }).pipe(
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

  #send<T>(endpoint: Endpoint, { method, params, read }: Asked<T>): Observable<T> {
    return defer(() => {
      this.#lastId += 1
      return from(post(endpoint.url, { jsonrpc: '2.0', id: this.#lastId, method, params }, read))
    }).pipe(catchError((failure: unknown) => throwError(() => (isCall(method) ? besides(failure) : failure))))
  }
}

/** What is only asked besides says nothing against an endpoint, however it fails: what is needed must not wait for it. */
const besides = (failure: unknown): unknown =>
  failure instanceof UpstreamError
    ? new UpstreamError(failure.kind, failure.message, failure.retryAfterMs, true, failure.said)
    : failure

/** An upstream's name in our own log: never its path or query, which may hold a key. */
export const nameOf = (url: string): string => new URL(url).host

/** Where a URL leads, and the login in it as a header: `fetch` takes none in a URL, and repeats it all when it says so. */
export function addressed(text: string): {
  readonly address: string
  readonly login: Readonly<Record<string, string>>
} {
  const url = new URL(text)
  const { username, password } = url
  if (username === '' && password === '') return { address: text, login: {} }
  url.username = ''
  url.password = ''
  const login = `${decodeURIComponent(username)}:${decodeURIComponent(password)}`
  return { address: url.href, login: { authorization: `Basic ${Buffer.from(login).toString('base64')}` } }
}

async function post<T>(
  url: string,
  question: { readonly id: number; readonly [field: string]: unknown },
  read: Read<T>,
): Promise<T> {
  const signal = AbortSignal.timeout(DEADLINE_MS)
  let response: Response
  let body: Buffer
  try {
    const { address, login } = addressed(url)
    response = await fetch(address, {
      method: 'POST',
      headers: { 'content-type': 'application/json', ...login },
      body: JSON.stringify(question),
      redirect: 'error',
      signal,
    })
    body = await readBytes(response, ANSWER_BOUND_BYTES)
  } catch (failure) {
    if (failure instanceof UpstreamError) throw failure
    throw new UpstreamError('unreachable', reasonOf(failure))
  }
  return read(response, body, question.id)
}

const readResult: Read<unknown> = (response, body, id) => {
  const answer = Answer.safeParse(parseJson(body.toString('utf8')))
  if (answer.data && 'error' in answer.data) throw classify(response, answer.data.error)
  if (!response.ok) throw classify(response, null)
  if (!answer.success) throw new UpstreamError('unreadable', 'the answer is not JSON-RPC')
  if (answer.data.id !== id) throw new UpstreamError('unreadable', 'the answer has another id')
  return answer.data.result
}

const readText: Read<Buffer> = (response, body, id) => {
  const text = response.ok && body.length > READ_BOUND_BYTES ? resultText(body, id) : null
  return text ?? Buffer.from(JSON.stringify(readResult(response, body, id) ?? null))
}

/** Reads a body up to a bound. */
export const readBounded = async (response: Response, boundBytes: number): Promise<string> =>
  (await readBytes(response, boundBytes)).toString('utf8')

async function readBytes(response: Response, boundBytes: number): Promise<Buffer> {
  const chunks: Uint8Array[] = []
  let length = 0
  for await (const chunk of response.body ?? []) {
    length += chunk.length
    if (length > boundBytes) throw new UpstreamError('too_large', `the answer is longer than ${boundBytes} bytes`)
    chunks.push(chunk)
  }
  return Buffer.concat(chunks)
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
