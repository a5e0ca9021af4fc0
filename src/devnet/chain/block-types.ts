import type { StateWrite } from './account-state.ts'
import type { HexString } from './hex.ts'

/** A log before it is in a block. */
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

/** A transaction before it is in a block. */
export type UnsignedTransaction = {
  from: HexString
  to: HexString
  input: HexString
  gasUsed: number
  logs: readonly EmittedLog[]
  writes: readonly StateWrite[]
  /** The hash, known in advance, of a transaction that a test injects. The chain then differs from the seed's. */
  injectedHash?: HexString
  /** What becomes of it when its block is sealed, if not itself. It is part of what the seed determines. */
  sealedAs?: TransactionOutcome
}

/** A transaction with its hash and its sender's nonce. */
export type DevnetTransaction = UnsignedTransaction & { hash: HexString; nonce: bigint }

/** A block; pending while its hash is zero, then sealed. */
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

/** The block being built, with the number of flashblocks in it so far. */
export type PendingDevnetBlock = DevnetBlock & { flashblocks: number }

/** At the seal or replacement of its block, a transaction stays, is dropped or moved, gets other logs, or makes room for another. */
export type TransactionOutcome =
  | 'kept'
  | 'dropped'
  | 'moved'
  | { logs: readonly EmittedLog[]; writes?: readonly StateWrite[] }
  | Omit<DevnetTransaction, 'nonce'>
