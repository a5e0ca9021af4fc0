import type { Log } from '../chain/logs/log-schema.ts'
import type { Heard } from '../chain/source/source.ts'
import type { Hex } from '../protocol/fields.ts'

/** A log as it was heard. */
export type HeardLog = Omit<Extract<Heard, { type: 'log' }>, 'type'>
/** What was heard of one transaction, by key. */
export type Transaction = Map<string, HeardLog>

/** Logs remembered at most; beyond it the oldest block is forgotten, and its settling will say what belongs together. */
const LOGS_BOUND = 100_000

/** The pre-confirmed logs themselves, until their block is settled: what comes later may belong to what was told. */
export class Overheard {
  readonly #blocks = new Map<number, Map<Hex, Transaction>>()
  #size = 0

  /** What was heard of the transaction of a log. */
  of({ blockNumber, transactionHash }: Pick<Log, 'blockNumber' | 'transactionHash'>): Transaction {
    return this.#blocks.get(blockNumber)?.get(transactionHash) ?? new Map()
  }

  add(heard: HeardLog): void {
    const { blockNumber, transactionHash, key } = heard.log
    const block = this.#blocks.get(blockNumber) ?? new Map<Hex, Transaction>()
    const transaction = block.get(transactionHash) ?? new Map<string, HeardLog>()
    if (!transaction.has(key)) this.#size += 1
    this.#blocks.set(blockNumber, block.set(transactionHash, transaction.set(key, heard)))
    if (this.#size <= LOGS_BOUND) return
    const [oldest] = this.#blocks.keys()
    if (oldest !== undefined) this.#forget(oldest)
  }

  /** What is settled is known whole. */
  settled(newest: number): void {
    for (const block of this.#blocks.keys()) if (block <= newest) this.#forget(block)
  }

  #forget(block: number): void {
    for (const transaction of this.#blocks.get(block)?.values() ?? []) this.#size -= transaction.size
    this.#blocks.delete(block)
  }
}
