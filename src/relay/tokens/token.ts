import type { Hex } from '../../lib/hex.ts'
import type { Nav, TokenRecord } from '../../protocol/fields.ts'
import { parseSymbol } from './list/list-parser.ts'
import { applyRecordChanges, type RecordChange } from './list/record-changes.ts'
import { currentMultiplier, type MultiplierHistory, type MultiplierSource } from './multiplier-history.ts'
import type { NavReading, NavTiming } from './nav.ts'
import { currentNav, type NavHistory } from './nav-history.ts'
import { type PauseHistory, pausedAt } from './pause-history.ts'

/** The current state of a token. It is derived from the histories, and stored so that reads need not derive it. */
type DerivedState = {
  readonly symbol: string
  readonly multiplier: string | null
  readonly multiplierSource: MultiplierSource | null
  /** The next multiplier, and the time at which it takes effect, in seconds. */
  readonly scheduled: { readonly to: string; readonly effectiveAt: number } | null
  readonly paused: readonly number[]
  readonly navReading: NavReading
  readonly record: TokenRecord
}

/** The last multiplier in the list. `omissions` counts refreshes since then without one, if no log or call reported one. */
export type ListedMultiplier = { readonly multiplier: string | null; readonly omissions?: number }

/** A token as last published, with its histories. The tape stores it as a note. */
export type Token = DerivedState & {
  readonly address: Hex
  /** Former symbols, by which the token can still be found. */
  readonly formerSymbols: readonly string[]
  readonly isin: string | null
  readonly decimals: number | null
  readonly supply: string | null
  /** Last values in the list. A value that the list repeats is no change. */
  readonly lastListed: ListedMultiplier & { readonly paused: readonly number[]; readonly record: TokenRecord }
  readonly multiplierHistory: MultiplierHistory
  readonly pauseHistory: PauseHistory
  readonly recordChanges: readonly RecordChange[]
  readonly navHistory: NavHistory
  readonly publishedNav: Nav | null
  /** Whether the registry of the oracle says that the feed is frozen; null if unknown. */
  readonly frozen: boolean | null
  /** A token is `awaited` until the relay receives its logs. Then it is published as listed. */
  readonly state: 'awaited' | 'listed' | 'delisted'
}

const FORMER_SYMBOLS_BOUND = 8

export function withDerivedState(token: Omit<Token, keyof DerivedState> & { readonly symbol?: string }, timing: NavTiming): Token {
  const { value, source, scheduled } = currentMultiplier(token.multiplierHistory)
  const record = applyRecordChanges(token.lastListed.record, token.recordChanges)
  const symbol = parseSymbol(record.symbol) ?? token.address
  const before = token.symbol ?? symbol
  return {
    ...token,
    symbol,
    formerSymbols: before === symbol ? token.formerSymbols : addFormerSymbol(token.formerSymbols, before, symbol),
    multiplier: value,
    multiplierSource: source,
    scheduled: scheduled && { to: scheduled.to ?? '', effectiveAt: scheduled.effectiveAt ?? 0 },
    paused: pausedAt(token.pauseHistory, null),
    navReading: currentNav(token.navHistory, timing).reading,
    record,
  }
}

const addFormerSymbol = (formerSymbols: readonly string[], before: string, now: string): readonly string[] =>
  [before, ...formerSymbols.filter((name) => name !== now && name !== before)].slice(0, FORMER_SYMBOLS_BOUND)
