import type { Hex } from '../../../lib/hex.ts'
import type { BarState, StoredBar } from '../../../protocol/bars/bars-query.ts'
import { addressOfKey, type BarFault, barFaultsNote, barTimesNote, blockTradesNotes, faultIn } from '../../notes/bar-notes.ts'
import { type BarRange, type MinuteBar, minuteBarOf } from '../../tape/bars/bar-row.ts'
import { joined, lengthsWithin, MINUTE_S } from '../../tape/bars/bar-sums.ts'
import type { Tape } from '../../tape/tape.ts'
import { barFieldsOfMinutes, hasBar, minuteOf, type NotedTrade, poolMinutesOf } from '../../tokens/minute-bars.ts'

/** Limit of the rows that are read without a pause. */
const ROWS_PER_SLICE = 1_500

export type BarToken = { readonly address: Hex; readonly symbol: string }

/** Bars of tokens that start from `since` on and before `until`, in seconds. */
export type BarsRange = {
  readonly seconds: number
  readonly since: number
  readonly until: number
  readonly order: 'asc' | 'desc'
  readonly pools: readonly Hex[] | null
  /** Whether the bars that are not over are in the range too. */
  readonly hasOpen: boolean
  /** About how many bars of each token the caller takes: so many rows are read first. Each slice is twice as long as the one before. */
  readonly expected: number
}

export type BarsContext = {
  readonly tape: Pick<Tape, 'readBars' | 'notes'>
  readonly pause: () => Promise<unknown>
  readonly navStaleAfterMs: number
  readonly finalized: number | null
}

type ReadContext = Omit<BarsContext, 'pause'>
type ReadTimes = ReturnType<typeof timesOf>

type ReadBar = { readonly start: number; readonly bar: StoredBar }

/**
 * Bars in the order of their start, then of their tokens. At each null the caller waits, so that others can work. Which minutes are
 * over, and what is in those that are not, is as it was at the first bar: a minute that ends meanwhile counts once.
 */
export function* readBars(context: ReadContext, tokens: readonly BarToken[], range: BarsRange): Generator<ReadBar | null, void> {
  const sign = range.order === 'asc' ? 1 : -1
  const times = timesOf(context.tape)
  const readers = tokens.map((token) => {
    const open = range.hasOpen ? openMinutes(context.tape, token.address, times.openFrom, range) : []
    return readOfToken(context, token, range, { ...times, open })
  })
  const heads: (ReadBar | undefined)[] = []
  for (const reader of readers) heads.push(yield* headOf(reader))
  for (;;) {
    let first = -1
    for (const [index, head] of heads.entries())
      if (head && (first < 0 || sign * (head.start - (heads[first]?.start ?? 0)) < 0)) first = index
    const [head, reader] = [heads[first], readers[first]]
    if (!head || !reader) return
    yield head
    heads[first] = yield* headOf(reader)
  }
}

function* headOf(reader: ReturnType<typeof readOfToken>): Generator<null, ReadBar | undefined> {
  for (;;) {
    const { value } = reader.next()
    if (value !== null) return value ?? undefined
    yield null
  }
}

/** Adds up minutes, or the longest stored sums. A bar that is not over is in the range only if its open minutes are. */
function* readOfToken(
  context: ReadContext,
  token: BarToken,
  range: BarsRange,
  times: ReadTimes & { readonly open: readonly MinuteBar[] },
): Generator<ReadBar | null, void> {
  const { seconds, order, pools } = range
  const barOf = barMaker(context, token, range, times)
  let current = null as MinuteBar | null
  for (const part of partsOf(context, token.address, range, times)) {
    if (part === null) {
      yield null
      continue
    }
    const next = { ...part, start: part.start - (part.start % seconds) }
    if (current && current.start !== next.start && hasBar(current, pools)) yield barOf(current)
    if (current?.start === next.start) current = order === 'asc' ? joined(current, next) : joined(next, current)
    else current = next
  }
  if (current && hasBar(current, pools)) yield barOf(current)
}

function barMaker(
  { navStaleAfterMs, finalized }: ReadContext,
  { address, symbol }: BarToken,
  { seconds, pools }: BarsRange,
  { openFrom, faults }: ReadTimes,
) {
  return (stretch: MinuteBar): ReadBar => {
    const end = stretch.start + seconds
    const isFinal = finalized !== null && stretch.closedBy <= finalized
    const state: BarState = end > openFrom ? 'open' : isFinal ? 'final' : 'closed'
    // A minute that is over has the value of its message.
    const isMessage = seconds === MINUTE_S && state !== 'open'
    const partial = stretch.partial ?? (isMessage ? null : faultIn(faults, address, stretch.start, end))
    const revision = Math.max(1, pools ? stretch.edition : stretch.revision)
    const fields = barFieldsOfMinutes({ ...stretch, partial, revision, seconds }, navStaleAfterMs / 1_000, pools)
    return { start: stretch.start, bar: { symbol, ...fields, state } }
  }
}

/** Reads what bars are made of, in slices. It is parsed when the caller asks for it: most pages end in the middle of a slice. */
function* partsOf(
  { tape }: ReadContext,
  address: Hex,
  range: BarsRange,
  { openFrom, open }: Pick<ReadTimes, 'openFrom'> & { readonly open: readonly MinuteBar[] },
): Generator<MinuteBar | null, void> {
  const { order, hasOpen, seconds, expected } = range
  const { since, until } = wholeBars(range)
  const end = Math.min(until, hasOpen ? openFrom : openFrom - (openFrom % seconds))
  // No sum that is read has a minute that is not over: it may end, and be added to its sum, while the caller waits.
  const spans = lengthsWithin(seconds).map((length) => ({ length, until: end - (end % length) }))
  const ranges = spans.map(({ length, until }, index) => {
    const [longer, count] = [spans[index - 1]?.length ?? seconds, index === 0 ? expected : 1]
    return {
      ...{ seconds: length, until },
      since: Math.max(since, spans[index - 1]?.until ?? since),
      // The row after a bar shows that it is whole.
      firstSlice: Math.min((count * longer) / length + 1, ROWS_PER_SLICE),
    }
  })
  if (order === 'desc') yield* open.toReversed()
  for (const one of order === 'asc' ? ranges : ranges.toReversed()) yield* rowsOf(tape, address, one, order)
  if (order === 'asc') yield* open
}

function* rowsOf(
  tape: ReadContext['tape'],
  address: Hex,
  { firstSlice, ...range }: Required<Pick<BarRange, 'seconds' | 'since' | 'until'>> & { readonly firstSlice: number },
  order: BarsRange['order'],
): Generator<MinuteBar | null, void> {
  let { since, until } = range
  let readSincePause = 0
  for (let limit = firstSlice; since < until; limit = Math.min(2 * limit, ROWS_PER_SLICE)) {
    const rows = tape.readBars(address, { ...range, since, until, order, limit })
    readSincePause += rows.length
    for (const row of rows) yield minuteBarOf(row)
    const last = rows.at(-1)
    if (!last || rows.length < limit) return
    if (order === 'asc') since = last[1] + range.seconds
    else until = last[1]
    if (readSincePause < ROWS_PER_SLICE) continue
    yield null
    readSincePause = 0
  }
}

/** The times between which whole bars start. */
function wholeBars({ since, until, seconds }: BarsRange): { readonly since: number; readonly until: number } {
  const next = (time: number) => Math.ceil(time / seconds) * seconds
  return { since: next(since), until: next(until) }
}

/** Returns the minutes that are not over, of pre-confirmed trades too. */
function openMinutes({ notes }: BarsContext['tape'], address: Hex, openFrom: number, range: BarsRange): readonly MinuteBar[] {
  const { since, until } = wholeBars(range)
  const byMinute = new Map<number, NotedTrade[]>()
  for (const [key, trades] of notes.notes(blockTradesNotes)) {
    if (addressOfKey(key) !== address) continue
    for (const trade of trades) {
      const minute = trade.second === null ? until : minuteOf(trade.second)
      if (minute >= Math.max(since, openFrom) && minute < until) byMinute.set(minute, [...(byMinute.get(minute) ?? []), trade])
    }
  }
  return [...byMinute]
    .sort(([a], [b]) => a - b)
    .map(([start, trades]) => ({
      ...{ address, start, edition: 1, partial: null, closedBy: Number.POSITIVE_INFINITY },
      revision: trades.some(({ isMain }) => isMain) ? 1 : 0,
      pools: poolMinutesOf(trades),
    }))
}

export function timesOf({ notes }: Pick<Tape, 'notes'>) {
  const { keptFrom, openFrom } = notes.note(barTimesNote) ?? { keptFrom: 0, openFrom: 0 }
  const faults: readonly BarFault[] = notes.note(barFaultsNote) ?? []
  return { keptFrom, openFrom, faults }
}
