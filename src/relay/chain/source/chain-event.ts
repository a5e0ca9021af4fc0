import type { Hex } from '../../../lib/hex.ts'
import type { Ingest, SourceName, SourceReason } from '../../../protocol/fields.ts'
import type { Log } from '../logs/read-logs.ts'
import type { SettlementEvent } from '../sealed/block-logs.ts'
import type { FinalityEvent } from '../sealed/finality.ts'
import type { Cursor } from '../sealed/recent-blocks.ts'

/** Everything that the chain brings, pushed or polled. */
export type ChainEvent =
  /** The pre-confirmed logs of one message or poll; only the settling of their blocks makes them sealed. */
  | { readonly type: 'logs'; readonly logs: readonly Log[]; readonly via: Ingest['source']; readonly receivedAt: number }
  | SettlementEvent
  | FinalityEvent
  /** The head of the chain, with its Unix time. */
  | {
      readonly type: 'head'
      readonly sealed: number | null
      readonly pending: number | null
      readonly timestamp: number | null
      /** It was pushed: one message, which no other answer has confirmed. */
      readonly isPushed?: boolean
      /** The hashes of the sealed block and of its parent. */
      readonly hash?: Hex
      readonly parentHash?: Hex | null
    }
  /** The start: blocks after this one are settled. Its Unix time, if that is known. */
  | { readonly type: 'cursor'; readonly cursor: Cursor; readonly timestamp: number | null }
  /** Logs of these addresses are received from now on. */
  | { readonly type: 'subscribed'; readonly addresses: readonly Hex[] }
  | { readonly type: 'status'; readonly source: SourceName; readonly reason: SourceReason }
