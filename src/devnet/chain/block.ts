import type { StateWrite } from './account-state.ts'
import type { HexString } from './hex.ts'

/** A log before it has a place. */
export type EmittedLog = { address: HexString; topics: readonly HexString[]; data: HexString }

/** A log as the node sends it. */
export type DevnetLog = EmittedLog & {
  blockHash: HexString
  blockNumber: HexString
  blockTimestamp: HexString
  /** The whole milliseconds, where several blocks share a second. */
  blockTimestampMs?: HexString
  transactionHash: HexString
  transactionIndex: HexString
  logIndex: HexString
  removed: boolean
}

/** What one transaction does, before it has a place. */
export type UnsignedTransaction = {
  from: HexString
  to: HexString
  input: HexString
  gasUsed: number
  logs: readonly EmittedLog[]
  writes: readonly StateWrite[]
  /** Its hash, given before it has a place, if it is not of the market: a chain with it is no longer the one that the seed tells. */
  injectedHash?: HexString
}

/** A deed with its name and its count among its sender's. */
export type DevnetTransaction = UnsignedTransaction & { hash: HexString; nonce: bigint }

/** A block: pending while its hash is zero, sealed from then on. */
export type DevnetBlock = {
  number: number
  timestamp: number
  /** The whole milliseconds, where several blocks share a second. */
  timestampMs?: number
  hash: HexString
  parentHash: HexString
  transactions: readonly DevnetTransaction[]
  logs: readonly DevnetLog[]
}

/** The block being built, and how many flashblocks it is made of so far. */
export type PendingDevnetBlock = DevnetBlock & { flashblocks: number }

/** What becomes of a transaction when its block is sealed, or replaced: kept as it is, or with other logs, or not in it. */
export type TransactionOutcome = 'kept' | 'dropped' | 'moved' | { logs: readonly EmittedLog[] }
