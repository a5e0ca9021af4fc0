import type { Update } from '../generated/messages.ts'
import { filterParameters, type ValueFilters } from '../generated/names.ts'
import { ConnectionError, type ErrorBody, mayRetry, RelayError, type StocktapeError } from './errors.ts'
import { digestOf } from './receipts.ts'
import type { ConnectOptions, RetryOptions, StreamOptions } from './stream-types.ts'

const REQUEST_BOUND_MS = 30_000
/** The limit for a relay that has never answered, which may be at another URL. */
const FIRST_ANSWER_BOUND_MS = 4_000
/** Limit on the wait before a retry, even if the relay asks for more. */
const WAIT_BOUND_MS = 20_000
/** Number of times to retry a request that failed or was refused temporarily. */
const RETRIES_BOUND = 4
const RETRY_MS = 1_000
const KEY_BOUND_MS = 30_000

export type Http = {
  /** Returns the URL of a path of the relay, which begins with `/`. The relay may be served below a path of its host, such as `/tape/`. */
  readonly urlOf: (path: string, query?: URLSearchParams) => URL
  readonly getKey: () => Promise<string | undefined>
  /** Sends a request with the API key. Throws the refusal of the relay, or a `ConnectionError`. */
  readonly request: (url: URL, signal: AbortSignal) => Promise<Response>
  /** Requests a text and reads it, as JSON by default. Repeats the request if a failure may pass. */
  readonly get: <Body>(path: string, query?: URLSearchParams, signal?: AbortSignal, read?: ReadText<Body>) => Promise<Body>
  readonly digestOf: typeof digestOf
  readonly errorOf: (code: ConnectionError['code'], cause: unknown, retryAfterMs?: number) => ConnectionError
  readonly retry: RetryOptions | undefined
  /** Asks whether the relay is there. Returns what is wrong, or null. */
  readonly probe: () => Promise<StocktapeError | null>
  /** Whether the relay has answered before. Until then, a connection that fails probably has a wrong URL. */
  isKnown: boolean
}

export type ReadText<Body> = (text: string) => Body | Promise<Body>

export function createHttp(given: string | URL, { key, retry, fetch: send = globalThis.fetch }: ConnectOptions): Http {
  const getOnce = async <Body>(path: string, query?: URLSearchParams, signal?: AbortSignal, read: ReadText<Body> = JSON.parse) => {
    const url = http.urlOf(path, query)
    const deadline = AbortSignal.timeout(http.isKnown ? REQUEST_BOUND_MS : FIRST_ANSWER_BOUND_MS)
    const response = await http.request(url, signal ? AbortSignal.any([signal, deadline]) : deadline)
    const body = await response
      .text()
      .then(read)
      .catch((failure) => {
        throw failureOf(failure)
      })
    http.isKnown = true
    return body
  }
  /** Returns the error of a request that failed. A body that is not JSON is the answer of another server. */
  const failureOf = (failure: Error): ConnectionError => {
    const { name } = failure
    return http.errorOf(name === 'TimeoutError' ? 'timeout' : name === 'SyntaxError' ? 'not_a_relay' : 'unreachable', failure)
  }
  const http: Http = {
    digestOf,
    retry,
    errorOf: (code, cause, retryAfterMs) => new ConnectionError(code, given, cause, retryAfterMs),
    isKnown: false,
    urlOf: (path, query) => {
      // The scheme of a WebSocket names the same relay.
      const text = String(given).replace(/^ws/i, 'http')
      if (!/^https?:/i.test(text) || !URL.canParse(text)) throw http.errorOf('bad_url', null)
      const url = new URL(text)
      url.pathname = url.pathname.replace(/\/?$/, path)
      url.search = String(query ?? '')
      url.hash = ''
      return url
    },
    getKey: async () => {
      if (typeof key !== 'function') return key
      try {
        const late = AbortSignal.timeout(KEY_BOUND_MS)
        return await Promise.race([
          key(),
          new Promise<never>((_, reject) => late.addEventListener('abort', () => reject(late.reason))),
        ])
      } catch (cause) {
        throw http.errorOf('no_key', cause)
      }
    },
    request: async (url, signal) => {
      const key = await http.getKey()
      const headers: Record<string, string> = key ? { authorization: `Bearer ${key}` } : {}
      const response = await send(url, { headers, signal }).catch((failure) => {
        throw failureOf(failure)
      })
      if (response.ok) return response
      throw await refusalOf(response, http)
    },
    get: async (path, query, signal, read) => {
      for (let retries = 0; ; retries += 1) {
        try {
          return await getOnce(path, query, signal, read)
        } catch (failure) {
          signal?.throwIfAborted()
          const error = failure as StocktapeError
          if (!mayRetry(error, retries, http, RETRIES_BOUND)) throw error
          await wait(Math.min(error.retryAfterMs || RETRY_MS, WAIT_BOUND_MS), signal)
        }
      }
    },
    probe: () =>
      getOnce('/v1/status', undefined, AbortSignal.timeout(FIRST_ANSWER_BOUND_MS)).then(
        () => null,
        (failure: StocktapeError) => failure,
      ),
  }
  return http
}

/** Returns the error of an answer that is not OK. A refusal of the relay has a body that says why; a proxy's has none. */
async function refusalOf(response: Response, http: Http): Promise<StocktapeError> {
  const { status, headers } = response
  const retryAfterMs = 1_000 * Number(headers.get('retry-after')) || 0
  const body = (await response.json().catch(() => ({}))) as ErrorBody
  if (body.reason || status === 401 || status === 403) return new RelayError(status, body, retryAfterMs)
  return http.errorOf(status === 429 || status >= 500 ? 'unavailable' : 'not_a_relay', `HTTP ${status}`, retryAfterMs)
}

const wait = (ms: number, signal?: AbortSignal) =>
  new Promise<void>((resolve) => {
    const end = () => {
      clearTimeout(timer)
      signal?.removeEventListener('abort', end)
      resolve()
    }
    const timer = setTimeout(end, ms)
    signal?.addEventListener('abort', end)
  })

export type SelectionFilters = Pick<StreamOptions<Update['type']>, 'types' | 'stage' | keyof ValueFilters>

export function selectionQuery(symbols: string | readonly string[], options: SelectionFilters): URLSearchParams {
  const query = new URLSearchParams({ symbols: String(symbols) })
  for (const [option, name] of filterParameters) setGiven(query, { [name]: options[option] })
  return setGiven(query, { types: options.types, stage: options.stage })
}

/** Sets the parameters whose value is not undefined. */
export function setGiven(query: URLSearchParams, given: Readonly<Record<string, unknown>>): URLSearchParams {
  for (const [name, value] of Object.entries(given))
    if (value !== undefined) query.set(name, value instanceof Date ? value.toISOString() : String(value))
  return query
}
