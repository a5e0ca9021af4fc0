import type { Hex, Nav, TokenRecord } from '../protocol/fields.ts'
import { readSymbol } from './list-parser.ts'
import { type Factor, type FactorSource, factorNow } from './multiplier.ts'
import type { NavReading, NavRule } from './nav.ts'
import { heldNow, type Rounds } from './nav-history.ts'
import { type Pauses, pausedAt } from './pauses.ts'
import { type FieldSaid, recordWith } from './record.ts'

/** What a token is known to be now. It follows from what was said of it, and is kept so that nobody has to work it out. */
type Held = {
  readonly symbol: string
  readonly multiplier: string | null
  readonly multiplierSource: FactorSource | null
  /** What the multiplier will be, and when (in seconds). */
  readonly scheduled: { readonly to: string; readonly effectiveAt: number } | null
  readonly paused: readonly number[]
  readonly reading: NavReading
  readonly record: TokenRecord
}

/** A token as last published, and all that was said of it. Kept beside the tape as it is. */
export type Token = Held & {
  readonly address: Hex
  /** Names it had before; they still find it. */
  readonly former: readonly string[]
  readonly isin: string | null
  readonly decimals: number | null
  readonly supply: string | null
  /** What the list itself said last, so that its repeating an old value is not taken for news. */
  readonly listed: {
    readonly multiplier: string | null
    readonly paused: readonly number[]
    readonly record: TokenRecord
  }
  readonly factor: Factor
  readonly pauses: Pauses
  readonly said: readonly FieldSaid[]
  readonly rounds: Rounds
  /** The NAV that listeners were told last. */
  readonly told: Nav | null
  /** Awaited until its logs are heard; only then is it told as listed. */
  readonly state: 'awaited' | 'listed' | 'delisted'
}

/** A token remembers so many former names. */
const FORMER_BOUND = 8

/** A token with what follows from all that was said of it. */
export function held(token: Omit<Token, keyof Held> & { readonly symbol?: string }, rule: NavRule): Token {
  const { value, source, scheduled } = factorNow(token.factor)
  const record = recordWith(token.listed.record, token.said)
  const symbol = readSymbol(record.symbol) ?? token.address
  const before = token.symbol ?? symbol
  return {
    ...token,
    symbol,
    former: before === symbol ? token.former : formerly(token.former, before, symbol),
    multiplier: value,
    multiplierSource: source,
    scheduled: scheduled && { to: scheduled.to ?? '', effectiveAt: scheduled.effectiveAt ?? 0 },
    paused: pausedAt(token.pauses, null),
    reading: heldNow(token.rounds, rule).reading,
    record,
  }
}

const formerly = (former: readonly string[], before: string, now: string): readonly string[] =>
  [before, ...former.filter((name) => name !== now && name !== before)].slice(0, FORMER_BOUND)
