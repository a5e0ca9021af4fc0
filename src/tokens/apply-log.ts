import type { Said } from '../chain/logs/events.ts'
import type { Log } from '../chain/logs/log-schema.ts'
import { formatDecimal } from '../protocol/decimal.ts'
import { type FactorChange, factorKept, withLog } from './multiplier.ts'
import type { NavRule } from './nav.ts'
import { pausesKept, withPause } from './pauses.ts'
import { type FieldSaid, fieldsKept, withField } from './record.ts'
import { held, type Token } from './token.ts'

/** What one log says of its token. */
export type Word = { readonly log: Log; readonly said: Said }

/** A multiplier is kept on chain as a whole number of this many decimals. */
const MULTIPLIER_DECIMALS = 18
/** The last second that can be written as a date: what is to happen after it never does. */
const LATEST_S = Date.UTC(9999, 11, 31, 23, 59, 59) / 1_000
/** What a token without a cap says that its cap is. */
const NO_CAP = 2n ** 128n - 1n

export const multiplierText = (value: bigint): string => formatDecimal({ units: value, scale: MULTIPLIER_DECIMALS })

/** A second of the chain's own time as one that can be written. */
export const secondOf = (second: bigint): number => (second > BigInt(LATEST_S) ? LATEST_S : Number(second))

/** What a multiplier's event means at the time of its block; `chainTime` where the log does not say when that was. */
export function factorSaid({ log, said }: Word, chainTime: number | null): FactorChange | null {
  const timestamp = log.blockTimestamp ?? chainTime
  const place = { block: log.blockNumber, logIndex: log.logIndex, key: log.key }
  const common = { ...place, source: 'log', timestamp, matured: false } as const
  switch (said.event) {
    case 'UIMultiplierUpdated': {
      const effectiveAt = secondOf(said.effectiveAt)
      const phase = timestamp !== null && effectiveAt <= timestamp ? 'effective' : 'scheduled'
      return { ...common, phase, from: multiplierText(said.from), to: multiplierText(said.to), effectiveAt }
    }
    // It does not say what was held before.
    case 'MultiplierUpdated':
      return { ...common, phase: 'effective', from: null, to: multiplierText(said.to), effectiveAt: timestamp }
    case 'UIMultiplierUpdateCancelled': {
      const effectiveAt = secondOf(said.effectiveAt)
      return { ...common, phase: 'cancelled', from: null, to: multiplierText(said.to), effectiveAt }
    }
    default:
      return null
  }
}

/** What an event says of the record: the field's name, and its value where the event has one. */
export function fieldSaid({ log, said }: Word): FieldSaid | null {
  const place = { block: log.blockNumber, logIndex: log.logIndex, key: log.key, entry: null }
  switch (said.event) {
    case 'NameUpdated':
      return { ...place, field: 'name', value: said.name }
    case 'SymbolUpdated':
      return { ...place, field: 'symbol', value: said.symbol }
    case 'ExtraMetadataUpdated':
      return { ...place, field: 'extra_metadata', entry: said.name, value: said.value }
    case 'SupplyCapUpdated':
      return { ...place, field: 'supply_cap', value: capText(said.to) }
    default:
      return null
  }
}

export const capText = (cap: bigint): string | null => (cap === NO_CAP ? null : cap.toString())

/** The token with what one log says of it. */
export function withWordOf(token: Token, word: Word, chainTime: number | null, rule: NavRule): Token {
  const { log, said } = word
  const factor = factorSaid(word, chainTime)
  if (factor) return held({ ...token, factor: withLog(token.factor, factor) }, rule)
  const field = fieldSaid(word)
  if (field) return held({ ...token, said: withField(token.said, field) }, rule)
  if (said.event !== 'Paused' && said.event !== 'Unpaused') return token
  const kind = said.event === 'Paused' ? 'paused' : 'unpaused'
  const change = {
    block: log.blockNumber,
    logIndex: log.logIndex,
    key: log.key,
    kind,
    features: said.features,
  } as const
  return held({ ...token, pauses: withPause(token.pauses, change) }, rule)
}

/** The token with what a sealed block says of it, and nothing else that was said of that block before. */
export function withBlock(
  token: Token,
  block: number,
  words: readonly Word[],
  chainTime: number | null,
  rule: NavRule,
) {
  // Under a key that had said something of the token may stand something else now.
  const keysOf = (says: (word: Word) => boolean) => new Set(words.filter(says).map(({ log }) => log.key))
  const factor = factorKept(
    token.factor,
    block,
    keysOf((word) => factorSaid(word, chainTime) !== null),
  )
  const pauses = pausesKept(
    token.pauses,
    block,
    keysOf(({ said: { event } }) => event === 'Paused' || event === 'Unpaused'),
  )
  const said = fieldsKept(
    token.said,
    block,
    keysOf((word) => fieldSaid(word) !== null),
  )
  const same = factor === token.factor && pauses === token.pauses && said === token.said
  const kept = same ? token : held({ ...token, factor, pauses, said }, rule)
  return words.reduce((known, word) => withWordOf(known, word, chainTime, rule), kept)
}
