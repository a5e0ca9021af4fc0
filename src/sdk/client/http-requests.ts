import type { ErrorMessage, Update } from '../generated/messages.ts'
import { filterParameters, type ValueFilters } from '../generated/names.ts'
import type { ConnectOptions, StreamOptions } from './stream-types.ts'

const REQUEST_BOUND_MS = 30_000
/** Limit on the wait before a retry, even if the relay asks for more. */
const WAIT_BOUND_MS = 20_000
/** Number of times to retry a request that failed or was refused temporarily. */
const RETRIES_BOUND = 4
const RETRY_MS = 1_000

type ErrorBody = Partial<Pick<ErrorMessage, 'message' | 'reason' | 'details'>>

/** The relay refused a request or a stream. The refusal is temporary if `code` is 429 or 500 to 599. */
export class RelayError extends Error {
  override readonly name = 'RelayError'
  /** The HTTP status, or the close code of a WebSocket. */
  readonly code: number
  /** A word for programs, such as `unknown_symbol`. */
  readonly reason: string
  /** Known names that are similar to the refused name. */
  readonly suggest: readonly string[]

  constructor(code: number, reason: string, message: string, suggest: readonly string[] = []) {
    super(message)
    this.code = code
    this.reason = reason
    this.suggest = suggest
  }
}

export type Http = {
  /** Returns the URL of a path of the relay. The relay may be served below a path of its host, such as `/tape/`. */
  readonly urlOf: (path: string, query?: URLSearchParams) => URL
  readonly headers: Record<string, string>
  /** Requests JSON. Retries after a temporary failure only if a signal is given: without a signal nobody could stop the retries. */
  readonly getJson: <Body>(path: string, query?: URLSearchParams, signal?: AbortSignal) => Promise<Body>
}

export function createHttp(url: string | URL, { key }: ConnectOptions): Http {
  const base = new URL(url)
  base.pathname = base.pathname.replace(/\/?$/, '/')
  const urlOf: Http['urlOf'] = (path, query) => new URL(path.replace(/^\//, '') + (query?.size ? `?${query}` : ''), base)
  const headers: Record<string, string> = key ? { authorization: `Bearer ${key}` } : {}
  const getJson = async <Body>(path: string, query?: URLSearchParams, signal?: AbortSignal): Promise<Body> => {
    for (let retries = 0; ; retries += 1) {
      const deadline = AbortSignal.timeout(REQUEST_BOUND_MS)
      let waitMs = RETRY_MS
      try {
        const response = await fetch(urlOf(path, query), {
          headers,
          signal: signal ? AbortSignal.any([signal, deadline]) : deadline,
        })
        if (response.ok) return (await response.json()) as Body
        waitMs = Math.min(retryAfterMs(response) || RETRY_MS, WAIT_BOUND_MS)
        throw await refusalOf(response)
      } catch (failure) {
        const isLasting = failure instanceof RelayError && !isTemporary(failure)
        if (isLasting || !signal || signal.aborted || retries === RETRIES_BOUND) throw failure
      }
      await new Promise<void>((resolve, reject) => {
        const timer = setTimeout(resolve, waitMs)
        const abort = () => {
          clearTimeout(timer)
          reject(signal.reason)
        }
        // `deadline` removes this listener later, so that listeners do not accumulate on the signal of the caller.
        signal.addEventListener('abort', abort, { signal: deadline })
      })
    }
  }
  return { urlOf, headers, getJson }
}

export const isTemporary = ({ code }: RelayError): boolean => code === 429 || (code >= 500 && code < 600)

export const refusalOf = async (response: Response): Promise<RelayError> =>
  errorOf(response.status, (await response.json().catch(() => ({}))) as ErrorBody)

/** Makes the error from the body of an HTTP answer, or from the `error` message of a stream. */
export const errorOf = (code: number, { message = `HTTP ${code}`, reason = '', details }: ErrorBody): RelayError =>
  new RelayError(code, reason, message, details?.[0]?.suggest as readonly string[] | undefined)

export const retryAfterMs = (response: Response): number => 1_000 * Number(response.headers.get('retry-after')) || 0

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
