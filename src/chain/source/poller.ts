import {
  catchError,
  concat,
  defer,
  EMPTY,
  map,
  mergeMap,
  type Observable,
  of,
  type SchedulerLike,
  throwError,
} from 'rxjs'
import type { Hex } from '../../protocol/fields.ts'
import { type Header, isSealed, type Logs, type SealedHeader } from '../logs/log-schema.ts'
import type { Reader } from '../rpc/block-reader.ts'
import { UpstreamError } from '../rpc/error.ts'
import type { Look, Verdict } from './state.ts'

/** The block being built: its number, and its time in seconds; null where nobody says. */
type Building = { readonly pending: number | null; readonly timestamp: number | null }

/** What asking brings: the newest sealed head, what the pending state shows, and what is pre-confirmed in it. */
export type Seen =
  | { readonly type: 'latest'; readonly header: SealedHeader }
  | { readonly type: 'look'; readonly look: Look; readonly building: Building }
  | { readonly type: 'logs'; readonly found: Logs }
  /** Whatever was wanted was asked for. */
  | { readonly type: 'asked'; readonly addresses: readonly Hex[] }

/** How often the pending state is looked at while nothing has shown yet that what is pushed lives. */
export const PROVE_EVERY_MS = 500
/** How often it is looked at where nothing is pre-confirmed and the heads are pushed. */
export const PROBE_EVERY_MS = 60_000
/** What stands so far below the head is behind it. */
export const BEHIND_BLOCKS = 2
/** So often the newest head may be ahead of what is pushed before pushes are no longer waited for. */
const LAG_BOUND = 2

type Options = {
  readonly node: Reader
  readonly verdict: Verdict
  readonly wanted: () => readonly Hex[]
  readonly silenceMs: number
  readonly clock: SchedulerLike
}

/** Asks for whatever nobody pushes, as often as the standing of the source asks for it. */
export class Looks {
  readonly #options: Options
  /** What the pending state looked like when it was read, so that logs are asked for only when it moved. */
  #moved = ''
  /** What was shown last as being built, and whether the node is one that shows sealed blocks there. */
  #shown: Header | null = null
  #repeats = false
  #last: Look = 'null'
  #asked: readonly Hex[] | null = null
  #lookedAt = Number.NEGATIVE_INFINITY
  #askedHeadAt = Number.NEGATIVE_INFINITY
  /** The newest head that was pushed, and how often in a row a newer one was found by asking. */
  #pushedHead: number | null = null
  /** The newest head that was heard of, however. */
  #knownHead = 0
  #lag = 0

  constructor(options: Options) {
    this.#options = options
  }

  /** A head was pushed: while they come, none is asked for. */
  pushed(head: number): void {
    this.#pushedHead = head
    this.#knownHead = Math.max(this.#knownHead, head)
    this.#lag = 0
  }

  /** Nothing is pushed any more. */
  alone(): void {
    this.#pushedHead = null
  }

  /** There is a newer head than any that was told. */
  hurry(): void {
    this.#askedHeadAt = Number.NEGATIVE_INFINITY
  }

  /** Asks for what is due now. */
  due(): Observable<Seen> {
    const { clock, silenceMs, verdict } = this.#options
    const now = clock.now()
    const lookEveryMs = this.#lookEveryMs()
    if (now - this.#lookedAt >= lookEveryMs) return this.#look(!verdict.pushing)
    return now - this.#askedHeadAt >= (this.#headsCome ? silenceMs : 0) ? this.#head() : EMPTY
  }

  /** Looks at what is pre-confirmed now, whatever it looked like before. */
  closely(): Observable<Seen> {
    return defer(() => {
      this.#moved = ''
      return this.#look(true)
    })
  }

  get #headsCome(): boolean {
    return this.#pushedHead !== null && this.#lag < LAG_BOUND
  }

  #lookEveryMs(): number {
    const { verdict } = this.#options
    if (verdict.pushing) return verdict.proven ? Number.POSITIVE_INFINITY : PROVE_EVERY_MS
    return verdict.sealedOnly && this.#headsCome ? PROBE_EVERY_MS : 0
  }

  #head(): Observable<Seen> {
    this.#askedHeadAt = this.#options.clock.now()
    const addresses = this.#options.wanted()
    return this.#latest().pipe(
      mergeMap((header) => of<Seen[]>({ type: 'latest', header }, { type: 'asked', addresses })),
    )
  }

  #latest(): Observable<SealedHeader> {
    return this.#options.node.header('latest').pipe(
      map((latest) => {
        if (!isSealed(latest)) throw new UpstreamError('unreadable', 'no latest block')
        this.#knownHead = Math.max(this.#knownHead, latest.number)
        if (this.#pushedHead !== null) this.#lag = latest.number > this.#pushedHead ? this.#lag + 1 : 0
        return latest
      }),
    )
  }

  /** Looks at the pending state, and where it moved, at the head; `reads`: what is pre-confirmed as well. */
  #look(reads: boolean): Observable<Seen> {
    const { node, clock, silenceMs, verdict } = this.#options
    this.#lookedAt = clock.now()
    const known = this.#knownHead
    return node.header('pending').pipe(
      // A node that does not know the tag has nothing to show under it.
      catchError((failure: unknown) =>
        failure instanceof UpstreamError && failure.answered ? of('refused' as const) : throwError(() => failure),
      ),
      mergeMap((shown) => {
        const pending = shown === 'refused' ? null : shown
        const addresses = this.#options.wanted()
        const moved = `${pending?.number} ${pending?.hash} ${pending?.transactions?.length} ${pending?.gasUsed}`
        const same = reads && pending !== null && moved === this.#moved && this.#asked === addresses
        const still = same && !verdict.sealedOnly && clock.now() - this.#askedHeadAt < silenceMs
        if (still) return of<Seen>({ type: 'look', look: this.#last, building: buildingOf(pending) })
        this.#askedHeadAt = clock.now()
        return this.#latest().pipe(
          mergeMap((header) => {
            const look = shown === 'refused' ? 'latest' : this.#lookOf(shown, header, known)
            const building = buildingOf(look === 'preconfirmed' ? pending : null)
            return concat(
              of<Seen[]>({ type: 'latest', header }, { type: 'look', look, building }),
              reads && !same && look === 'preconfirmed' ? this.#logs(header, addresses) : EMPTY,
              defer(() => {
                this.#moved = reads ? moved : ''
                this.#last = look
                this.#asked = addresses
                return of<Seen>({ type: 'asked', addresses })
              }),
            )
          }),
        )
      }),
    )
  }

  /** What is pre-confirmed now. Asked from the newest sealed block on, since nodes want a range that exists. */
  #logs({ number }: SealedHeader, addresses: readonly Hex[]): Observable<Seen> {
    return this.#options.node.logsBetween(number, 'pending', addresses).pipe(
      map(({ logs, unreadable }): Seen => {
        const news = logs.filter((log) => log.blockNumber > number)
        return { type: 'logs', found: { logs: news, unreadable } }
      }),
    )
  }

  /** What a pending block shows; its own hash proves nothing, unless it is the latest one's. */
  #lookOf(pending: Header | null, latest: SealedHeader, known: number): Look {
    if (!pending) return 'null'
    const { number, hash, parentHash } = pending
    const before = this.#shown
    this.#shown = pending
    if (hash === latest.hash) {
      this.#repeats = true
      return 'latest'
    }
    // What has no hash yet, or another one than before, is being built; else it may be sealed, by a node that is ahead.
    if (!hash || !/[^0x]/.test(hash) || (before?.number === number && before.hash !== hash)) this.#repeats = false
    // A block that was sealed between the two questions was being built when it was asked for.
    if (number === null)
      return parentHash === latest.hash || parentHash === latest.parentHash ? 'preconfirmed' : 'latest'
    if (number >= latest.number) return this.#repeats ? 'latest' : 'preconfirmed'
    // Held against what was known when it was asked for: the latest may have gone on while the node thought.
    return number < (known || latest.number) - BEHIND_BLOCKS ? 'behind' : 'latest'
  }
}

const buildingOf = (pending: Header | null): Building => ({
  pending: pending?.number ?? null,
  timestamp: pending?.timestamp ?? null,
})
