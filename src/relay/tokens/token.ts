import { parseSymbol } from './list/list-parser.ts'
import { applyRecordChanges } from './list/record-changes.ts'
import { multiplierAt } from './multiplier-history.ts'
import type { NavTiming } from './nav.ts'
import { currentNav } from './nav-history.ts'
import { pausedAt } from './pause-history.ts'
import type { DerivedName, Stored, TokenSchema } from './token-schema.ts'

export type Token = Stored<typeof TokenSchema>

const FORMER_SYMBOLS_BOUND = 8

export function withDerivedState(token: Omit<Token, DerivedName> & { readonly symbol?: string }, timing: NavTiming): Token {
  const { value, source, scheduled } = multiplierAt(token.multiplierHistory, null)
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
