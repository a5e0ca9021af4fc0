/**
 * What an upstream's failure means for the one who asked: whether to come back, to another endpoint, with a smaller
 * question, or not at all.
 */
export type UpstreamErrorKind =
  | 'unreachable'
  | 'busy'
  /** It answered with an error that no rule knows. */
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

const retryableKinds: ReadonlySet<UpstreamErrorKind> = new Set([
  'unreachable',
  'busy',
  'unknown',
  'behind',
  'unreadable',
  'wrong_chain',
  'forbidden',
])

/** Such a question is not answered there, whatever it is about. */
const refusedKinds: ReadonlySet<UpstreamErrorKind> = new Set(['forbidden', 'unknown_method', 'invalid'])

/** An error in the upstream's own words, and the HTTP status that it came with. */
export type UpstreamErrorDetail = {
  readonly code: number
  readonly message: string
  readonly data?: unknown
  readonly status: number
}

/** The upstream could not or would not answer. */
export class UpstreamError extends Error {
  readonly kind: UpstreamErrorKind
  readonly retryAfterMs: number | null
  /** Whether it is about one question, and says nothing against the endpoint. */
  readonly isRequestSpecific: boolean
  /** Null where nobody said anything that could be read. */
  readonly detail: UpstreamErrorDetail | null

  constructor(
    kind: UpstreamErrorKind,
    message: string,
    retryAfterMs: number | null = null,
    isRequestSpecific = false,
    detail: UpstreamErrorDetail | null = null,
  ) {
    super(message)
    this.kind = kind
    this.retryAfterMs = retryAfterMs
    this.isRequestSpecific = isRequestSpecific
    this.detail = detail
  }

  /** Whether somebody was there and said something, be it that the question cannot be answered. */
  get isAnswered(): boolean {
    return !this.isRetryable || this.kind === 'behind'
  }

  /** Whether nobody answers such a question there: asked again it would be refused again. */
  get isRefused(): boolean {
    return refusedKinds.has(this.kind)
  }

  /** Whether another endpoint, or the same one later, may answer the same question. */
  get isRetryable(): boolean {
    return retryableKinds.has(this.kind)
  }
}

/** An upstream may ask for a rest; not for longer than this. */
const RETRY_AFTER_BOUND_MS = 300_000

/** By this code a node says that a contract answered by reverting. */
const REVERTED_CODE = 3

const messageRules: readonly (readonly [RegExp, UpstreamErrorKind])[] = [
  // A contract says in its own words why it reverts: they come first, since they may sound like anything.
  [
    /execution revert|^revert|vm (exception|execution error)|\bevm error|invalid (opcode|jump)|out of gas|stack (under|over)flow/i,
    'reverted',
  ],
  [/whitelist|not allowed|forbidden|unauthor/i, 'forbidden'],
  [/pruned|missing trie|history (is )?(not|un)available|no longer available/i, 'gone'],
  [
    /beyond current head|current head block|(block|header)( for hash)? (is )?(not (yet )?(found|available)|unknown|out of range)|resource not found|(unknown|cannot find|could not find) (block|header)|could not be found|not (currently )?canonical/i,
    'behind',
  ],
  [/invalid block range/i, 'invalid'],
  [/\brate\b|too many requests|capacity|credits|compute units/i, 'busy'],
  [
    /range|max results|more than \d+ results|(response|request body) too large|too many RPC calls|too many (results|logs)|limit exceeded/i,
    'too_large',
  ],
  [/healthy|offline|timeout|timed out|unavailable/i, 'unreachable'],
]

/**
 * The same code means different things at different providers (-32602 is wrong for ever, too large, or too early), so
 * the message is read too; what nobody knows is taken for passing.
 */
export function classify(response: Response, error: Omit<UpstreamErrorDetail, 'status'> | null): UpstreamError {
  const { status } = response
  const retryAfterMs = parseRetryAfterMs(response.headers.get('retry-after'))
  const { kind, isRequestSpecific = false } = kindOf(status, error)
  const message = error ? `${error.code} ${error.message}` : `HTTP ${status}`
  return new UpstreamError(kind, message, retryAfterMs, isRequestSpecific, error && { ...error, status })
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
