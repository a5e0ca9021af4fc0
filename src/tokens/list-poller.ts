import { catchError, defer, exhaustMap, expand, map, type Observable, of, type SchedulerLike, timer } from 'rxjs'
import { withJitter } from '../backoff.ts'
import { failureReason, readBodyText, splitCredentials } from '../chain/rpc/client.ts'
import { type ListedToken, type ParsedList, parseList } from './list-parser.ts'

/**
 * Fetches the list's text; a simulation may replace it. `lastText` is the last text that could be parsed, and is
 * returned again when the upstream answers 304.
 */
export type FetchList = (lastText: string | null) => Promise<string>

/** The upstream answered, but with no list. */
class ListFetchError extends Error {
  /** How long the upstream asks to wait; zero or less where it does not. */
  readonly retryAfterMs: number

  constructor(message: string, retryAfterMs: number) {
    super(message)
    this.retryAfterMs = retryAfterMs
  }
}

const DEADLINE_MS = 10_000
const LIST_BOUND_BYTES = 64 * 2 ** 20
/** A longer tag is not sent back. */
const ETAG_BOUND_CHARS = 1_024
/** The longest wait that an upstream may ask for. */
const RETRY_AFTER_BOUND_MS = 300_000
/** A list that lost tokens is accepted after this many equal answers over at least this long. */
const CONFIRMATIONS = 3
const CONFIRMATION_MS = 10_000
/** Each wait varies, so that relays do not poll at the same time. What the upstream asks for is never shortened. */
const REFRESH_JITTER = [0.9, 1.1] as const
const RETRY_AFTER_JITTER = [1, 1.1] as const

type Options = {
  readonly fetch: FetchList
  readonly refreshMs: number
  readonly known: readonly string[]
  readonly clock: SchedulerLike
  readonly random: () => number
  readonly warn: (kind: string, detail: unknown) => void
  readonly onUnreadable: (count: number) => void
}

/** The tokens of one answer; `partial` where missing tokens may still be listed. */
export type PolledList = { readonly tokens: readonly ListedToken[]; readonly partial: boolean }

/** Emits the list at every refresh, or null where it could not be read and the last good one stays. */
export function pollList(options: Options): Observable<PolledList | null> {
  const { fetch, refreshMs, clock, random, warn, onUnreadable } = options
  return defer(() => {
    const shrinkGuard = new ShrinkGuard(new Set(options.known), clock)
    let last: { readonly text: string; readonly list: ParsedList } | null = null
    let retryAfterMs = 0
    const accept = (text: string): PolledList => {
      // The same text need not be parsed again, but still counts as a confirmation.
      last = last?.text === text ? last : { text, list: parseList(text) }
      const { list } = last
      if (list.skipped.length > 0) {
        onUnreadable(list.skipped.length)
        warn('list records skipped', { count: list.skipped.length, first: list.skipped[0] })
      }
      const isConfirmed = shrinkGuard.isConfirmed(list)
      if (!isConfirmed) warn('list shrank, waiting for confirmation', { tokens: list.tokens.length })
      // Its tokens count at once, even if others are missing.
      return { tokens: list.tokens, partial: !isConfirmed }
    }
    const read = () => {
      retryAfterMs = 0
      return defer(() => fetch(last?.text ?? null)).pipe(
        map(accept),
        catchError((failure: unknown) => {
          if (failure instanceof ListFetchError) retryAfterMs = failure.retryAfterMs
          warn('list unreadable', { reason: failureReason(failure) })
          return of(null)
        }),
      )
    }
    const nextDelayMs = () => {
      const drawn = random()
      const retryDelayMs = Math.min(withJitter(retryAfterMs, RETRY_AFTER_JITTER, drawn), RETRY_AFTER_BOUND_MS)
      return Math.max(withJitter(refreshMs, REFRESH_JITTER, drawn), retryDelayMs)
    }
    return read().pipe(expand(() => timer(nextDelayMs(), clock).pipe(exhaustMap(read))))
  })
}

/** Accepts a list that lost tokens only after enough equal answers over enough time. */
class ShrinkGuard {
  readonly #clock: SchedulerLike
  #known: ReadonlySet<string>
  #candidate: string | null = null
  #confirmations = 0
  #candidateSince = 0

  constructor(known: ReadonlySet<string>, clock: SchedulerLike) {
    this.#known = known
    this.#clock = clock
  }

  isConfirmed({ tokens }: ParsedList): boolean {
    const addresses = new Set<string>(tokens.map((token) => token.address))
    const hasLostTokens = [...this.#known].some((address) => !addresses.has(address)) || addresses.size === 0
    if (hasLostTokens && !this.#confirm([...addresses].sort().join())) {
      // New tokens are listed at once, so they too may only disappear with confirmation.
      this.#known = new Set([...this.#known, ...addresses])
      return false
    }
    this.#candidate = null
    this.#known = addresses
    return true
  }

  #confirm(candidate: string): boolean {
    const now = this.#clock.now()
    if (candidate !== this.#candidate) {
      this.#candidate = candidate
      this.#confirmations = 0
      this.#candidateSince = now
    }
    this.#confirmations += 1
    return this.#confirmations >= CONFIRMATIONS && now - this.#candidateSince >= CONFIRMATION_MS
  }
}

/** Fetches the list over HTTP, with its ETag, so that an unchanged list is not sent again. */
export function fetchList(baseUrl: string): FetchList {
  const { address, authHeaders } = splitCredentials(`${baseUrl}/v1/tokenized-stocks`)
  let cached: { readonly text: string; readonly etag: string } | null = null
  return async (lastText) => {
    // With the tag of a text that could not be parsed, the upstream would answer 304 for ever.
    const etag = cached !== null && cached.text === lastText ? cached.etag : null
    const response = await fetch(address, {
      headers: { accept: 'application/json', ...authHeaders, ...(etag !== null && { 'if-none-match': etag }) },
      redirect: 'error',
      signal: AbortSignal.timeout(DEADLINE_MS),
    })
    if (response.status === 304 && etag !== null && lastText !== null) return lastText
    if (response.status !== 200) {
      await response.body?.cancel()
      throw new ListFetchError(`HTTP ${response.status}`, retryAfterOf(response.headers))
    }
    const text = await readBodyText(response, LIST_BOUND_BYTES)
    const newEtag = etagOf(response.headers)
    cached = newEtag === null ? null : { text, etag: newEtag }
    return text
  }
}

/** A weak or strong entity tag. Anything else may have another meaning in a request: `*` matches every list. */
function etagOf(headers: Headers): string | null {
  const etag = headers.get('etag') ?? ''
  return etag.length <= ETAG_BOUND_CHARS && /^(W\/)?"[\x21\x23-\x7e\x80-\xff]*"$/.test(etag) ? etag : null
}

/** Seconds, or a date minus the answer's own date, so that no clock needs to be right. */
function retryAfterOf(headers: Headers): number {
  const retryAfter = headers.get('retry-after') ?? ''
  const ms = /^\d+$/.test(retryAfter)
    ? Number(retryAfter) * 1_000
    : parseHttpDate(retryAfter) - parseHttpDate(headers.get('date') ?? '')
  return Number.isNaN(ms) ? 0 : ms
}

const parseHttpDate = (date: string): number => (date.endsWith(' GMT') ? Date.parse(date) : Number.NaN)
