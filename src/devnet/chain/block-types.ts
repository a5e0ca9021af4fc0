import type { Hex } from '../../lib/hex.ts'
import type { StateWrite } from './account-state.ts'

/** A log before it is in a block. */
export type EmittedLog = { address: Hex; topics: readonly Hex[]; data: Hex }

/** A log as the node sends it. */
export type DevnetLog = EmittedLog & {
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

/** A transaction before it is in a block. */
export type UnsignedTransaction = {
  from: Hex
  to: Hex
  input: Hex
  gasUsed: number
  logs: readonly EmittedLog[]
  writes: readonly StateWrite[]
  /** The hash, known in advance, of a transaction that a test injects. The chain then differs from the seed's. */
  injectedHash?: Hex
  /** What becomes of it when its block is sealed, if not itself. It is part of what the seed determines. */
  sealedAs?: TransactionOutcome
}

/** A transaction with its hash and its sender's nonce. */
export type DevnetTransaction = UnsignedTransaction & { hash: Hex; nonce: bigint }

/** A block; pending while its hash is zero, then sealed. */
export type DevnetBlock = {
  number: number
  timestamp: number
  /** The whole milliseconds, where several blocks share a second. */
  timestampMs?: number
  hash: Hex
  parentHash: Hex
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
