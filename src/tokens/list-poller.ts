import { catchError, defer, exhaustMap, expand, map, type Observable, of, type SchedulerLike, timer } from 'rxjs'
import { addressed, readBounded, reasonOf } from '../chain/rpc/client.ts'
import { type List, type Listed, readList } from './list-parser.ts'

/**
 * Fetches the list's text; the edge of the world, so that a simulation can stand in. `held` is the last text that could
 * be read: it is the answer where the upstream says that nothing changed.
 */
export type FetchList = (held: string | null) => Promise<string>

/** The upstream answered, but with no list. */
class ListRefusal extends Error {
  /** How long it wants to be left alone; nothing or less where it does not say. */
  readonly restMs: number

  constructor(message: string, restMs: number) {
    super(message)
    this.restMs = restMs
  }
}

const DEADLINE_MS = 10_000
const LIST_BOUND_BYTES = 64 * 2 ** 20
/** A longer tag is not worth sending back each time. */
const TAG_BOUND_CHARS = 1_024
/** An upstream may ask for a rest; not for longer than this. */
const REST_BOUND_MS = 300_000
/** A list that lost tokens is believed after so many equal answers over at least so long. */
const CONFIRMATIONS = 3
const CONFIRMATION_MS = 10_000
/** Each wait is drawn up to this share longer or shorter, so that relays do not ask in step. */
const JITTER = 0.1

type Options = {
  readonly fetch: FetchList
  readonly refreshMs: number
  readonly known: readonly string[]
  readonly clock: SchedulerLike
  readonly dice: () => number
  readonly say: (kind: string, detail: unknown) => void
  readonly unreadable: (count: number) => void
}

/** One answer: its tokens, and whether those that it lacks may still be there. */
export type Reading = { readonly tokens: readonly Listed[]; readonly partial: boolean }

/** The list at every refresh, or null where there was none to read and the last good one stays. */
export function lists(options: Options): Observable<Reading | null> {
  const { fetch, refreshMs, clock, dice, say, unreadable } = options
  return defer(() => {
    const doubt = new Doubt(new Set(options.known), clock)
    let held: { readonly text: string; readonly list: List } | null = null
    let restMs = 0
    const take = (text: string): Reading => {
      // The same text is the same list, said once more: it confirms as any other does, and need not be read again.
      held = held?.text === text ? held : { text, list: readList(text) }
      const { list } = held
      if (list.skipped.length > 0) {
        unreadable(list.skipped.length)
        say('list records skipped', { count: list.skipped.length, first: list.skipped[0] })
      }
      const believed = doubt.believes(list)
      if (!believed) say('list shrank, waiting for confirmation', { tokens: list.tokens.length })
      // What it does say is news at once, whatever it may have left out.
      return { tokens: list.tokens, partial: !believed }
    }
    const read = () => {
      restMs = 0
      return defer(() => fetch(held?.text ?? null)).pipe(
        map(take),
        catchError((failure: unknown) => {
          if (failure instanceof ListRefusal) restMs = failure.restMs
          say('list unreadable', { reason: reasonOf(failure) })
          return of(null)
        }),
      )
    }
    const wait = () => {
      const share = dice()
      const rest = Math.min(restMs * (1 + JITTER * share), REST_BOUND_MS)
      return Math.max(refreshMs * (1 - JITTER + 2 * JITTER * share), rest)
    }
    return read().pipe(expand(() => timer(wait(), clock).pipe(exhaustMap(read))))
  })
}

/** Whether to believe a list: one that lost tokens only when it was said often enough for long enough. */
class Doubt {
  readonly #clock: SchedulerLike
  #known: ReadonlySet<string>
  #candidate: string | null = null
  #times = 0
  #since = 0

  constructor(known: ReadonlySet<string>, clock: SchedulerLike) {
    this.#known = known
    this.#clock = clock
  }

  believes({ tokens }: List): boolean {
    const addresses = new Set<string>(tokens.map((token) => token.address))
    const lost = [...this.#known].some((address) => !addresses.has(address)) || addresses.size === 0
    if (lost && !this.#confirmed([...addresses].sort().join())) {
      // What it adds is listed at once, so it may not be lost without confirmation either.
      this.#known = new Set([...this.#known, ...addresses])
      return false
    }
    this.#candidate = null
    this.#known = addresses
    return true
  }

  #confirmed(candidate: string): boolean {
    const now = this.#clock.now()
    if (candidate !== this.#candidate) {
      this.#candidate = candidate
      this.#times = 0
      this.#since = now
    }
    this.#times += 1
    return this.#times >= CONFIRMATIONS && now - this.#since >= CONFIRMATION_MS
  }
}

/** Reads the list over HTTP, in full only where it changed. */
export function fetchList(baseUrl: string): FetchList {
  const { address, login } = addressed(`${baseUrl}/v1/tokenized-stocks`)
  let tagged: { readonly text: string; readonly tag: string } | null = null
  return async (held) => {
    // The tag of a text that could not be read would bring that text again for ever.
    const tag = tagged !== null && tagged.text === held ? tagged.tag : null
    const response = await fetch(address, {
      headers: { accept: 'application/json', ...login, ...(tag !== null && { 'if-none-match': tag }) },
      redirect: 'error',
      signal: AbortSignal.timeout(DEADLINE_MS),
    })
    if (response.status === 304 && tag !== null && held !== null) return held
    if (response.status !== 200) {
      await response.body?.cancel()
      throw new ListRefusal(`HTTP ${response.status}`, restOf(response.headers))
    }
    const text = await readBounded(response, LIST_BOUND_BYTES)
    const given = tagOf(response.headers)
    tagged = given === null ? null : { text, tag: given }
    return text
  }
}

/** An entity tag, weak or strong, to be sent back as it came. Anything else may mean more: `*` stands for every list. */
function tagOf(headers: Headers): string | null {
  const tag = headers.get('etag') ?? ''
  return tag.length <= TAG_BOUND_CHARS && /^(W\/)?"[\x21\x23-\x7e\x80-\xff]*"$/.test(tag) ? tag : null
}

/** Seconds, or a date, which the answer's own date measures: nobody's clock need be right. */
function restOf(headers: Headers): number {
  const said = headers.get('retry-after') ?? ''
  const ms = /^\d+$/.test(said) ? Number(said) * 1_000 : timeOf(said) - timeOf(headers.get('date') ?? '')
  return Number.isNaN(ms) ? 0 : ms
}

const timeOf = (said: string): number => (said.endsWith(' GMT') ? Date.parse(said) : Number.NaN)
