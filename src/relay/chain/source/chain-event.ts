import type { Hex } from '../../../lib/hex.ts'
import type { Ingest, SourceName, SourceReason } from '../../../protocol/fields.ts'
import type { ReadFilter } from '../logs/log-filter.ts'
import type { Log } from '../logs/log-parser.ts'
import type { FinalityEvent, SettlementEvent } from '../sealed/settlement-types.ts'

/** One report of the source about the chain. Times are in Unix seconds. */
export type ChainEvent =
  /** Pre-confirmed logs of one message or poll. They count as sealed only once their blocks are settled. */
  | { readonly type: 'logs'; readonly logs: readonly Log[]; readonly via: Ingest['source']; readonly receivedAt: number }
  | SettlementEvent
  | FinalityEvent
  | {
      readonly type: 'head'
      readonly sealed: number | null
      readonly pending: number | null
      readonly timestamp: number | null
      /** True for a pushed head: a single message, not confirmed by any answer. */
      readonly isPushed?: boolean
      readonly hash?: Hex
      readonly parentHash?: Hex | null
    }
  /** The source receives the logs that match these filters from now on. */
  | { readonly type: 'subscribed'; readonly filters: readonly ReadFilter[] }
  /** The node refuses the filter of a contract, so that blocks are settled without its logs, or answers it again. */
  | { readonly type: 'refusal'; readonly contract: Hex; readonly isOver: boolean }
  | { readonly type: 'status'; readonly source: SourceName; readonly reason: SourceReason }
