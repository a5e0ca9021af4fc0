import type { Hex } from '../../src/protocol/fields.ts'
import { type ContractCall, type ContractStates, execute } from './contract-state.ts'
import type { TokenEvent } from './token-event-logs.ts'

/** What a contract said, wherever it comes to stand; what it means, where that is more than a movement. */
export type LogContent = {
  readonly address: Hex
  readonly topics: readonly Hex[]
  readonly data: Hex
  readonly tokenEvent?: TokenEvent
}

/** Some of what a transaction says is known only where it comes to stand. */
export type SimulatedTx = { readonly hash: Hex; readonly logs: readonly (LogContent | ContractCall)[] }

/** A content with its place in a block. */
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

/** A sealed block. It is canonical from `since` until `until` (both in ms since the beginning of the world). */
export type SimulatedBlock = {
  readonly number: number
  readonly hash: Hex
  readonly parentHash: Hex
  readonly timestamp: number
  readonly txs: readonly SimulatedTx[]
  readonly logs: readonly PlacedLog[]
  /** What the contracts hold after it. */
  readonly after: ContractStates
  readonly canonicalFrom: number
  canonicalUntil: number
}

/** A block while it is built: what is pre-confirmed, and since when each transaction is. */
export type PendingBlock = {
  readonly number: number
  readonly parentHash: Hex
  readonly timestamp: number
  /** What the contracts held when it began. */
  readonly contractsBefore: ContractStates
  readonly txs: SimulatedTx[]
  readonly shownAt: number[]
  readonly startedAt: number
  endedAt: number
  /** From then on nothing of it is shown: a flashblock was lost on the way. */
  hiddenFrom: number
  /** Its builder gave up; what it had shown never becomes a block as it stands. */
  abandoned: boolean
}

export const hex = (digits: number, value: number | bigint): Hex => `0x${value.toString(16).padStart(digits, '0')}`
const keyOf = (block: number, tx: Hex, logIndex: number): string => `${block}-${tx}-${logIndex}`

type BlockStart = Pick<PendingBlock, 'number' | 'timestamp' | 'contractsBefore'>

/** Lets transactions happen, and gives each log its place: indexes count over the whole block, whoever spoke. */
export function executeTransactions({ number, timestamp, contractsBefore }: BlockStart, txs: readonly SimulatedTx[]) {
  const logs: PlacedLog[] = []
  let after = contractsBefore
  for (const [txIndex, tx] of txs.entries()) {
    for (const one of tx.logs) {
      const { books, contents } = execute(after, one, timestamp)
      after = books
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
