import { isDeepStrictEqual } from 'node:util'
import { getOrAdd } from '../../../lib/bounded-map.ts'
import type { Hex } from '../../../lib/hex.ts'
import type { DraftOf } from '../../../protocol/updates.ts'
import {
  addressOfKey,
  type BlockTrades,
  barFaultsNote,
  barTimesNote,
  blockTradesNotes,
  faultIn,
  minuteBlocksNote,
  minuteRowNotes,
  numberOfKey,
  tokenKeyOf,
} from '../../notes/bar-notes.ts'
import { type BarRow, barRowOf, type MinuteBar, minuteBarOf } from '../../tape/bars/bar-row.ts'
import { MINUTE_S } from '../../tape/bars/bar-sums.ts'
import type { NoteReader, Notes } from '../../tape/notes.ts'
import { barFieldsOfMinute, minuteOf, poolMinutesOf } from '../../tokens/minute-bars.ts'
import type { Moment } from '../batch-values.ts'
import type { IngestState } from '../ingest-state.ts'
import { type BarBook, emptyBook, makeDue, minuteOfBlock, placeFaults } from './bar-book.ts'
import { endUnnamedFaults } from './track-bars.ts'

/** Limit of the bars that one turn of the event loop makes and stores. A changed one makes the sums of its hour and day again. */
const BARS_PER_STEP = 30
/** Limit of the trades that the book keeps. Beyond it, bars of the oldest minutes do not change any more. */
const TRADES_BOUND = 262_144

/**
 * Publishes the bars of minutes that are over: a block with a later time is settled, and all blocks before it are. A minute
 * whose trades changed is published again.
 */
export function* closeBars(state: IngestState, moment: Moment): Generator<readonly DraftOf<'bar'>[], void> {
  const { bars: book, cursor } = state
  // While blocks before the newest one are not settled, as during a backfill, no bar closes.
  if (!book.newest || !cursor || book.newest.number > cursor.number) return
  endUnnamedFaults(state)
  placeFaults(book)
  const openFrom = minuteOf(book.newest.timestamp)
  if (openFrom <= book.openFrom && !hasDue(book, openFrom)) return
  for (let due = takeDue(book, openFrom); due.length > 0; due = takeDue(book, openFrom))
    yield due.flatMap(({ address, minute }) => closeMinute(state, address, minute, moment))
  if (openFrom <= book.openFrom) return
  // Only now, with the last bar: a page that has the bars of a minute has those of all tokens.
  book.openFrom = openFrom
  forgetFinalMinutes(state)
}

const hasDue = ({ due }: BarBook, openFrom: number): boolean =>
  [...due.values()].some((minutes) => [...minutes].some((minute) => minute < openFrom))

function takeDue(book: BarBook, openFrom: number) {
  const all = [...book.due].flatMap(([address, minutes]) =>
    [...minutes].filter((minute) => minute < openFrom).map((minute) => ({ address, minute })),
  )
  const taken = all.sort((a, b) => a.minute - b.minute).slice(0, BARS_PER_STEP)
  for (const { address, minute } of taken) book.due.get(address)?.delete(minute)
  return taken
}

function closeMinute(
  state: IngestState,
  address: Hex,
  minute: number,
  { time, navStaleAfterMs }: Moment,
): readonly DraftOf<'bar'>[] {
  const { bars: book } = state
  if (minute < book.keptFrom) return []
  const before = book.written.get(address)?.get(minute)
  const trades = sealedTradesOf(book, address, minute)
  if (!before && trades.length === 0) return []
  const pools = poolMinutesOf(trades)
  const partial = before?.partial ?? faultIn(book.faults, address, minute, minute + MINUTE_S)
  const bare: MinuteBar = {
    ...{ address, start: minute, edition: (before?.edition ?? 0) + 1, revision: before?.revision ?? 0, partial, pools },
    closedBy: before?.closedBy ?? state.cursor?.number ?? 0,
  }
  if (before && partial === before.partial && isDeepStrictEqual(pools, before.pools)) return []
  const staleAfterS = navStaleAfterMs / 1_000
  const fields = barFieldsOfMinute(bare, staleAfterS)
  // A minute that was not published had trades in other pools alone.
  const isSame = before?.revision ? isDeepStrictEqual(fields, barFieldsOfMinute(before, staleAfterS)) : fields.trades === 0
  const bar: MinuteBar = isSame ? bare : { ...bare, revision: bare.revision + 1 }
  getOrAdd(book.written, address, () => new Map<number, MinuteBar>()).set(minute, bar)
  book.rows.push(barRowOf(bar))
  const symbol = state.tokens.get(address)?.symbol
  if (isSame || symbol === undefined) return []
  return [{ type: 'bar', symbol, address, time, ...fields, revision: bar.revision }]
}

const sealedTradesOf = ({ trades }: BarBook, address: Hex, minute: number) =>
  [...(trades.get(address)?.values() ?? [])].flatMap((block) =>
    block.filter(({ isSealed, second }) => isSealed && second !== null && minuteOf(second) === minute),
  )

/** Forgets the trades of minutes in which no block can change any more, and whose bars are published. */
function forgetFinalMinutes({ bars: book, ledger }: IngestState): void {
  const final = minuteOfBlock(book, ledger.keptFrom) ?? 0
  const due = [...book.due.values()].flatMap((minutes) => [...minutes])
  forgetBefore(
    book,
    due.reduce((least, minute) => Math.min(least, minute), Math.min(final, book.openFrom)),
  )
  if (countOf(book) <= TRADES_BOUND) return
  for (const minute of minutesOf(book)) {
    if (countOf(book) <= TRADES_BOUND || minute >= book.openFrom) break
    forgetBefore(book, minute + MINUTE_S)
  }
}

/** The minutes with trades, oldest first. */
const minutesOf = ({ trades }: BarBook): readonly number[] => {
  const times = [...trades.values()].flatMap((blocks) => [...blocks.values()].flat().flatMap(({ second }) => second ?? []))
  return [...new Set(times.map(minuteOf))].sort((a, b) => a - b)
}

const countOf = ({ trades }: BarBook): number =>
  [...trades.values()].reduce((sum, blocks) => [...blocks.values()].reduce((count, block) => count + block.length, sum), 0)

function forgetBefore(book: BarBook, keptFrom: number): void {
  if (keptFrom <= book.keptFrom) return
  book.keptFrom = keptFrom
  for (const [address, blocks] of book.trades)
    for (const [block, ofBlock] of blocks)
      if (ofBlock.every(({ second }) => second !== null && second < keptFrom)) {
        blocks.delete(block)
        book.changedBlocks.add(tokenKeyOf(address, block))
      }
  for (const [address, minutes] of book.written)
    for (const minute of minutes.keys())
      if (minute < keptFrom) {
        minutes.delete(minute)
        book.finalMinutes.add(tokenKeyOf(address, minute))
      }
  for (const minutes of book.due.values()) for (const minute of minutes) if (minute < keptFrom) minutes.delete(minute)
  // The last minute before tells which blocks are final next time.
  for (const minute of book.minuteBlocks.keys()) if (minute < keptFrom - MINUTE_S) book.minuteBlocks.delete(minute)
}

export function noteBars(
  notes: Notes,
  book: BarBook,
  { rows, before }: { readonly rows: readonly BarRow[]; readonly before: Pick<BarBook, 'keptFrom' | 'openFrom' | 'faults'> },
): void {
  for (const key of book.changedBlocks)
    notes.set(blockTradesNotes.at(key), book.trades.get(addressOfKey(key))?.get(numberOfKey(key)) ?? null)
  book.changedBlocks.clear()
  for (const row of rows) notes.set(minuteRowNotes.at(tokenKeyOf(row[0], row[1])), row)
  for (const key of book.finalMinutes) notes.set(minuteRowNotes.at(key), null)
  book.finalMinutes.clear()
  const { keptFrom, openFrom, faults } = book
  if (keptFrom !== before.keptFrom || openFrom !== before.openFrom) notes.set(barTimesNote, { keptFrom, openFrom })
  if (faults !== before.faults) notes.set(barFaultsNote, faults)
  if (book.areMinutesNew) notes.set(minuteBlocksNote, [...book.minuteBlocks.values()])
  book.areMinutesNew = false
}

/** Restores the book from the notes. The bars of all minutes that may change are made again, and compared. */
export function restoreBook(notes: NoteReader): BarBook {
  const book = emptyBook()
  const times = notes.note(barTimesNote)
  book.keptFrom = times?.keptFrom ?? 0
  book.openFrom = times?.openFrom ?? 0
  book.faults = notes.note(barFaultsNote) ?? []
  for (const minute of notes.note(minuteBlocksNote) ?? []) book.minuteBlocks.set(minute[0], minute)
  for (const [key, block] of notes.notes(blockTradesNotes)) {
    const address = addressOfKey(key)
    getOrAdd(book.trades, address, () => new Map<number, BlockTrades>()).set(numberOfKey(key), block)
    for (const { second } of block) if (second !== null) makeDue(book, address, minuteOf(second))
  }
  for (const row of notes.notes(minuteRowNotes).values()) {
    const bar = minuteBarOf(row)
    getOrAdd(book.written, bar.address, () => new Map<number, MinuteBar>()).set(bar.start, bar)
    makeDue(book, bar.address, bar.start)
  }
  return book
}
