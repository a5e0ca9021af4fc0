import type { ErrorMessage } from '../generated/messages.ts'

/** Base class of the errors of this library. */
export class StocktapeError extends Error {
  /** The HTTP status or the close code of a refusal. Otherwise a word, the same as `reason`. */
  readonly code: number | string
  /** A word for programs, such as `unknown_symbol`. */
  readonly reason: string
  /** Milliseconds that the relay asks to wait before the next attempt; 0 if it does not say. */
  readonly retryAfterMs: number

  constructor(name: string, code: number | string, reason: string, message: string, cause: unknown, retryAfterMs = 0) {
    super(message, { cause })
    this.name = name
    this.code = code
    this.reason = reason
    this.retryAfterMs = retryAfterMs
  }
}

/** The relay refused a request or a stream. `cause` is its answer. */
export class RelayError extends StocktapeError {
  declare readonly code: number
  /** Known names that are similar to the refused name. */
  readonly suggest: readonly string[]

  constructor(code: number, body: ErrorBody, retryAfterMs?: number) {
    super('RelayError', code, body.reason ?? '', body.message ?? `refused with ${code}`, body, retryAfterMs)
    this.suggest = (body.details?.[0]?.suggest as readonly string[] | undefined) ?? []
  }
}

export type ErrorBody = { readonly [Field in 'message' | 'reason' | 'details']?: ErrorMessage[Field] | undefined }

const failures = {
  bad_url: 'must begin with http:// or https://',
  no_key: 'has no key',
  unreachable: 'cannot be reached: check scheme, host and port',
  timeout: 'does not answer: check scheme, host and port',
  not_a_relay: 'is not a relay: check port and path',
  unavailable: 'is unavailable',
  lost: 'has ended the connection',
  silent: 'is silent',
} as const

/** There is no relay, or no connection to it. `cause` is the error of the network, or what was received. */
export class ConnectionError extends StocktapeError {
  declare readonly code: keyof typeof failures

  constructor(code: keyof typeof failures, url: string | URL, cause: unknown, retryAfterMs?: number) {
    const [shown] = String(url).split('?')
    // The error of a failed `fetch` has the same message for every cause.
    const { message } = ((cause as Error | null)?.cause ?? cause ?? {}) as Partial<Error>
    super('ConnectionError', code, code, `${shown} ${failures[code]}${message ? ` (${message})` : ''}`, cause, retryAfterMs)
  }
}

/** Whether a later attempt may succeed. */
const isTemporary = ({ code }: StocktapeError): boolean =>
  typeof code === 'number' ? code === 429 || (code >= 500 && code < 600) || code >= 4_100 : code !== 'bad_url' && code !== 'no_key'

type RetriedRelay = { readonly isKnown: boolean; readonly retry: { readonly attempts?: number } | undefined }

/** Whether to try again after so many attempts. By default up to `bound`, but never if the relay has not answered yet. */
export const mayRetry = (error: StocktapeError, attempts: number, { isKnown, retry }: RetriedRelay, bound: number): boolean =>
  attempts < (retry?.attempts ?? (isKnown || error instanceof RelayError ? bound : 0)) && isTemporary(error)

/** The part of an error that a state contains, and that can be sent to another tab. */
export function shownError(error: Error): Pick<StocktapeError, 'code' | 'reason' | 'message'> {
  const { name, code = name, reason = name, message } = error as Partial<StocktapeError> & Error
  return { code, reason, message }
}
