import type { SchedulerLike } from 'rxjs'
import type { Hex } from '../../../lib/hex.ts'
import type { WriteLine } from '../../log-lines.ts'
import type { Log } from '../logs/log-parser.ts'
import type { ChainReader } from '../rpc/chain-reader.ts'
import type { ConfirmChain } from '../rpc/endpoint-pool.ts'
import type { Cursor } from './recent-blocks.ts'

/** A published pre-confirmed log, until the settling of its block confirms or retracts it. */
export type OpenKey = { readonly key: string; readonly address: Hex; readonly tx: Hex }

/** The ledger's published keys, for settling. */
export interface OpenKeys {
  /** The open keys of a block, or its sealed keys that the ledger still has. */
  at(block: number): readonly OpenKey[]
  /** Blocks with published keys: open ones, or sealed ones that a reorganisation may have removed. */
  publishedBlocksBetween(from: number, to: number): readonly number[]
  /** Blocks with keys that the previous run sealed, in order. */
  readonly sealedInPreviousRun: readonly Cursor[]
}

export type SealedBlock = {
  readonly number: number
  readonly hash: Hex
  /** In seconds. */
  readonly timestamp: number | null
  readonly logs: readonly Log[]
  /** Whose logs were read. */
  readonly addresses: readonly Hex[]
  /** `backfill` for a block that was sealed during an outage. */
  readonly via: 'sealed' | 'backfill'
  /** True if some logs cannot be read. Then a log that `logs` lacks may exist, and a hole was reported before. */
  readonly isPartial?: true
}

/** Events of settling, in chain order except for backfill. */
export type SettlementEvent =
  | {
      readonly type: 'sealed'
      readonly blocks: readonly SealedBlock[]
      /** No block up to this one can have pre-confirmed logs any more. */
      readonly newest: number
      /** All blocks up to this one are settled. */
      readonly cursor: Cursor
      /** A restart continues after this block. It may be below the cursor, to settle again blocks that may gain logs. */
      readonly restartCursor: Cursor
    }
  | {
      readonly type: 'hole'
      readonly blocks: { readonly from: number; readonly to: number }
      readonly reason: string
      readonly cursor: Cursor
      readonly restartCursor: Cursor
    }
  /** A reorganisation may have removed this block and all above. Unless it is only suspected, they are settled again. */
  | { readonly type: 'reorg'; readonly from: number; readonly isSuspected?: true }
  | { readonly type: 'unreadable'; readonly count: number }

/** Inputs and outputs of settling and backfill. */
export type SettlementContext = {
  readonly node: ChainReader
  readonly confirmChain: ConfirmChain
  readonly openKeys: OpenKeys
  /** The listed tokens. Each change makes a new array. */
  readonly addresses: () => readonly Hex[]
  readonly clock: SchedulerLike
  readonly warn: WriteLine
  readonly emit: (event: SettlementEvent) => void
  readonly signal: AbortSignal
}
