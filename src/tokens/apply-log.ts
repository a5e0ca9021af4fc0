import type { DecodedEvent } from '../chain/logs/events.ts'
import type { Log } from '../chain/logs/log-schema.ts'
import { formatDecimal } from '../protocol/decimal.ts'
import { addLogChange, dropUnsealedMultiplierChanges, type MultiplierChange } from './multiplier.ts'
import type { NavTiming } from './nav.ts'
import { addPauseChange, dropUnsealedPauseChanges } from './pauses.ts'
import { addRecordChange, dropUnsealedRecordChanges, type RecordChange } from './record.ts'
import { type Token, withDerivedState } from './token.ts'

/** What one log says of its token. */
export type TokenLog = { readonly log: Log; readonly decoded: DecodedEvent }

/** A multiplier is kept on chain as a whole number of this many decimals. */
const MULTIPLIER_DECIMALS = 18
/** The last second that can be written as a date: what is to happen after it never does. */
const LATEST_SECONDS = Date.UTC(9999, 11, 31, 23, 59, 59) / 1_000
/** What a token without a cap says that its cap is. */
const NO_CAP = 2n ** 128n - 1n

export const formatMultiplier = (value: bigint): string => formatDecimal({ units: value, scale: MULTIPLIER_DECIMALS })

/** A second of the chain's own time as one that can be written. */
export const clampSeconds = (second: bigint): number =>
  second > BigInt(LATEST_SECONDS) ? LATEST_SECONDS : Number(second)

/** What a multiplier's event means at the time of its block; `chainTime` where the log does not say when that was. */
export function multiplierChangeIn({ log, decoded }: TokenLog, chainTime: number | null): MultiplierChange | null {
  const timestamp = log.blockTimestamp ?? chainTime
  const position = { block: log.blockNumber, logIndex: log.logIndex, key: log.key }
  const commonFields = { ...position, source: 'log', timestamp, isApplied: false } as const
  switch (decoded.event) {
    case 'UIMultiplierUpdated': {
      const effectiveAt = clampSeconds(decoded.effectiveAt)
      const phase = timestamp !== null && effectiveAt <= timestamp ? 'effective' : 'scheduled'
      return {
        ...commonFields,
        phase,
        from: formatMultiplier(decoded.from),
        to: formatMultiplier(decoded.to),
        effectiveAt,
      }
    }
    // It does not say what was held before.
    case 'MultiplierUpdated':
      return {
        ...commonFields,
        phase: 'effective',
        from: null,
        to: formatMultiplier(decoded.to),
        effectiveAt: timestamp,
      }
    case 'UIMultiplierUpdateCancelled': {
      const effectiveAt = clampSeconds(decoded.effectiveAt)
      return { ...commonFields, phase: 'cancelled', from: null, to: formatMultiplier(decoded.to), effectiveAt }
    }
    default:
      return null
  }
}

/** What an event says of the record: the field's name, and its value where the event has one. */
export function recordChangeIn({ log, decoded }: TokenLog): RecordChange | null {
  const position = { block: log.blockNumber, logIndex: log.logIndex, key: log.key, entry: null }
  switch (decoded.event) {
    case 'NameUpdated':
      return { ...position, field: 'name', value: decoded.name }
    case 'SymbolUpdated':
      return { ...position, field: 'symbol', value: decoded.symbol }
    case 'ExtraMetadataUpdated':
      return { ...position, field: 'extra_metadata', entry: decoded.name, value: decoded.value }
    case 'SupplyCapUpdated':
      return { ...position, field: 'supply_cap', value: formatCap(decoded.to) }
    default:
      return null
  }
}

export const formatCap = (cap: bigint): string | null => (cap === NO_CAP ? null : cap.toString())

/** The token with what one log says of it. */
export function applyLog(token: Token, tokenLog: TokenLog, chainTime: number | null, timing: NavTiming): Token {
  const { log, decoded } = tokenLog
  const multiplierChange = multiplierChangeIn(tokenLog, chainTime)
  if (multiplierChange)
    return withDerivedState(
      { ...token, multiplierHistory: addLogChange(token.multiplierHistory, multiplierChange) },
      timing,
    )
  const recordChange = recordChangeIn(tokenLog)
  if (recordChange)
    return withDerivedState({ ...token, recordChanges: addRecordChange(token.recordChanges, recordChange) }, timing)
  if (decoded.event !== 'Paused' && decoded.event !== 'Unpaused') return token
  const kind = decoded.event === 'Paused' ? 'paused' : 'unpaused'
  const change = {
    block: log.blockNumber,
    logIndex: log.logIndex,
    key: log.key,
    kind,
    features: decoded.features,
  } as const
  return withDerivedState({ ...token, pauseHistory: addPauseChange(token.pauseHistory, change) }, timing)
}

/** The token with what a sealed block says of it, and nothing else that was said of that block before. */
export function applySealedBlock(
  token: Token,
  block: number,
  tokenLogs: readonly TokenLog[],
  chainTime: number | null,
  timing: NavTiming,
) {
  // Under a key that had said something of the token may stand something else now.
  const keysOf = (isRelevant: (word: TokenLog) => boolean) =>
    new Set(tokenLogs.filter(isRelevant).map(({ log }) => log.key))
  const multiplierHistory = dropUnsealedMultiplierChanges(
    token.multiplierHistory,
    block,
    keysOf((word) => multiplierChangeIn(word, chainTime) !== null),
  )
  const pauseHistory = dropUnsealedPauseChanges(
    token.pauseHistory,
    block,
    keysOf(({ decoded: { event } }) => event === 'Paused' || event === 'Unpaused'),
  )
  const recordChanges = dropUnsealedRecordChanges(
    token.recordChanges,
    block,
    keysOf((word) => recordChangeIn(word) !== null),
  )
  const isUnchanged =
    multiplierHistory === token.multiplierHistory &&
    pauseHistory === token.pauseHistory &&
    recordChanges === token.recordChanges
  const kept = isUnchanged
    ? token
    : withDerivedState({ ...token, multiplierHistory, pauseHistory, recordChanges }, timing)
  return tokenLogs.reduce((known, word) => applyLog(known, word, chainTime, timing), kept)
}
