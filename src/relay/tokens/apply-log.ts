import { clampSeconds } from '../../lib/iso-time.ts'
import type { DecodedEvent } from '../chain/logs/event-decoder.ts'
import type { Log } from '../chain/logs/log-parser.ts'
import { dropUnsealed, type KeyedPosition, withChanges } from './chain-position.ts'
import { addRecordChange, type RecordChange } from './list/record-changes.ts'
import { addLogChange, dropUnsealedMultiplierChanges, formatMultiplier, type MultiplierChange } from './multiplier-history.ts'
import type { NavTiming } from './nav.ts'
import { addPauseChange, type PauseChange } from './pause-history.ts'
import { type Token, withDerivedState } from './token.ts'

export type TokenLog = { readonly log: Log; readonly decoded: DecodedEvent }

/** Whether a log may change its token. The two most frequent events change only balances and allowances. */
const changesToken = ({ decoded: { event } }: TokenLog): boolean => event !== 'Transfer' && event !== 'Approval'

export function applyLog(token: Token, tokenLog: TokenLog, chainTime: number | null, timing: NavTiming): Token {
  if (!changesToken(tokenLog)) return token
  const multiplierChange = multiplierChangeIn(tokenLog, chainTime)
  if (multiplierChange)
    return withDerivedState({ ...token, multiplierHistory: addLogChange(token.multiplierHistory, multiplierChange) }, timing)
  const recordChange = recordChangeIn(tokenLog)
  if (recordChange) return withDerivedState({ ...token, recordChanges: addRecordChange(token.recordChanges, recordChange) }, timing)
  const pauseChange = pauseChangeIn(tokenLog)
  if (pauseChange) return withDerivedState({ ...token, pauseHistory: addPauseChange(token.pauseHistory, pauseChange) }, timing)
  return token
}

/** Applies a sealed block. Drops the changes that it lacks; if it is partial, keeps each change whose log was not read. */
export function applySealedBlock(
  token: Token,
  { number: block, unreadable = 0 }: { readonly number: number; readonly unreadable?: number },
  tokenLogs: readonly TokenLog[],
  chainTime: number | null,
  timing: NavTiming,
) {
  const changes = tokenLogs.filter(changesToken)
  const unread = unreadable > 0 ? changedKeysBeside(token, tokenLogs) : []
  // A key may belong to another event in the sealed block, so each history keeps only the keys of its own events.
  const keysOf = (changeIn: (tokenLog: TokenLog) => KeyedPosition | null) =>
    new Set([...changes.flatMap((tokenLog) => changeIn(tokenLog)?.key ?? []), ...unread])
  const multiplierKeys = keysOf((tokenLog) => multiplierChangeIn(tokenLog, chainTime))
  const multiplierHistory = dropUnsealedMultiplierChanges(token.multiplierHistory, block, multiplierKeys)
  const pauseChanges = dropUnsealed(token.pauseHistory.changes, block, keysOf(pauseChangeIn))
  const pauseHistory = withChanges(token.pauseHistory, pauseChanges)
  const recordChanges = dropUnsealed(token.recordChanges, block, keysOf(recordChangeIn))
  const isUnchanged =
    multiplierHistory === token.multiplierHistory && pauseHistory === token.pauseHistory && recordChanges === token.recordChanges
  const kept = isUnchanged ? token : withDerivedState({ ...token, multiplierHistory, pauseHistory, recordChanges }, timing)
  return changes.reduce((known, tokenLog) => applyLog(known, tokenLog, chainTime, timing), kept)
}

function changedKeysBeside({ multiplierHistory, pauseHistory, recordChanges }: Token, tokenLogs: readonly TokenLog[]) {
  const read = new Set(tokenLogs.map(({ log }) => log.key))
  const changes: readonly KeyedPosition[] = [...multiplierHistory.changes, ...pauseHistory.changes, ...recordChanges]
  return changes.flatMap(({ key }) => (key === null || read.has(key) ? [] : [key]))
}

const positionOf = ({ blockNumber, logIndex, key }: Log) => ({ block: blockNumber, logIndex, key })

/** Supply cap that the contract of a token without a cap reports. */
const NO_CAP = 2n ** 128n - 1n

/** Null for a log that does not change the multiplier. `chainTime` counts if the log has no time. */
export function multiplierChangeIn({ log, decoded }: TokenLog, chainTime: number | null): MultiplierChange | null {
  const timestamp = log.blockTimestamp ?? chainTime
  const commonFields = { ...positionOf(log), source: 'log', timestamp, isApplied: false } as const
  switch (decoded.event) {
    case 'UIMultiplierUpdated': {
      const effectiveAt = clampSeconds(decoded.effectiveAt)
      const phase = timestamp !== null && effectiveAt <= timestamp ? 'effective' : 'scheduled'
      return { ...commonFields, phase, from: formatMultiplier(decoded.from), to: formatMultiplier(decoded.to), effectiveAt }
    }
    // This event does not contain the previous value.
    case 'MultiplierUpdated':
      return { ...commonFields, phase: 'effective', from: null, to: formatMultiplier(decoded.to), effectiveAt: timestamp }
    case 'UIMultiplierUpdateCancelled': {
      const effectiveAt = clampSeconds(decoded.effectiveAt)
      return { ...commonFields, phase: 'cancelled', from: null, to: formatMultiplier(decoded.to), effectiveAt }
    }
    default:
      return null
  }
}

/** Returns null for a log that does not change the paused features. */
function pauseChangeIn({ log, decoded }: TokenLog): PauseChange | null {
  if (decoded.event !== 'Paused' && decoded.event !== 'Unpaused') return null
  return { ...positionOf(log), kind: decoded.event === 'Paused' ? 'paused' : 'unpaused', features: decoded.features }
}

/** Returns null for a log that does not change the record. */
export function recordChangeIn({ log, decoded }: TokenLog): RecordChange | null {
  const position = { ...positionOf(log), entry: null }
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
