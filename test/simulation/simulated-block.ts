import type { Hex } from '../../src/lib/hex.ts'
import { type ContractCall, type ContractStates, execute } from './contract-state.ts'
import type { TokenEvent } from './token-event-logs.ts'

/** A log before it has a place in a block; `tokenEvent` is its meaning, where it is more than a movement. */
export type LogContent = {
  readonly address: Hex
  readonly topics: readonly Hex[]
  readonly data: Hex
  readonly tokenEvent?: TokenEvent
}

/** Some logs of a transaction depend on the block that it lands in. */
export type SimulatedTx = { readonly hash: Hex; readonly logs: readonly (LogContent | ContractCall)[] }

/** A log with its place in a block. */
export type PlacedLog = {
  readonly key: string
  readonly content: LogContent
  readonly block: number
  /** In seconds. */
  readonly timestamp: number
  readonly tx: Hex
  readonly txIndex: number
  readonly logIndex: number
}

/** A sealed block. It is canonical from `canonicalFrom` until `canonicalUntil` (ms since the simulation began). */
export type SimulatedBlock = {
  readonly number: number
  readonly hash: Hex
  readonly parentHash: Hex
  readonly timestamp: number
  readonly txs: readonly SimulatedTx[]
  readonly logs: readonly PlacedLog[]
  /** The contracts' state after the block. */
  readonly after: ContractStates
  readonly canonicalFrom: number
  canonicalUntil: number
}

/** A block while it is built: its pre-confirmed transactions, and when each was shown. */
export type PendingBlock = {
  readonly number: number
  readonly parentHash: Hex
  readonly timestamp: number
  /** The contracts' state when the block began. */
  readonly contractsBefore: ContractStates
  readonly txs: SimulatedTx[]
  readonly shownAt: number[]
  readonly startedAt: number
  endedAt: number
  /** From then on nothing of the block is shown: a flashblock was lost. */
  hiddenFrom: number
  /** The builder gave up: what it had shown never becomes a block as it stands. */
  abandoned: boolean
}

export const hex = (digits: number, value: number | bigint): Hex => `0x${value.toString(16).padStart(digits, '0')}`
const keyOf = (block: number, tx: Hex, logIndex: number): string => `${block}-${tx}-${logIndex}`

type BlockStart = Pick<PendingBlock, 'number' | 'timestamp' | 'contractsBefore'>

/** Executes transactions and places each log. Log indexes count over the whole block, across contracts. */
export function executeTransactions({ number, timestamp, contractsBefore }: BlockStart, txs: readonly SimulatedTx[]) {
  const logs: PlacedLog[] = []
  let after = contractsBefore
  for (const [txIndex, tx] of txs.entries()) {
    for (const entry of tx.logs) {
      const { states, contents } = execute(after, entry, timestamp)
      after = states
      for (const content of contents) {
        const logIndex = logs.length
        const key = keyOf(number, tx.hash, logIndex)
        logs.push({ key, content, block: number, timestamp, tx: tx.hash, txIndex, logIndex })
      }
    }
  }
  return { logs, after }
}

export const placeLogs = (blockStart: BlockStart, txs: readonly SimulatedTx[]): readonly PlacedLog[] =>
  executeTransactions(blockStart, txs).logs
