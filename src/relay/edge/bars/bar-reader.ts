import type { Hex } from '../../../lib/hex.ts'
import type { BarState, StoredBar } from '../../../protocol/bars/bars-query.ts'
import { addressOfKey, type BarFault, barFaultsNote, barTimesNote, blockTradesNotes, faultIn } from '../../notes/bar-notes.ts'
import { type MinuteBar, minuteBarOf } from '../../tape/bars/bar-row.ts'
import { joined, MINUTE_S, partSecondsOf } from '../../tape/bars/bar-sums.ts'
import type { Tape } from '../../tape/tape.ts'
import { barFieldsOfMinutes, hasBar, minuteOf, type NotedTrade, poolMinutesOf } from '../../tokens/minute-bars.ts'

/** Rows of the first slice, and limit of those that are read without a pause. Each slice is twice as long as the one before. */
const [FIRST_ROWS, ROWS_PER_SLICE] = [64, 1_500]

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
}

export type BarsContext = {
  readonly tape: Pick<Tape, 'readBars' | 'notes'>
  readonly pause: () => Promise<unknown>
  readonly navStaleAfterMs: number
  readonly finalized: number | null
}

type ReadContext = Omit<BarsContext, 'pause'>

type ReadBar = { readonly start: number; readonly bar: StoredBar }

/** Bars in the order of their start, then of their tokens. At each null the caller waits, so that others can work. */
export function* readBars(context: ReadContext, tokens: readonly BarToken[], range: BarsRange): Generator<ReadBar | null, void> {
  const sign = range.order === 'asc' ? 1 : -1
  const readers = tokens.map((token) => readOfToken(context, token, range))
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
function* readOfToken(context: ReadContext, token: BarToken, range: BarsRange): Generator<ReadBar | null, void> {
  const { seconds, order, pools } = range
  const barOf = barMaker(context, token, range)
  let current = null as MinuteBar | null
  for (const part of partsOf(context, token.address, range)) {
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

function barMaker({ tape, navStaleAfterMs, finalized }: ReadContext, { address, symbol }: BarToken, { seconds, pools }: BarsRange) {
  const { openFrom, faults } = timesOf(tape)
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
  { order, hasOpen, seconds, ...range }: BarsRange,
): Generator<MinuteBar | null, void> {
  const { openFrom } = timesOf(tape)
  const partSeconds = partSecondsOf(seconds)
  const [since, until] = [range.since, range.until].map((time) => Math.ceil(time / seconds) * seconds) as [number, number]
  const left = { since, until: Math.min(until, hasOpen ? openFrom : openFrom - (openFrom % seconds)) }
  const open = hasOpen ? openMinutes(tape, address, Math.max(since, openFrom), until) : []
  if (order === 'desc') yield* open.toReversed()
  for (let limit = FIRST_ROWS; ; limit = Math.min(2 * limit, ROWS_PER_SLICE)) {
    const rows = tape.readBars(address, { ...left, order, limit, seconds: partSeconds })
    for (const row of rows) yield minuteBarOf(row)
    const last = rows.at(-1)
    if (!last || rows.length < limit) break
    const [, start] = last
    if (order === 'asc') left.since = start + partSeconds
    else left.until = start
    yield null
  }
  if (order === 'asc') yield* open
}

/** Returns the minutes that are not over, of pre-confirmed trades too. */
function openMinutes({ notes }: BarsContext['tape'], address: Hex, since: number, until: number): readonly MinuteBar[] {
  const byMinute = new Map<number, NotedTrade[]>()
  for (const [key, trades] of notes.notes(blockTradesNotes)) {
    if (addressOfKey(key) !== address) continue
    for (const trade of trades) {
      const minute = trade.second === null ? until : minuteOf(trade.second)
      if (minute >= since && minute < until) byMinute.set(minute, [...(byMinute.get(minute) ?? []), trade])
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
