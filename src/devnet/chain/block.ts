import type { Hex } from './hex.ts'
import type { Write } from './state.ts'

/** A log before it has a place. */
export type BareLog = { address: Hex; topics: readonly Hex[]; data: Hex }

/** A log as the node sends it. */
export type Log = BareLog & {
  blockHash: Hex
  blockNumber: Hex
  blockTimestamp: Hex
  /** The whole milliseconds, where several blocks share a second. */
  blockTimestampMs?: Hex
  transactionHash: Hex
  transactionIndex: Hex
  logIndex: Hex
  removed: boolean
}

/** What one transaction does, before it has a place. */
export type Deed = {
  from: Hex
  to: Hex
  input: Hex
  gasUsed: number
  logs: readonly BareLog[]
  writes: readonly Write[]
  /** Its hash, given before it has a place, if it is not of the market: a chain with it is no longer the one that the seed tells. */
  injected?: Hex
}

/** A deed with its name and its count among its sender's. */
export type Transaction = Deed & { hash: Hex; nonce: bigint }

/** A block: pending while its hash is zero, sealed from then on. */
export type Block = {
  number: number
  timestamp: number
  /** The whole milliseconds, where several blocks share a second. */
  timestampMs?: number
  hash: Hex
  parentHash: Hex
  transactions: readonly Transaction[]
  logs: readonly Log[]
}

/** The block being built, and how many flashblocks it is made of so far. */
export type Pending = Block & { flashes: number }

/** What becomes of a transaction when its block is sealed, or replaced: kept as it is, or with other logs, or not in it. */
export type Fate = 'kept' | 'dropped' | 'moved' | { logs: readonly BareLog[] }
