import type { Hex } from '../../src/protocol/fields.ts'
import type { LogContent } from './simulated-block.ts'
import { laterToken, listedTokens } from './simulated-tokens.ts'
import {
  multiplierUpdated,
  NO_CAP,
  supplyCapUpdated,
  uiMultiplierUpdateCancelled,
  uiMultiplierUpdated,
} from './token-event-logs.ts'

/** What somebody asks of a contract: what it says then follows from what holds where the transaction comes to stand. */
export type ContractCall = { readonly address: Hex } & (
  | { readonly call: 'multiply' | 'multiplyOnce'; readonly to: bigint }
  /** In seconds. */
  | { readonly call: 'schedule'; readonly to: bigint; readonly at: number }
  | { readonly call: 'cancel' }
  | { readonly call: 'cap'; readonly to: bigint }
)

/** What a contract holds of itself. */
export type ContractState = {
  readonly multiplier: bigint
  readonly schedule: { readonly to: bigint; readonly at: number } | null
  readonly cap: bigint
  readonly paused: readonly number[]
  /** What was said of the record since the world began. */
  readonly fields: Readonly<Record<string, unknown>>
}
export type ContractStates = ReadonlyMap<Hex, ContractState>

const WAD_PER_HUNDREDTH = 10n ** 16n
const initialState = { schedule: null, cap: NO_CAP, paused: [], fields: {} }

export const initialContracts: ContractStates = new Map(
  [...listedTokens, laterToken].map(({ address, hundredths }) => [
    address,
    { ...initialState, multiplier: hundredths * WAD_PER_HUNDREDTH },
  ]),
)

/** A schedule that has come of age holds, though nothing was said or written. */
export const multiplierAt = ({ multiplier, schedule }: ContractState, second: number): bigint =>
  schedule && schedule.at <= second ? schedule.to : multiplier

/** What comes of one log, or of what somebody asks, in a block of this time. */
export function execute(
  books: ContractStates,
  one: LogContent | ContractCall,
  second: number,
): { readonly books: ContractStates; readonly contents: readonly LogContent[] } {
  const before = books.get(one.address)
  if (!before) return { books, contents: 'call' in one ? [] : [one] }
  const { book, contents } =
    'call' in one ? executeCall(before, one, second) : { book: applyLog(before, one), contents: [one] }
  return { books: book === before ? books : new Map(books).set(one.address, book), contents }
}

function executeCall(
  book: ContractState,
  call: ContractCall,
  second: number,
): { readonly book: ContractState; readonly contents: readonly LogContent[] } {
  const { address } = call
  const live = book.schedule && book.schedule.at > second ? book.schedule : null
  const multiplier = multiplierAt(book, second)
  const ended = live ? [uiMultiplierUpdateCancelled(address, live.to, live.at)] : []
  switch (call.call) {
    case 'multiply':
    case 'multiplyOnce': {
      const once = multiplierUpdated(address, call.to)
      const contents =
        call.call === 'multiply' ? [...ended, once, uiMultiplierUpdated(address, multiplier, call.to, second)] : [once]
      return { book: { ...book, multiplier: call.to, schedule: null }, contents: contents }
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

function applyLog(book: ContractState, { tokenEvent }: LogContent): ContractState {
  switch (tokenEvent?.event) {
    case 'Paused':
      return { ...book, paused: [...new Set([...book.paused, ...tokenEvent.features])].sort() }
    case 'Unpaused':
      return { ...book, paused: book.paused.filter((one) => !tokenEvent.features.includes(one)) }
    case 'FieldUpdated':
      return { ...book, fields: { ...book.fields, [tokenEvent.field]: tokenEvent.value } }
    default:
      return book
  }
}
