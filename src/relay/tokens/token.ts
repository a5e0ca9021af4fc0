import type { Hex } from '../../lib/hex.ts'
import type { Nav, TokenRecord } from '../../protocol/fields.ts'
import { parseSymbol } from './list/list-parser.ts'
import { applyRecordChanges, type RecordChange } from './list/record-changes.ts'
import { currentMultiplier, type MultiplierHistory, type MultiplierSource } from './multiplier.ts'
import type { NavReading, NavTiming } from './nav.ts'
import { currentNav, type NavHistory } from './nav-history.ts'
import { type PauseHistory, pausedAt } from './pauses.ts'

/** The current state of a token. It follows from the histories, and is stored to avoid deriving it on every read. */
type DerivedState = {
  readonly symbol: string
  readonly multiplier: string | null
  readonly multiplierSource: MultiplierSource | null
  /** The next multiplier, and when it takes effect (in seconds). */
  readonly scheduled: { readonly to: string; readonly effectiveAt: number } | null
  readonly paused: readonly number[]
  readonly navReading: NavReading
  readonly record: TokenRecord
}

/** The last multiplier that the list contained, and how many refreshes it has been left out since, where only lists have told it. */
export type ListedMultiplier = { readonly multiplier: string | null; readonly omissions?: number }

/** A token as last published, with its histories. It is stored as a note beside the tape. */
export type Token = DerivedState & {
  readonly address: Hex
  /** Former symbols, which still find the token. */
  readonly formerSymbols: readonly string[]
  readonly isin: string | null
  readonly decimals: number | null
  readonly supply: string | null
  /** The list's last values, so that a repeated old value is not taken for a change. */
  readonly lastListed: ListedMultiplier & { readonly paused: readonly number[]; readonly record: TokenRecord }
  readonly multiplierHistory: MultiplierHistory
  readonly pauseHistory: PauseHistory
  readonly recordChanges: readonly RecordChange[]
  readonly navHistory: NavHistory
  /** The last published NAV. */
  readonly publishedNav: Nav | null
  /** Whether the registry of the oracle says that the feed is frozen; null where that is unknown. */
  readonly frozen: boolean | null
  /** Awaited until the relay receives its logs; only then is it published as listed. */
  readonly state: 'awaited' | 'listed' | 'delisted'
}

/** How many former symbols a token keeps. */
const FORMER_SYMBOLS_BOUND = 8

/** Adds the state that follows from a token's histories. */
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
