import type { Hex, Nav, TokenRecord } from '../protocol/fields.ts'
import { parseSymbol } from './list-parser.ts'
import { currentMultiplier, type MultiplierHistory, type MultiplierSource } from './multiplier.ts'
import type { NavReading, NavTiming } from './nav.ts'
import { currentNav, type NavHistory } from './nav-history.ts'
import { type PauseHistory, pausedAt } from './pauses.ts'
import { applyRecordChanges, type RecordChange } from './record.ts'

/** What a token is known to be now. It follows from what was said of it, and is kept so that nobody has to work it out. */
type DerivedState = {
  readonly symbol: string
  readonly multiplier: string | null
  readonly multiplierSource: MultiplierSource | null
  /** What the multiplier will be, and when (in seconds). */
  readonly scheduled: { readonly to: string; readonly effectiveAt: number } | null
  readonly paused: readonly number[]
  readonly navReading: NavReading
  readonly record: TokenRecord
}

/** A token as last published, and all that was said of it. Kept beside the tape as it is. */
export type Token = DerivedState & {
  readonly address: Hex
  /** Names it had before; they still find it. */
  readonly formerSymbols: readonly string[]
  readonly isin: string | null
  readonly decimals: number | null
  readonly supply: string | null
  /** What the list itself said last, so that its repeating an old value is not taken for news. */
  readonly lastListed: {
    readonly multiplier: string | null
    readonly paused: readonly number[]
    readonly record: TokenRecord
  }
  readonly multiplierHistory: MultiplierHistory
  readonly pauseHistory: PauseHistory
  readonly recordChanges: readonly RecordChange[]
  readonly navHistory: NavHistory
  /** The NAV that listeners were told last. */
  readonly publishedNav: Nav | null
  /** Awaited until its logs are heard; only then is it told as listed. */
  readonly state: 'awaited' | 'listed' | 'delisted'
}

/** A token remembers so many former names. */
const FORMER_SYMBOLS_BOUND = 8

/** A token with what follows from all that was said of it. */
export function withDerivedState(
  token: Omit<Token, keyof DerivedState> & { readonly symbol?: string },
  timing: NavTiming,
): Token {
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
