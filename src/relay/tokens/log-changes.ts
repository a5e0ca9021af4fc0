import { clampSeconds } from '../../lib/iso-time.ts'
import type { DecodedEvent } from '../chain/logs/event-decoder.ts'
import type { Log } from '../chain/logs/log-parser.ts'
import type { RecordChange } from './list/record-changes.ts'
import { formatMultiplier, type MultiplierChange } from './multiplier-history.ts'
import type { PauseChange } from './pause-history.ts'

export type TokenLog = { readonly log: Log; readonly decoded: DecodedEvent }

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
export function pauseChangeIn({ log, decoded }: TokenLog): PauseChange | null {
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
