import { catchError, defer, exhaustMap, expand, from, map, type Observable, of, type SchedulerLike, timer } from 'rxjs'
import { readBounded, reasonOf } from '../chain/rpc.ts'
import { type List, type Listed, readList } from './list.ts'

/** Fetches the list's text; the edge of the world, so that a simulation can stand in. */
export type FetchList = () => Promise<string>

const DEADLINE_MS = 10_000
const LIST_BOUND_BYTES = 64 * 2 ** 20
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
    const read = () =>
      from(fetch()).pipe(
        map((text) => {
          const list = readList(text)
          if (list.skipped.length > 0) {
            unreadable(list.skipped.length)
            say('list records skipped', { count: list.skipped.length, first: list.skipped[0] })
          }
          const believed = doubt.believes(list)
          if (!believed) say('list shrank, waiting for confirmation', { tokens: list.tokens.length })
          // What it does say is news at once, whatever it may have left out.
          return { tokens: list.tokens, partial: !believed }
        }),
        catchError((failure: unknown) => {
          say('list unreadable', { reason: reasonOf(failure) })
          return of(null)
        }),
      )
    const wait = () => refreshMs * (1 - JITTER + 2 * JITTER * dice())
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

/** Reads the list over HTTP. */
export const fetchList =
  (baseUrl: string): FetchList =>
  async () => {
    const response = await fetch(`${baseUrl}/v1/tokenized-stocks`, {
      headers: { accept: 'application/json' },
      redirect: 'error',
      signal: AbortSignal.timeout(DEADLINE_MS),
    })
    const text = await readBounded(response, LIST_BOUND_BYTES)
    if (response.status !== 200) throw new Error(`HTTP ${response.status}`)
    return text
  }
