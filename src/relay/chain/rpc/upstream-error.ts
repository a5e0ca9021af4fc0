import type { IncomingMessage } from 'node:http'
import type { ReadFilter } from '../logs/log-filter.ts'

/** By the kind of an error the caller decides to retry, to try another endpoint, to request less, or to give up. */
export type UpstreamErrorKind =
  | 'unreachable'
  | 'busy'
  /** An error that no rule matches. */
  | 'unknown'
  | 'behind'
  | 'unreadable'
  | 'wrong_chain'
  | 'forbidden'
  | 'unknown_method'
  | 'too_large'
  | 'gone'
  | 'invalid'
  | 'reverted'
  /** The node answers a filter by contracts alone, and refuses one that has topics too. */
  | 'filter_refused'

const finalKinds: ReadonlySet<UpstreamErrorKind> = new Set(['unknown_method', 'too_large', 'gone', 'invalid', 'reverted'])

/** Matches the errors of nodes about a filter with too many addresses. */
const filterTooLong = /(too many|exceed\w*|more than \d+|at most \d+|limit\w*|max\w*)\b.{0,40}\baddresses/i

/** Kinds of errors that count as a refusal: the endpoint does not serve the method, or not in this form. */
const refusedKinds: ReadonlySet<UpstreamErrorKind> = new Set(['forbidden', 'unknown_method', 'invalid'])

/** Kinds of errors that are an answer about the filter, if the node answers another filter for the same blocks. */
const filterRefusals: ReadonlySet<UpstreamErrorKind> = new Set(['invalid', 'unknown_method', 'forbidden', 'unknown', 'reverted'])

const unavailable = /healthy|offline|timeout|timed out|unavailable/i
const unavailableStatuses: ReadonlySet<number> = new Set([408, 502, 503, 504])

/** The error that the upstream returned, with the HTTP status of the answer. */
export type UpstreamErrorDetail = {
  readonly code: number
  readonly message: string
  readonly data?: unknown
  readonly status: number
}

export class UpstreamError extends Error {
  readonly kind: UpstreamErrorKind
  readonly retryAfterMs: number | null
  /** Whether the failure concerns one request, and the endpoint is not at fault. */
  readonly isRequestSpecific: boolean
  /** Null if the upstream returned no readable error. */
  readonly detail: UpstreamErrorDetail | null
  /** The HTTP status of the answer; null without an answer. */
  readonly status: number | null

  constructor(
    kind: UpstreamErrorKind,
    message: string,
    retryAfterMs: number | null = null,
    isRequestSpecific = false,
    detail: UpstreamErrorDetail | null = null,
    status: number | null = null,
  ) {
    super(message)
    this.kind = kind
    this.retryAfterMs = retryAfterMs
    this.isRequestSpecific = isRequestSpecific
    this.detail = detail
    this.status = status
  }

  /** Whether the error is a node's answer about the request, and does not mean that the node is unreachable or busy. */
  get isAnswered(): boolean {
    return !this.isRetryable || this.kind === 'behind'
  }

  /** Whether the node refuses this number of addresses, whatever the range of blocks is. */
  get isFilterTooLong(): boolean {
    return this.kind === 'too_large' && filterTooLong.test(this.message)
  }

  get isRefused(): boolean {
    return refusedKinds.has(this.kind)
  }

  /** Whether it may be about the filter of the request, and not about the node. */
  get isAboutFilter(): boolean {
    return filterRefusals.has(this.kind) || (this.status !== null && this.status >= 400 && !this.#isUnavailable)
  }

  /** Whether the node says itself that it cannot answer now. */
  get #isUnavailable(): boolean {
    return this.kind !== 'unreachable' || unavailableStatuses.has(this.status ?? 0) || unavailable.test(this.message)
  }

  /** Whether another endpoint may answer this request, or this endpoint later. */
  get isRetryable(): boolean {
    return !finalKinds.has(this.kind)
  }
}

/** A node answers a filter with topics with an error, while it answers another filter for the same blocks. */
export class FilterRefusedError extends UpstreamError {
  readonly filters: readonly ReadFilter[]
  readonly reason: UpstreamErrorKind

  constructor(filters: readonly ReadFilter[], { kind, message }: UpstreamError) {
    super('filter_refused', message)
    this.filters = filters
    this.reason = kind
  }
}

/** Limit of the wait that a `Retry-After` can cause. */
const RETRY_AFTER_BOUND_MS = 300_000

const REVERTED_CODE = 3

const messageRules: readonly (readonly [RegExp, UpstreamErrorKind])[] = [
  // Checked first: contracts choose their own revert messages, which could match a later rule too.
  [
    /execution revert|^revert|vm (exception|execution error)|\bevm error|invalid (opcode|jump)|out of gas|stack (under|over)flow/i,
    'reverted',
  ],
  [filterTooLong, 'too_large'],
  [/whitelist|not allowed|forbidden|unauthor/i, 'forbidden'],
  [/pruned|missing trie|history (is )?(not |un)available|no longer available/i, 'gone'],
  [
    /beyond current head|current head block|(block|header)( for hash)? (is )?(not (yet )?(found|available)|unknown|out of range)|resource not found|(unknown|cannot find|could not find) (block|header)|could not be found|not (currently )?canonical/i,
    'behind',
  ],
  [/invalid block range/i, 'invalid'],
  [/\brate\b|too many requests|capacity|credits|compute units/i, 'busy'],
  [
    /range|max results|more than \d+ results|(response|request body) too large|too many RPC calls|calls in \w+ batch|too many (results|logs)|limit exceeded/i,
    'too_large',
  ],
  [unavailable, 'unreachable'],
]

/** The message takes precedence over most codes, which providers share between errors (-32602: invalid, too large, too early). */
export function classify(response: Response, error: Omit<UpstreamErrorDetail, 'status'> | null): UpstreamError {
  const { status } = response
  const retryAfterMs = parseRetryAfterMs(response.headers.get('retry-after'))
  const { kind, isRequestSpecific = false } = kindOf(status, error)
  const message = error ? `${error.code} ${error.message}` : `HTTP ${status}`
  return new UpstreamError(kind, message, retryAfterMs, isRequestSpecific, error && { ...error, status }, status)
}

export function classifyHandshake({ statusCode, headers }: Pick<IncomingMessage, 'statusCode' | 'headers'>): UpstreamError {
  const retryAfter = headers['retry-after']
  return classify(new Response(null, { status: statusCode ?? 500, headers: retryAfter ? { 'retry-after': retryAfter } : {} }), null)
}

function kindOf(
  status: number,
  error: Omit<UpstreamErrorDetail, 'status'> | null,
): { kind: UpstreamErrorKind; isRequestSpecific?: boolean } {
  if (status === 429) return { kind: 'busy' }
  if (error?.code === -32601 && !/whitelist/i.test(error.message)) return { kind: 'unknown_method' }
  if (error?.code === REVERTED_CODE) return { kind: 'reverted' }
  const [, kind] = (error && messageRules.find(([pattern]) => pattern.test(error.message))) ?? []
  if (kind) return { kind, isRequestSpecific: kind === 'behind' || error?.code === -32601 }
  if (status === 401 || status === 403) return { kind: 'forbidden' }
  if (error?.code === -32602 || error?.code === -32600) return { kind: 'invalid' }
  return { kind: status >= 500 || !error ? 'unreachable' : 'unknown' }
}

function parseRetryAfterMs(header: string | null): number | null {
  if (header === null || !/^\d{1,9}$/.test(header)) return null
  return Math.min(Number(header) * 1_000, RETRY_AFTER_BOUND_MS)
}
