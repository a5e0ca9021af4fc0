import type { Observable, SchedulerLike } from 'rxjs'
import { observe, repeatStep } from '../../../lib/async-loop.ts'
import { withJitter } from '../../../lib/backoff.ts'
import type { Hex } from '../../../lib/hex.ts'
import { failureReason, readResponseBody, splitCredentials } from '../../../lib/http-fetch.ts'
import { chunk, nextTurn, runInTurns } from '../../../lib/turns.ts'
import { UpstreamError } from '../../chain/rpc/upstream-error.ts'
import type { Host } from '../../host.ts'
import { type ListedToken, type ParsedList, parseListInSteps } from './list-parser.ts'

/** Fetches the list. `last` is the last answer that could be parsed, and is returned if the server answers 304. */
export type FetchList = (last: Buffer | null) => Promise<Buffer>

const DEADLINE_MS = 10_000
/** Limit of the answer after decompression: about 13,000 real records. A longer answer is refused. */
const LIST_BOUND_BYTES = 8 * 2 ** 20
/** Limit of an ETag. The relay does not send a longer one back to the server. */
const ETAG_BOUND_CHARS = 1_024
const RETRY_AFTER_BOUND_MS = 300_000
/** Number of equal answers after which a list that lost tokens is accepted, if they also span `CONFIRMATION_MS`. */
const CONFIRMATIONS = 3
const CONFIRMATION_MS = 10_000
/** Limit of tokens in one part of a list. Each part is emitted in its own turn of the event loop. */
const TOKENS_PER_TURN = 100
/** Range of the random factor of each wait, so that relays do not poll together. The server's own wait is never shortened. */
const REFRESH_JITTER = [0.9, 1.1] as const
const RETRY_AFTER_JITTER = [1, 1.1] as const

type Options = Pick<Host, 'clock' | 'random' | 'log'> & {
  readonly fetch: FetchList
  readonly stocksRefreshMs: number
  readonly known: readonly Hex[]
  readonly onUnreadable: (count: number) => void
  readonly onRead?: (outcome: 'ok' | 'failed', tokens: number) => void
}

/** A list or a part of one. */
export type PolledList = {
  readonly tokens: readonly ListedToken[]
  /** True if tokens that the list omits may still be listed. */
  readonly partial: boolean
  /** The addresses of the whole list, in its last part; null if parts follow. */
  readonly order: readonly Hex[] | null
}

/** Emits the list at every refresh, or null if the list cannot be read and the last good one stays in use. */
export const pollList = (options: Options): Observable<PolledList | null> =>
  observe<PolledList | null>(async (emit, signal) => {
    const { fetch, stocksRefreshMs, known, clock, random, log, onRead } = options
    const shrinkGuard = new ShrinkGuard(known, clock)
    let last: ReadList | null = null
    const step = async (): Promise<number> => {
      let retryAfterMs = 0
      try {
        const body = await fetch(last?.body ?? null)
        signal.throwIfAborted()
        last = await readList(body, last)
        for (const [index, part] of partsOfList(last, shrinkGuard, options).entries()) {
          if (index > 0) await nextTurn()
          emit(part)
        }
      } catch (failure) {
        signal.throwIfAborted()
        if (failure instanceof UpstreamError) retryAfterMs = failure.retryAfterMs ?? 0
        onRead?.('failed', 0)
        log('list_unreadable', { reason: failureReason(failure) })
        emit(null)
      }
      const drawn = random()
      const retryDelayMs = Math.min(withJitter(retryAfterMs, RETRY_AFTER_JITTER, drawn), RETRY_AFTER_BOUND_MS)
      return Math.max(withJitter(stocksRefreshMs, REFRESH_JITTER, drawn), retryDelayMs)
    }
    return repeatStep(step, { clock, signal })
  })

type ReadList = ParsedList & { readonly body: Buffer }

/** A list with unchanged text is not parsed again, but it counts as a confirmation. */
async function readList(body: Buffer, last: ReadList | null): Promise<ReadList> {
  return last?.body.equals(body) ? { ...last, body } : { body, ...(await runInTurns(parseListInSteps(body))) }
}

function partsOfList({ tokens, skipped }: ParsedList, shrinkGuard: ShrinkGuard, options: Options): readonly PolledList[] {
  const { log, onUnreadable, onRead } = options
  if (skipped.length > 0) {
    onUnreadable(skipped.length)
    log('list_records_skipped', { count: skipped.length, first: skipped[0] })
  }
  const partial = !shrinkGuard.confirms(tokens)
  if (partial) log('list_shrank', { tokens: tokens.size })
  // The tokens in this list count at once, even if known tokens are missing.
  onRead?.('ok', tokens.size)
  const order = [...tokens.keys()]
  const [first = [], ...others] = chunk([...tokens.values()], TOKENS_PER_TURN)
  return [first, ...others].map((part, index) => ({ tokens: part, partial, order: index < others.length ? null : order }))
}

/** Accepts a list that lost tokens only after enough equal answers over enough time, so that a broken list delists no token. */
class ShrinkGuard {
  readonly #clock: SchedulerLike
  #known: Pick<ReadonlySet<Hex>, 'has' | 'keys'>
  #candidate: ParsedList['tokens'] | null = null
  #confirmations = 0
  #candidateSince = 0

  constructor(known: readonly Hex[], clock: SchedulerLike) {
    this.#known = new Set(known)
    this.#clock = clock
  }

  confirms(tokens: ParsedList['tokens']): boolean {
    const isKnown = tokens === this.#known
    const hasLostTokens = tokens.size === 0 || (!isKnown && [...this.#known.keys()].some((address) => !tokens.has(address)))
    const isConfirmed = !hasLostTokens || this.#confirm(tokens)
    if (isConfirmed) this.#candidate = null
    // New tokens of an unconfirmed list are listed at once, so a later list may omit them only with a confirmation.
    this.#known = isConfirmed ? tokens : new Set([...this.#known.keys(), ...tokens.keys()])
    return isConfirmed
  }

  #confirm(candidate: ParsedList['tokens']): boolean {
    const now = this.#clock.now()
    const before = this.#candidate
    if (before?.size !== candidate.size || [...candidate.keys()].some((address) => !before.has(address))) {
      this.#confirmations = 0
      this.#candidateSince = now
    }
    this.#candidate = candidate
    this.#confirmations += 1
    return this.#confirmations >= CONFIRMATIONS && now - this.#candidateSince >= CONFIRMATION_MS
  }
}

/** Fetches the list over HTTP. Sends the ETag of the last answer, so that the server does not send an unchanged list again. */
export function fetchList(baseUrl: string, deadlineMs = DEADLINE_MS): FetchList {
  const { address, authHeaders } = splitCredentials(`${baseUrl}/v1/tokenized-stocks`)
  let cached: { readonly body: Buffer; readonly etag: string } | null = null
  return async (last) => {
    // If the last text could not be parsed, its ETag is not sent: the server would always answer 304.
    const etag = cached !== null && cached.body === last ? cached.etag : null
    const response = await fetch(address, {
      headers: { accept: 'application/json', ...authHeaders, ...(etag !== null && { 'if-none-match': etag }) },
      redirect: 'error',
      signal: AbortSignal.timeout(deadlineMs),
    })
    if (response.status === 304 && etag !== null && last !== null) return last
    if (response.status !== 200) {
      await response.body?.cancel()
      throw new UpstreamError('unreachable', `HTTP ${response.status}`, retryAfterOf(response.headers))
    }
    const body = await readResponseBody(response, LIST_BOUND_BYTES)
    if (!body) throw new UpstreamError('too_large', `the list is longer than ${LIST_BOUND_BYTES} bytes`)
    const newEtag = etagOf(response.headers)
    cached = newEtag === null ? null : { body, etag: newEtag }
    return body
  }
}

/** Returns a weak or strong entity tag. Other texts may have another meaning in a request: `*` matches every list. */
function etagOf(headers: Headers): string | null {
  const etag = headers.get('etag') ?? ''
  return etag.length <= ETAG_BOUND_CHARS && /^(W\/)?"[\x21\x23-\x7e\x80-\xff]*"$/.test(etag) ? etag : null
}

/**
 * Returns the wait in ms that the server asks for; zero or less for none. A date is compared with the answer's own date, so that no
 * clock has to be right.
 */
function retryAfterOf(headers: Headers): number {
  const retryAfter = headers.get('retry-after') ?? ''
  const ms = /^\d+$/.test(retryAfter)
    ? Number(retryAfter) * 1_000
    : parseHttpDate(retryAfter) - parseHttpDate(headers.get('date') ?? '')
  return Number.isNaN(ms) ? 0 : ms
}

const parseHttpDate = (date: string): number => (date.endsWith(' GMT') ? Date.parse(date) : Number.NaN)
