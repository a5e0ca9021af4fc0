import type { ConnectOptions } from './options.ts'
import { RelayError } from './relay-error.ts'

/** A request may take this long. */
const REQUEST_BOUND_MS = 30_000
/** The longest wait between two of them, also where the relay asks for more. */
const WAIT_BOUND_MS = 20_000
/** How often a request is repeated that fails, or that the relay refuses for the moment. */
const REPEATS_BOUND = 4
const RETRY_MS = 1_000

/** The record of an error, as far as it matters to a client. */
type ErrorBody = {
  readonly message?: string
  readonly reason?: string
  readonly details?: readonly { readonly suggest?: readonly string[] }[]
}

export type Http = {
  /** The URL of a path of the relay; the relay may be below a path of its host. */
  readonly urlOf: (path: string, query?: URLSearchParams) => URL
  readonly headers: Record<string, string>
  /** With a signal, a request that fails for the moment is repeated. Without one it could not be stopped. */
  readonly getJson: <Body>(path: string, query?: URLSearchParams, signal?: AbortSignal) => Promise<Body>
}

export function createHttp(url: string | URL, { key }: ConnectOptions): Http {
  const base = new URL(url)
  base.pathname = base.pathname.replace(/\/?$/, '/')
  const urlOf: Http['urlOf'] = (path, query) => new URL(path.replace(/^\//, '') + (query?.size ? `?${query}` : ''), base)
  const headers: Record<string, string> = key ? { authorization: `Bearer ${key}` } : {}
  const getJson = async <Body>(path: string, query?: URLSearchParams, signal?: AbortSignal): Promise<Body> => {
    for (let repeats = 0; ; repeats += 1) {
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
        if (isLasting || !signal || signal.aborted || repeats === REPEATS_BOUND) throw failure
      }
      await new Promise<void>((resolve, reject) => {
        const timer = setTimeout(resolve, waitMs)
        const abort = () => {
          clearTimeout(timer)
          reject(signal.reason)
        }
        // The deadline of the request takes the listener away.
        signal.addEventListener('abort', abort, { signal: deadline })
      })
    }
  }
  return { urlOf, headers, getJson }
}

/** The refusal passes by itself. */
export const isTemporary = ({ code }: RelayError): boolean => code === 429 || (code >= 500 && code < 600)

export const refusalOf = async (response: Response): Promise<RelayError> =>
  errorOf(response.status, (await response.json().catch(() => ({}))) as ErrorBody)

/** The error of a record, or of the `error` message of a stream. */
export const errorOf = (code: number, { message = `HTTP ${code}`, reason = '', details }: ErrorBody): RelayError =>
  new RelayError(code, reason, message, details?.[0]?.suggest)

/** What `Retry-After` asks for, or 0. */
export const retryAfterMs = (response: Response): number => 1_000 * Number(response.headers.get('retry-after')) || 0
