import {
  catchError,
  concat,
  concatMap,
  defer,
  delay,
  EMPTY,
  exhaustMap,
  from,
  map,
  mergeMap,
  type Observable,
  of,
  repeat,
  retry,
  type SchedulerLike,
  Subject,
  tap,
  throwError,
  toArray,
} from 'rxjs'
import type { Hex } from '../../protocol/fields.ts'
import { isSealed, type Log, type Logs } from '../logs/log-schema.ts'
import type { Reader } from '../rpc/block-reader.ts'
import { UpstreamError } from '../rpc/error.ts'
import { LOGS_RANGE_BOUND } from '../rpc/methods.ts'
import { askedFor, type Owed, Patience, type SealedBlock, type Settled, settlingLogs } from './block-logs.ts'
import { lowest } from './block-search.ts'
import type { Cursor } from './recent-blocks.ts'

/** Blocks still to be read; where a reason is given, they are only said to be missing. */
type Range = { readonly from: number; readonly to: number; readonly hole: string | null }

/** Ranges that wait at most; beyond it the last one grows, over blocks that are settled already. */
const RANGES_BOUND = 64
/** Pages that go well before a larger one is tried. */
const GROW_AFTER_PAGES = 8
/** So often a page is tried that has no answer, before a smaller one is. */
const SLOW_TRIES = 3
/** Logs told in one stroke, so that no turn takes long; a block is never divided. */
const STROKE_BOUND_LOGS = 500
/** Blocks of a page that are asked for one by one at the same time. */
const SINGLE_AT_ONCE = 4

type Options = {
  readonly node: Reader
  readonly owed: Owed
  readonly addresses: () => readonly Hex[]
  readonly clock: SchedulerLike
  readonly say: (kind: string, detail: unknown) => void
}

/** Reads ranges of old blocks in pages that the node can bear, while the newest are settled beside it. */
export class Backfill {
  readonly #options: Options
  readonly #patience = new Patience()
  readonly #wakes = new Subject<void>()
  #ranges: Range[] = []
  #size = LOGS_RANGE_BOUND
  #wentWell = 0

  constructor(options: Options) {
    this.#options = options
  }

  /** Up to where everything is settled or said to be missing, where the newest blocks are settled up to `newest`. */
  cursor(newest: Cursor): Cursor {
    // After a reorganisation a later range may begin below an earlier one, or the newest block lie below them all.
    const number = Math.min(newest.number, ...this.#ranges.map(({ from }) => from - 1))
    return number === newest.number ? newest : { number, hash: null }
  }

  add(range: Range): void {
    const last = this.#ranges.at(-1)
    const goesOn = last?.hole === range.hole && last.to + 1 === range.from
    if (last && goesOn) this.#ranges.splice(-1, 1, { ...last, to: range.to })
    else if (last && this.#ranges.length >= RANGES_BOUND)
      this.#ranges.splice(-1, 1, { ...last, to: range.to, hole: null })
    else this.#ranges.push(range)
    this.#wakes.next()
  }

  /** Reads, for ever, what is added. `newest` is up to where the newest blocks are settled. */
  run(newest: () => Cursor): Observable<Settled> {
    return this.#wakes.pipe(
      exhaustMap(() =>
        defer(() => this.#step(newest)).pipe(
          tap({ complete: () => this.#patience.succeeded() }),
          retry({ delay: (failure: unknown) => this.#failed(failure) }),
          repeat({ delay: () => (this.#ranges.length === 0 ? EMPTY : of(null)) }),
        ),
      ),
    )
  }

  #failed(failure: unknown): Observable<unknown> {
    if (this.#patience.failures > 0) this.#options.say('catching up waits', { reason: String(failure) })
    return this.#patience.wait(failure, this.#options.clock)
  }

  #step(newest: () => Cursor): Observable<Settled> {
    const [range] = this.#ranges
    if (!range) return EMPTY
    return range.hole === null ? this.#page(range, newest) : this.#hole(range, range.hole, newest)
  }

  /** Says what is missing. Of what was told in it before, each block is read by itself where it can be. */
  #hole({ from: first, to }: Range, reason: string, newest: () => Cursor): Observable<Settled> {
    return from(this.#options.owed.toldBetween(first, to)).pipe(
      concatMap((number) =>
        this.#single(number).pipe(
          catchError((failure: unknown) => (this.#patience.forgot(failure) ? EMPTY : throwError(() => failure))),
        ),
      ),
      toArray(),
      mergeMap((blocks) => {
        this.#done(to)
        const cursor = this.cursor(newest())
        const holes = around(
          blocks.map(({ number }) => number),
          { from: first, to },
        )
        return from<Settled[]>([
          { type: 'sealed', blocks, newest: newest().number, cursor },
          ...holes.map((missing): Settled => ({ type: 'hole', blocks: missing, reason, cursor })),
        ])
      }),
    )
  }

  #page({ from: first, to: end }: Range, newest: () => Cursor): Observable<Settled> {
    const { node, owed, addresses } = this.#options
    const to = Math.min(first + this.#size - 1, end)
    const told = owed.toldBetween(first, to)
    const asked = askedFor(
      addresses(),
      told.flatMap((number) => owed.at(number)),
    )
    return node.logsBetween(first, to, asked).pipe(
      // A node that is behind says that there are no logs; it does not know the last block either.
      mergeMap((found) =>
        node.header(to).pipe(
          mergeMap((header) =>
            isSealed(header)
              ? this.#blocksOf(found, told, asked)
              : throwError(() => new UpstreamError('behind', `no block ${to} yet`)),
          ),
          mergeMap((blocks) =>
            concat(
              found.unreadable > 0 ? of<Settled>({ type: 'unreadable', count: found.unreadable }) : EMPTY,
              this.#tell(blocks, to, newest),
            ),
          ),
        ),
      ),
      catchError((failure: unknown) => this.#refused(failure, { from: first, to }, newest)),
    )
  }

  /** What a page holds, block by block; those of which something was told are read by themselves, for certain. */
  #blocksOf({ logs }: Logs, told: readonly number[], asked: readonly Hex[]): Observable<readonly SealedBlock[]> {
    const byBlock = Map.groupBy(logs, (log) => log.blockNumber)
    const numbers = [...new Set([...byBlock.keys(), ...told])].sort((a, b) => a - b)
    return from(numbers).pipe(
      mergeMap((number) => {
        const known = told.includes(number) ? null : blockOf(byBlock.get(number) ?? [], asked)
        return known ? of(known) : this.#single(number)
      }, SINGLE_AT_ONCE),
      toArray(),
      map((blocks) => blocks.sort((a, b) => a.number - b.number)),
    )
  }

  #single(number: number): Observable<SealedBlock> {
    const { node, owed, addresses } = this.#options
    return node.header(number).pipe(
      mergeMap((header) => {
        if (!isSealed(header)) return throwError(() => new UpstreamError('behind', `no block ${number} yet`))
        const owing = owed.at(number)
        const asked = askedFor(addresses(), owing)
        return settlingLogs(node, { header, owing, asked, believing: this.#patience.believes(number) }).pipe(
          map(({ logs }): SealedBlock => {
            const { hash, timestamp } = header
            return { number, hash, timestamp, logs, asked, via: 'backfill' }
          }),
        )
      }),
    )
  }

  #tell(blocks: readonly SealedBlock[], to: number, newest: () => Cursor): Observable<Settled> {
    return from(strokesOf(blocks)).pipe(
      concatMap((stroke, index) => (index === 0 ? of(stroke) : of(stroke).pipe(delay(0, this.#options.clock)))),
      map((stroke): Settled => {
        this.#done(stroke.last ?? to)
        return { type: 'sealed', blocks: stroke.blocks, newest: newest().number, cursor: this.cursor(newest()) }
      }),
      tap({ complete: () => this.#grow() }),
    )
  }

  #done(number: number): void {
    const [range, ...others] = this.#ranges
    if (range) this.#ranges = number >= range.to ? others : [{ ...range, from: number + 1 }, ...others]
  }

  #grow(): void {
    this.#wentWell += 1
    if (this.#wentWell < GROW_AFTER_PAGES) return
    this.#wentWell = 0
    this.#size = Math.min(LOGS_RANGE_BOUND, this.#size * 2)
  }

  /** What a node says that it cannot give is asked for in smaller pages, and in the end left out. */
  #refused(
    failure: unknown,
    page: { readonly from: number; readonly to: number },
    newest: () => Cursor,
  ): Observable<Settled> {
    if (this.#patience.gaveUp(failure)) return this.#leaveOut(page.to, failure.kind)
    if (!(failure instanceof UpstreamError)) return throwError(() => failure)
    const size = page.to - page.from + 1
    // What is too large for a node may take too long for it instead of being refused.
    if (failure.kind === 'unreachable' && this.#patience.times('unreachable') >= SLOW_TRIES) this.#shrink(size, size)
    if (failure.kind === 'gone') return this.#forgotten(page.from, failure)
    if (failure.kind !== 'too_large') return throwError(() => failure)
    // A block that is too large for one answer is asked for contract by contract.
    if (size === 1) return this.#single(page.from).pipe(mergeMap((block) => this.#tell([block], page.to, newest)))
    this.#shrink(size, suggestedSize(failure.message, page.from) ?? size)
    return EMPTY
  }

  #shrink(size: number, suggested: number): void {
    this.#wentWell = 0
    this.#size = Math.max(1, Math.min(suggested, Math.floor(size / 2)))
  }

  /** The node no longer has the oldest of it: the first block that it still has is looked for. */
  #forgotten(first: number, failure: UpstreamError): Observable<Settled> {
    const { node, addresses } = this.#options
    const [range] = this.#ranges
    if (!range) return EMPTY
    const readable = (number: number) =>
      node.logsBetween(number, number, addresses()).pipe(
        map(() => true),
        catchError((unread: unknown) =>
          unread instanceof UpstreamError && unread.kind === 'gone' ? of(false) : throwError(() => unread),
        ),
      )
    return lowest(first, range.to + 1, readable).pipe(
      mergeMap((found) =>
        // Behind one name one node may have forgotten what another still has: that is no hole, but has to be waited for.
        found > first ? this.#leaveOut(found - 1, 'pruned') : throwError(() => failure),
      ),
    )
  }

  /** Up to here the first range is a hole. */
  #leaveOut(to: number, reason: string): Observable<never> {
    const [range, ...others] = this.#ranges
    if (!range || to < range.from) return EMPTY
    const rest = to < range.to ? [{ ...range, from: to + 1 }] : []
    this.#ranges = [{ from: range.from, to, hole: reason }, ...rest, ...others]
    return EMPTY
  }
}

type Blocks = { readonly from: number; readonly to: number }

/** What is left of a range around some of its blocks, which are given in order. */
function around(blocks: readonly number[], { from: first, to }: Blocks): readonly Blocks[] {
  const ends = [...blocks, to + 1]
  return ends.flatMap((end, at) => {
    const begin = at === 0 ? first : (ends[at - 1] ?? first) + 1
    return begin < end ? [{ from: begin, to: end - 1 }] : []
  })
}

/** A block as its logs tell of it; null where they do not say enough. */
function blockOf(logs: readonly Log[], asked: readonly Hex[]): SealedBlock | null {
  const [first] = logs
  if (!first?.blockHash || first.blockTimestamp === null) return null
  const { blockNumber: number, blockHash: hash, blockTimestamp: timestamp } = first
  const one = logs.every((log) => log.blockHash === hash)
  return one ? { number, hash, timestamp, logs, asked, via: 'backfill' } : null
}

type Stroke = { readonly blocks: readonly SealedBlock[]; readonly last: number | null }

/** Cuts a page into strokes; the last one reaches to the end of the page, whatever it holds. */
function strokesOf(blocks: readonly SealedBlock[]): readonly Stroke[] {
  const strokes: Stroke[] = []
  let stroke: SealedBlock[] = []
  let size = 0
  for (const block of blocks) {
    const last = stroke.at(-1)
    if (last && size + block.logs.length > STROKE_BOUND_LOGS) {
      strokes.push({ blocks: stroke, last: last.number })
      stroke = []
      size = 0
    }
    stroke.push(block)
    size += block.logs.length
  }
  return [...strokes, { blocks: stroke, last: null }]
}

/** Some nodes say how much they would give: `retry with the range 16-31`, in decimal or hex. */
function suggestedSize(message: string, first: number): number | null {
  const [, low, high] = /range\D{0,3}(0x[0-9a-f]+|\d+)\s*[-–,]\s*(0x[0-9a-f]+|\d+)/i.exec(message) ?? []
  return Number(low) === first && Number(high) >= first ? Number(high) - first + 1 : null
}
