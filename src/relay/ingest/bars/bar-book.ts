import { getOrAdd } from '../../../lib/bounded-map.ts'
import type { Hex } from '../../../lib/hex.ts'
import { type BarFault, type BlockTrades, faultIn, type MinuteBlocks, tokenKeyOf } from '../../notes/bar-notes.ts'
import type { BarRow, MinuteBar } from '../../tape/bars/bar-row.ts'
import { MINUTE_S } from '../../tape/bars/bar-sums.ts'
import { minuteOf } from '../../tokens/minute-bars.ts'

/** Limit of the minutes whose first block is known, about three days. Beyond it the oldest is forgotten. */
const MINUTES_BOUND = 4_096
/** Limit of the faults that are kept. Beyond it the oldest is forgotten. */
const FAULTS_BOUND = 256

/** The trades that bars may still need, by token and block: of minutes that are not over, or in which a block may change. */
export type BarBook = {
  readonly trades: Map<Hex, Map<number, BlockTrades>>
  /** Keys of the blocks whose trades changed since the last notes. */
  readonly changedBlocks: Set<string>
  /** Minutes whose bar is to be made again, by token. */
  readonly due: Map<Hex, Set<number>>
  /** The last written bar of each minute that may change, by token. */
  readonly written: Map<Hex, Map<number, MinuteBar>>
  /** Minutes to write with this batch. */
  rows: BarRow[]
  /** Keys of the minutes that do not change any more, since the last notes. */
  readonly finalMinutes: Set<string>
  readonly minuteBlocks: Map<number, MinuteBlocks>
  /** Whether a minute, or an earlier block of one, is known since the last notes. */
  areMinutesNew: boolean
  newest: { readonly number: number; readonly timestamp: number } | null
  /** Minutes before this one do not change any more. */
  keptFrom: number
  /** The first minute that is not over. */
  openFrom: number
  faults: readonly BarFault[]
  /** The faults for which written bars were made due. */
  placedFaults: readonly BarFault[]
}

export const emptyBook = (): BarBook => ({
  trades: new Map(),
  changedBlocks: new Set(),
  due: new Map(),
  written: new Map(),
  rows: [],
  finalMinutes: new Set(),
  ...{ minuteBlocks: new Map(), areMinutesNew: false },
  newest: null,
  ...{ keptFrom: 0, openFrom: 0 },
  ...{ faults: [], placedFaults: [] },
})

const NO_TRADES: BlockTrades = []

/** Changes the trades of a block, unless its minute cannot change any more. */
export function changeTrades(book: BarBook, address: Hex, block: number, change: (before: BlockTrades) => BlockTrades): void {
  const before = book.trades.get(address)?.get(block)
  const after = change(before ?? NO_TRADES)
  if (!before && after.length === 0) return
  if (after.some(({ second }) => second !== null && second < book.keptFrom)) return
  const blocks = getOrAdd(book.trades, address, () => new Map<number, BlockTrades>())
  if (after.length === 0) blocks.delete(block)
  else blocks.set(block, after)
  book.changedBlocks.add(tokenKeyOf(address, block))
  for (const { second } of [...(before ?? NO_TRADES), ...after]) if (second !== null) makeDue(book, address, minuteOf(second))
}

export function makeDue(book: BarBook, address: Hex, minute: number): void {
  getOrAdd(book.due, address, () => new Set<number>()).add(minute)
}

/** Records a settled block: the time of the newest one closes minutes. */
export function observeSettled(
  book: BarBook,
  { number, timestamp }: { readonly number: number; readonly timestamp: number | null },
): void {
  if (timestamp === null) return
  const minute = minuteOf(timestamp)
  if (number >= (book.newest?.number ?? 0)) book.newest = { number, timestamp }
  const [, first = number, last = number] = book.minuteBlocks.get(minute) ?? []
  if (!book.minuteBlocks.has(minute) || number < first) book.areMinutesNew = true
  book.minuteBlocks.set(minute, [minute, Math.min(first, number), Math.max(last, number)])
  if (book.minuteBlocks.size > MINUTES_BOUND) book.minuteBlocks.delete(Math.min(...book.minuteBlocks.keys()))
}

/** Blocks from this one on are replaced. */
export function forgetBlockTimes(book: BarBook, from: number): void {
  if (book.newest && book.newest.number >= from) book.newest = null
  book.areMinutesNew = true
  for (const [minute, first, last] of book.minuteBlocks.values())
    if (first >= from) book.minuteBlocks.delete(minute)
    else if (last >= from) book.minuteBlocks.set(minute, [minute, first, from - 1])
}

/** The minute of the last known block that is not above this block; null if none is known. */
export const minuteOfBlock = ({ minuteBlocks }: BarBook, block: number): number | null =>
  greatest([...minuteBlocks.values()].flatMap(([minute, first]) => (first <= block ? minute : [])))

/** The minute of the first known block that is not below this block. A page of old blocks has only those with logs. */
const minuteFromBlock = ({ minuteBlocks }: BarBook, block: number): number | null =>
  least([...minuteBlocks.values()].flatMap(([minute, , last]) => (last >= block ? minute : [])))

const greatest = (minutes: readonly number[]): number | null => (minutes.length > 0 ? Math.max(...minutes) : null)
const least = (minutes: readonly number[]): number | null => (minutes.length > 0 ? Math.min(...minutes) : null)

type FaultCause = Pick<BarFault, 'reason' | 'token' | 'pool'>

/** Minutes from that of the block before `first` to that of the block after `last` may lack trades. `last` is null for no end. */
export function addFault(book: BarBook, cause: FaultCause, first: number, last: number | null): void {
  // After a reorg below the first block that was settled, the bars that are written or due know the earliest minute.
  const bars = [...book.written.values(), ...book.due.values()]
  const earliest = () => Math.min(book.openFrom, ...[book.minuteBlocks, ...bars].map((minutes) => Math.min(...minutes.keys())))
  const from = minuteOfBlock(book, first - 1) ?? earliest()
  book.faults = [...book.faults, { ...cause, from, to: null, firstBlock: first, lastBlock: last }].slice(-FAULTS_BOUND)
}

/**
 * Finds the minutes of new faults. Before all blocks up to the newest one are settled, the times of the blocks beside a fault may be
 * unknown: a hole is published before the blocks above and below it. The bars that are written already become partial.
 */
export function placeFaults(book: BarBook): void {
  const placed = book.faults.map((fault) => (fault.to === null ? placedFault(book, fault) : fault))
  if (placed.some((fault, index) => fault !== book.faults[index])) book.faults = placed
  if (book.faults === book.placedFaults) return
  book.placedFaults = book.faults
  for (const [address, minutes] of book.written)
    for (const [minute, { partial }] of minutes)
      if (partial === null && faultIn(book.faults, address, minute, minute + MINUTE_S) !== null) makeDue(book, address, minute)
}

function placedFault(book: BarBook, fault: BarFault): BarFault {
  const { firstBlock, lastBlock } = fault
  const isOver = lastBlock !== null && lastBlock < (book.newest?.number ?? 0)
  const to = isOver ? minuteFromBlock(book, lastBlock + 1) : null
  // After a reorganisation below the first block that was settled, all blocks before the fault are unknown.
  const from = minuteOfBlock(book, firstBlock - 1) ?? Math.min(fault.from, minuteFromBlock(book, firstBlock) ?? fault.from)
  return from === fault.from && to === null ? fault : { ...fault, from, to }
}

export function endFaults(book: BarBook, lastBlock: number, isOver: (fault: BarFault) => boolean): void {
  const isEnding = (fault: BarFault) => fault.lastBlock === null && isOver(fault)
  if (!book.faults.some(isEnding)) return
  book.faults = book.faults.map((fault) => (isEnding(fault) ? { ...fault, lastBlock } : fault))
}
