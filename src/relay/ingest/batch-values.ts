import { getOrAdd } from '../../lib/bounded-map.ts'
import type { Hex } from '../../lib/hex.ts'
import { isoFromSecondsOrNull } from '../../lib/iso-time.ts'
import { type Decimal, parseDecimal } from '../../protocol/decimal.ts'
import type { Block, Ingest, Nav } from '../../protocol/fields.ts'
import { type NavReading, type NavTiming, navAt } from '../tokens/nav.ts'

/** Time of a batch in ms: `at` by the steady clock, `wallTime` by the system's clock. */
export type BatchTimes = { readonly at: number; readonly wallTime: number }

/** The time at which a batch is reduced, and values that its logs share: deriving them once saves time and memory. */
export type Moment = NavTiming & {
  /** Steady time in ms, for durations. `now` is wall time. */
  readonly at: number
  readonly time: string
  readonly navOf: (reading: NavReading, frozen: boolean | null) => Nav
  /** `timestamp` is in seconds. */
  readonly blockOf: (number: number, hash: Hex | null, timestamp: number | null) => Block
  /** `receivedAt` is in steady time. */
  readonly ingestOf: (via: Ingest['source'], receivedAt: number) => Ingest
  readonly decimalOf: (text: string) => Decimal | null
}

export function openMoment({ at, wallTime: now }: BatchTimes, navStaleAfterMs: number): Moment {
  const time = new Date(now).toISOString()
  const navs = new Map<boolean | null, Map<NavReading, Nav>>()
  const decimals = new Map<string, Decimal | null>()
  // One entry is enough, because consecutive logs mostly have the same block and arrival time.
  let block: { readonly of: Block; readonly timestamp: number | null } | null = null
  let ingest: { readonly of: Ingest; readonly receivedAt: number } | null = null
  return {
    at,
    now,
    navStaleAfterMs,
    time,
    navOf: (reading, frozen) => {
      const sameNavs = getOrAdd(navs, frozen, () => new Map<NavReading, Nav>())
      return getOrAdd(sameNavs, reading, () => navAt(reading, now, navStaleAfterMs, frozen))
    },
    blockOf: (number, hash, timestamp) => {
      if (block?.of.number !== number || block.of.hash !== hash || block.timestamp !== timestamp)
        block = { of: { number, hash, timestamp: isoFromSecondsOrNull(timestamp) }, timestamp }
      return block.of
    },
    ingestOf: (source, receivedAt) => {
      if (ingest?.of.source !== source || ingest.receivedAt !== receivedAt)
        ingest = { of: { source, received_at: new Date(receivedAt + now - at).toISOString(), published_at: time }, receivedAt }
      return ingest.of
    },
    decimalOf: (text) => getOrAdd(decimals, text, () => parseDecimal(text)),
  }
}
