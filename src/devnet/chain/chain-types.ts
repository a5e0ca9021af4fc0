import type { Hex } from '../../lib/hex.ts'
import type { AccountState, ReadState, StateWrite } from './account-state.ts'

export type EmittedLog = { address: Hex; topics: readonly Hex[]; data: Hex }

export type DevnetLog = EmittedLog & {
  blockHash: Hex
  blockNumber: Hex
  blockTimestamp: Hex
  /** Time in milliseconds. Present only if several blocks share a second. */
  blockTimestampMs?: Hex
  transactionHash: Hex
  transactionIndex: Hex
  logIndex: Hex
  removed: boolean
}

/** State at the moment when a transaction executes, and the time of its block in seconds. */
export type ExecutionContext = { readState: ReadState; timestamp: number }

/** Builds a transaction where it executes, because its logs may depend on the state. */
export type DeferredTransaction = (context: ExecutionContext) => UnsignedTransaction

export type UnsignedTransaction = {
  from: Hex
  to: Hex
  input: Hex
  gasUsed: number
  logs: readonly EmittedLog[]
  writes: readonly StateWrite[]
  /** Hash of a transaction that a test adds. With such a transaction, the hashes of blocks differ from those of the seed. */
  injectedHash?: Hex
  /** Fate of the transaction when its block is sealed, as the schedule of the test token plans it. */
  sealedAs?: TransactionOutcome
}

export type RunTransaction = (context: ExecutionContext) => DevnetTransaction

/** A transaction with what it did in its block. In another block it runs again, and keeps its hash and nonce. */
export type DevnetTransaction = UnsignedTransaction & { hash: Hex; nonce: bigint; run: RunTransaction }

/** Time of a block in seconds, and in milliseconds if several blocks share a second. */
export type DevnetBlockTime = { timestamp: number; timestampMs?: number }

/** A block is pending while its hash is zero. */
export type DevnetBlock = DevnetBlockTime & {
  number: number
  hash: Hex
  parentHash: Hex
  transactions: readonly DevnetTransaction[]
  logs: readonly DevnetLog[]
  /** The state after its transactions. */
  state: AccountState
}

export type PendingDevnetBlock = DevnetBlock & { flashblocks: number }

/** Fate of a transaction when its block is sealed or replaced. An object contains its new logs, or another transaction. */
export type TransactionOutcome =
  | 'kept'
  | 'dropped'
  | 'moved'
  | { logs: readonly EmittedLog[]; writes?: readonly StateWrite[] }
  | Omit<DevnetTransaction, 'nonce' | 'run'>
