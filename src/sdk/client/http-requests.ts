import type { Update } from '../generated/messages.ts'
import { filterParameters, type ValueFilters } from '../generated/names.ts'
import { ConnectionError, type ErrorBody, isTemporary, RelayError, StocktapeError } from './errors.ts'
import type { ConnectOptions, StreamOptions } from './stream-types.ts'

const REQUEST_BOUND_MS = 30_000
/** The limit for a relay that has never answered, which may be at another URL. */
const FIRST_ANSWER_BOUND_MS = 4_000
/** Limit on the wait before a retry, even if the relay asks for more. */
const WAIT_BOUND_MS = 20_000
/** Number of times to retry a request that failed or was refused temporarily. */
const RETRIES_BOUND = 4
const RETRY_MS = 1_000

export type Http = {
  /** Returns the URL of a path of the relay. The relay may be served below a path of its host, such as `/tape/`. */
  readonly urlOf: (path: string, query?: URLSearchParams) => URL
  readonly getKey: () => Promise<string | undefined>
  /** Sends a request with the API key. Throws the refusal of the relay, or a `ConnectionError`. */
  readonly request: (url: URL, accept: string, signal: AbortSignal) => Promise<Response>
  /** Requests JSON, and repeats the request if a failure may pass. */
  readonly getJson: <Body>(path: string, query?: URLSearchParams, signal?: AbortSignal) => Promise<Body>
  /** Asks whether the relay is there. Returns what is wrong, or null. */
  readonly probe: () => Promise<StocktapeError | null>
  /** Whether the relay has answered before. Until then, a connection that fails probably has a wrong URL. */
  isKnown: boolean
}

export function createHttp(given: string | URL, { key, retry, fetch: send = globalThis.fetch }: ConnectOptions): Http {
  const base = readUrl(given)
  const readJson = async (path: string, query?: URLSearchParams, signal?: AbortSignal): Promise<unknown> => {
    const url = http.urlOf(path, query)
    const deadline = AbortSignal.timeout(http.isKnown ? REQUEST_BOUND_MS : FIRST_ANSWER_BOUND_MS)
    const response = await http.request(url, 'application/json', signal ? AbortSignal.any([signal, deadline]) : deadline)
    const body: unknown = await response.json().catch((failure) => {
      throw connectionErrorOf(failure, given)
    })
    http.isKnown = true
    return body
  }
  const http: Http = {
    isKnown: false,
    urlOf: (path, query) => {
      if (base instanceof ConnectionError) throw base
      return new URL(path.replace(/^\//, '') + (query?.size ? `?${query}` : ''), base)
    },
    getKey: async () => {
      if (typeof key !== 'function') return key
      try {
        return await key()
      } catch (cause) {
        throw new ConnectionError('no_key', given, cause)
      }
    },
    request: async (url, accept, signal) => {
      const key = await http.getKey()
      const headers = { accept, ...(key !== undefined && { authorization: `Bearer ${key}` }) }
      const response = await send(url, { headers, signal }).catch((failure) => {
        throw connectionErrorOf(failure, given)
      })
      if (response.ok) return response
      throw await refusalOf(response, given)
    },
    getJson: async <Body>(path: string, query?: URLSearchParams, signal?: AbortSignal) => {
      for (let retries = 0; ; retries += 1) {
        try {
          return (await readJson(path, query, signal)) as Body
        } catch (failure) {
          signal?.throwIfAborted()
          const bound = retry?.attempts ?? (http.isKnown || failure instanceof RelayError ? RETRIES_BOUND : 0)
          if (!(failure instanceof StocktapeError) || !isTemporary(failure) || retries >= bound) throw failure
          await wait(Math.min(failure.retryAfterMs || RETRY_MS, WAIT_BOUND_MS), signal)
          signal?.throwIfAborted()
        }
      }
    },
    probe: () =>
      readJson('v1/status', undefined, AbortSignal.timeout(FIRST_ANSWER_BOUND_MS)).then(
        () => null,
        (failure: StocktapeError) => failure,
      ),
  }
  return http
}

/** A WebSocket's scheme names the same relay. */
function readUrl(given: string | URL): URL | ConnectionError {
  const text = String(given).replace(/^ws(s?:)/i, 'http$1')
  if (!/^https?:\/\//i.test(text) || !URL.canParse(text)) return new ConnectionError('bad_url', given, null)
  const base = new URL(text)
  base.pathname = base.pathname.replace(/\/?$/, '/')
  return base
}

/** Returns the error of a request that failed. A body that is not JSON is the answer of another server. */
function connectionErrorOf(failure: unknown, url: string | URL): ConnectionError {
  const { name } = failure as Error
  const code = name === 'TimeoutError' ? 'timeout' : name === 'SyntaxError' ? 'not_a_relay' : 'unreachable'
  return new ConnectionError(code, url, failure)
}

/** Returns the error of an answer that is not OK. A refusal of the relay has a body that says why; a proxy's has none. */
async function refusalOf(response: Response, url: string | URL): Promise<StocktapeError> {
  const { status, headers } = response
  const retryAfterMs = 1_000 * Number(headers.get('retry-after')) || 0
  const body = (await response.json().catch(() => ({}))) as ErrorBody
  if (body.reason || status === 401 || status === 403) return new RelayError(status, body, retryAfterMs)
  return new ConnectionError(status === 429 || status >= 500 ? 'unavailable' : 'not_a_relay', url, `HTTP ${status}`, retryAfterMs)
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
  for (const [name, value] of Object.entries(given)) if (value !== undefined) query.set(name, String(value))
  return query
}

export const timeText = (time?: string | Date): string | undefined => (time instanceof Date ? time.toISOString() : time)
