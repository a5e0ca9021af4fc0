import type { Hex } from '../../lib/hex.ts'
import type { ReadState, StateWrite } from './account-state.ts'

export type EmittedLog = { address: Hex; topics: readonly Hex[]; data: Hex }

export type DevnetLog = EmittedLog & {
  blockHash: Hex
  blockNumber: Hex
  blockTimestamp: Hex
  /** Present if several blocks share a second. */
  blockTimestampMs?: Hex
  transactionHash: Hex
  transactionIndex: Hex
  logIndex: Hex
  removed: boolean
}

/** State and block time when a transaction executes; the time is in seconds. */
export type ExecutionContext = { readState: ReadState; timestamp: number }

/** Builds a transaction when it executes, because its logs may depend on the state. */
export type DeferredTransaction = (context: ExecutionContext) => UnsignedTransaction

export type UnsignedTransaction = {
  from: Hex
  to: Hex
  input: Hex
  gasUsed: number
  logs: readonly EmittedLog[]
  writes: readonly StateWrite[]
  /** The hash of a transaction that a test injects. It makes the chain differ from the seed's. */
  injectedHash?: Hex
  /** Its fate when its block is sealed, as the seed determines it. */
  sealedAs?: TransactionOutcome
}

export type DevnetTransaction = UnsignedTransaction & { hash: Hex; nonce: bigint }

/** A block is pending while its hash is zero. */
export type DevnetBlock = {
  number: number
  timestamp: number
  /** Present if several blocks share a second. */
  timestampMs?: number
  hash: Hex
  parentHash: Hex
  transactions: readonly DevnetTransaction[]
  logs: readonly DevnetLog[]
}

export type PendingDevnetBlock = DevnetBlock & { flashblocks: number }

/** The fate of a transaction when its block is sealed or replaced. An object replaces its logs, or all of it. */
export type TransactionOutcome =
  | 'kept'
  | 'dropped'
  | 'moved'
  | { logs: readonly EmittedLog[]; writes?: readonly StateWrite[] }
  | Omit<DevnetTransaction, 'nonce'>
