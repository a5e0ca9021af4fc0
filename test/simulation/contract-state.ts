import type { Hex } from '../../src/protocol/fields.ts'
import type { Content } from './simulated-block.ts'
import { newcomer, stocks } from './simulated-tokens.ts'
import {
  multiplierUpdated,
  NO_CAP,
  supplyCapUpdated,
  uiMultiplierUpdateCancelled,
  uiMultiplierUpdated,
} from './token-event-logs.ts'

/** What somebody asks of a contract: what it says then follows from what holds where the transaction comes to stand. */
export type Call = { readonly address: Hex } & (
  | { readonly call: 'multiply' | 'multiplyOnce'; readonly to: bigint }
  /** In seconds. */
  | { readonly call: 'schedule'; readonly to: bigint; readonly at: number }
  | { readonly call: 'cancel' }
  | { readonly call: 'cap'; readonly to: bigint }
)

/** What a contract holds of itself. */
export type Book = {
  readonly multiplier: bigint
  readonly schedule: { readonly to: bigint; readonly at: number } | null
  readonly cap: bigint
  readonly paused: readonly number[]
  /** What was said of the record since the world began. */
  readonly fields: Readonly<Record<string, unknown>>
}
export type Books = ReadonlyMap<Hex, Book>

const WAD_PER_HUNDREDTH = 10n ** 16n
const first = { schedule: null, cap: NO_CAP, paused: [], fields: {} }

export const firstBooks: Books = new Map(
  [...stocks, newcomer].map(({ address, hundredths }) => [
    address,
    { ...first, multiplier: hundredths * WAD_PER_HUNDREDTH },
  ]),
)

/** A schedule that has come of age holds, though nothing was said or written. */
export const multiplierAt = ({ multiplier, schedule }: Book, second: number): bigint =>
  schedule && schedule.at <= second ? schedule.to : multiplier

/** What comes of one log, or of what somebody asks, in a block of this time. */
export function said(
  books: Books,
  one: Content | Call,
  second: number,
): { readonly books: Books; readonly contents: readonly Content[] } {
  const before = books.get(one.address)
  if (!before) return { books, contents: 'call' in one ? [] : [one] }
  const { book, contents } = 'call' in one ? done(before, one, second) : { book: read(before, one), contents: [one] }
  return { books: book === before ? books : new Map(books).set(one.address, book), contents }
}

function done(book: Book, call: Call, second: number): { readonly book: Book; readonly contents: readonly Content[] } {
  const { address } = call
  const live = book.schedule && book.schedule.at > second ? book.schedule : null
  const multiplier = multiplierAt(book, second)
  const ended = live ? [uiMultiplierUpdateCancelled(address, live.to, live.at)] : []
  switch (call.call) {
    case 'multiply':
    case 'multiplyOnce': {
      const once = multiplierUpdated(address, call.to)
      const told =
        call.call === 'multiply' ? [...ended, once, uiMultiplierUpdated(address, multiplier, call.to, second)] : [once]
      return { book: { ...book, multiplier: call.to, schedule: null }, contents: told }
    }
    case 'schedule': {
      // Whoever comes too late is turned away.
      if (call.at <= second) return { book, contents: [] }
      const schedule = { to: call.to, at: call.at }
      const contents = [...ended, uiMultiplierUpdated(address, multiplier, call.to, call.at)]
      return { book: { ...book, multiplier, schedule }, contents }
    }
    case 'cancel':
      return { book: live ? { ...book, schedule: null } : book, contents: ended }
    case 'cap':
      return { book: { ...book, cap: call.to }, contents: [supplyCapUpdated(address, book.cap, call.to)] }
  }
}

function read(book: Book, { means }: Content): Book {
  switch (means?.event) {
    case 'Paused':
      return { ...book, paused: [...new Set([...book.paused, ...means.features])].sort() }
    case 'Unpaused':
      return { ...book, paused: book.paused.filter((one) => !means.features.includes(one)) }
    case 'FieldUpdated':
      return { ...book, fields: { ...book.fields, [means.field]: means.value } }
    default:
      return book
  }
}
