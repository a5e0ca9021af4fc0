import {
  catchError,
  concat,
  concatMap,
  defer,
  EMPTY,
  expand,
  from,
  map,
  mergeMap,
  type Observable,
  of,
  throwError,
} from 'rxjs'
import type { Hex } from '../protocol/parts.ts'
import { Header, type Log, readLogs } from './log.ts'
import { LOGS_RANGE_BOUND } from './methods.ts'
import type { Ask } from './rpc.ts'
import { UpstreamError } from './upstream-error.ts'

/** What reading the chain brings: logs, the blocks that had to be left out, and how far it has come. */
export type Found =
  | { readonly type: 'log'; readonly log: Log; readonly via: 'poll' | 'backfill'; readonly sealed: boolean }
  | { readonly type: 'hole'; readonly blocks: { readonly from: number; readonly to: number }; readonly reason: string }
  | { readonly type: 'head'; readonly sealed: number }
  /** The node answered for these addresses. */
  | { readonly type: 'hearing'; readonly addresses: readonly Hex[] }
  /** Everything up to this sealed block has been read. */
  | { readonly type: 'cursor'; readonly sealed: number }
  | { readonly type: 'unreadable'; readonly count: number }

/** Blocks being built may be several; a page that ends in `pending` leaves room for them. */
const PENDING_ROOM_BLOCKS = 8

/** One answer, where the next page begins, and the blocks that the node could not give. */
type Page = {
  readonly next: number
  readonly size: number
  readonly answer: unknown
  readonly lost: { readonly from: number; readonly to: number } | null
}

type Options = {
  readonly ask: Ask
  /** The newest sealed block that is known to be read; null begins with what is sealed from now on. */
  readonly cursor: number | null
  /** How far back to read, in chain time. */
  readonly backfillBoundMs: number
}

const hexOf = (number: number): Hex => `0x${number.toString(16)}`

/** Reads what happened since the cursor, sealed and pre-confirmed, in pages that a node can bear. */
export class Reader {
  readonly #ask: Ask
  readonly #backfillBoundMs: number
  /** Until the first reading is through, what is sealed is what was missed while away. */
  #away: boolean
  #cursor: number | null
  /** Where a tape that knew nothing began: nothing sealed up to there is news. */
  #baseline: number | null = null
  #latest: Header | null = null

  constructor({ ask, cursor, backfillBoundMs }: Options) {
    this.#ask = ask
    this.#backfillBoundMs = backfillBoundMs
    this.#cursor = cursor
    this.#away = cursor !== null
  }

  /** The newest sealed block that was seen here. */
  get latest(): Header | null {
    return this.#latest
  }

  /** Whether it is known by now from which block on everything is told. */
  get begun(): boolean {
    return this.#cursor !== null
  }

  /** Says where to begin, if that is not known yet: what is sealed after this block is told. True if it was not. */
  begin(sealed: number): boolean {
    if (this.#cursor !== null) return false
    this.#cursor = sealed
    this.#baseline = sealed
    return true
  }

  /** Everything up to this sealed block has been heard by other means. */
  advance(sealed: number): void {
    this.#cursor = Math.max(this.#cursor ?? 0, sealed)
  }

  /** One block's header by tag or number; null where there is none. */
  header(block: 'latest' | 'pending' | Hex): Observable<Header | null> {
    return this.#ask('eth_getBlockByNumber', [block, false]).pipe(
      map((answer) => Header.safeParse(answer).data ?? null),
    )
  }

  read(addresses: readonly Hex[]): Observable<Found> {
    return this.header('latest').pipe(
      mergeMap((latest) => {
        const number = latest?.number
        if (!latest || typeof number !== 'number')
          return throwError(() => new UpstreamError('unreadable', 'no latest block'))
        this.#latest = latest
        const fresh = this.begin(number)
        const since = Math.min(this.#cursor ?? number, number)
        return concat(
          of<Found>({ type: 'head', sealed: number }),
          fresh ? of<Found>({ type: 'cursor', sealed: number }) : EMPTY,
          this.#firstBlock(since, latest, number).pipe(
            concatMap((first) => concat(this.#holeBefore(since, first), this.#pages(addresses, first, number, since))),
          ),
          defer(() => {
            this.advance(number)
            this.#away = false
            return of<Found>({ type: 'cursor', sealed: number })
          }),
        )
      }),
    )
  }

  /** Where to begin: at `since`, or where the bound of chain time lies if that is later. */
  #firstBlock(since: number, latest: Header, number: number): Observable<number> {
    if (number - since < LOGS_RANGE_BOUND) return of(since)
    return this.header(hexOf(since)).pipe(
      map((header) => {
        if (!header) return number - LOGS_RANGE_BOUND + 1
        if (latest.timestamp === null || header.timestamp === null) return since
        const spanMs = (latest.timestamp - header.timestamp) * 1_000
        const blocksPerMs = (number - since) / Math.max(1, spanMs)
        return spanMs <= this.#backfillBoundMs ? since : number - Math.floor(this.#backfillBoundMs * blocksPerMs)
      }),
    )
  }

  #holeBefore(since: number, first: number): Observable<Found> {
    if (first <= since + 1) return EMPTY
    return of({ type: 'hole', blocks: { from: since + 1, to: first - 1 }, reason: 'backfill_bound' })
  }

  #pages(addresses: readonly Hex[], first: number, latest: number, since: number): Observable<Found> {
    const ask = (from: number, size: number): Observable<Page> => {
      const last = latest - from < Math.max(1, size - PENDING_ROOM_BLOCKS)
      // Nothing above the newest block is asked for by number: what stands before a node answers that with nothing.
      const to = last ? ('pending' as const) : hexOf(Math.min(from + size - 1, latest))
      return this.#ask('eth_getLogs', [{ address: [...addresses], fromBlock: hexOf(from), toBlock: to }]).pipe(
        map((answer) => {
          if (!Array.isArray(answer)) throw new UpstreamError('unreadable', 'the answer is no list of logs')
          return { next: last ? latest + 1 : Math.min(from + size, latest), size, answer, lost: null }
        }),
        catchError((failure: unknown) => {
          const kind = failure instanceof UpstreamError ? failure.kind : null
          if (kind === 'too_large' && size > 1) return ask(from, Math.floor(size / 2))
          if (kind !== 'gone' || from >= latest) return throwError(() => failure)
          // The node has forgotten this far back: what is nearer may still be there.
          const next = from + Math.ceil((latest - from) / 2)
          return of({ next, size, answer: [], lost: { from: from + (from === since ? 1 : 0), to: next - 1 } })
        }),
      )
    }
    return ask(first, LOGS_RANGE_BOUND).pipe(
      expand((page) => (page.next <= latest ? ask(page.next, page.size) : EMPTY), 1),
      mergeMap(({ next, answer, lost }) => {
        const { logs, unreadable } = readLogs(answer)
        return concat(
          lost && lost.from <= lost.to ? of<Found>({ type: 'hole', blocks: lost, reason: 'pruned' }) : EMPTY,
          lost ? EMPTY : of<Found>({ type: 'hearing', addresses }),
          unreadable > 0 ? of<Found>({ type: 'unreadable', count: unreadable }) : EMPTY,
          from(logs.flatMap((log) => this.#found(log, latest))),
          defer(() => {
            // Page by page, so that a reading that breaks off is taken up where it broke.
            this.advance(Math.min(next - 1, latest))
            return EMPTY
          }),
        )
      }),
    )
  }

  #found(log: Log, latest: number): Found[] {
    const sealed = log.blockNumber <= latest && log.blockHash !== null
    // The block where all began is only asked for because nodes want a block that exists.
    if (sealed && this.#baseline !== null && log.blockNumber <= this.#baseline) return []
    return [{ type: 'log', log, via: sealed && this.#away ? 'backfill' : 'poll', sealed }]
  }
}
