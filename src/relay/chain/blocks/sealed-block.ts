import type { Hex } from '../../../lib/hex.ts'
import type { LogOrigin, ReadFilter } from '../logs/log-filter.ts'
import type { Log } from '../logs/log-parser.ts'

/** A block of the sealed chain. The hash is null if the relay never read it. */
export type Cursor = { readonly number: number; readonly hash: Hex | null }

/** A published pre-confirmed log, until the settling of its block confirms or retracts it. */
export type OpenKey = LogOrigin & {
  readonly key: string
  readonly tx: Hex
  /** The token of a pool's log. The seal that lists this key lists the token's own logs too. */
  readonly token?: Hex
}

/** The ledger's published keys, for settling. */
export interface OpenKeys {
  /** The open keys of a block, or its sealed keys that the ledger still has. */
  at(block: number): readonly OpenKey[]
  /** Blocks with published keys: open ones, or sealed ones that a reorganisation may have removed. */
  publishedBlocksBetween(from: number, to: number): readonly number[]
  /** Blocks with keys that the previous run sealed, in order. */
  readonly sealedInPreviousRun: readonly Cursor[]
}

export type BlockRange = { readonly from: number; readonly to: number }

export type SealedBlock = {
  readonly number: number
  readonly hash: Hex
  /** In seconds. */
  readonly timestamp: number | null
  readonly logs: readonly Log[]
  /** The filters whose logs were read. */
  readonly filters: readonly ReadFilter[]
  /** `backfill` for a block that was sealed during an outage. */
  readonly via: 'sealed' | 'backfill'
  /** Number of logs that cannot be read. If there are any, a log that `logs` lacks may exist, and a hole was reported before. */
  readonly unreadable?: number
}
