import type { Log } from '../chain/logs/log-schema.ts'
import type { ChainEvent } from '../chain/source/source.ts'
import type { Hex } from '../protocol/fields.ts'

export type ReceivedLog = Pick<Extract<ChainEvent, { type: 'logs' }>, 'via' | 'receivedAt'> & { readonly log: Log }
/** The received logs of one transaction, by key. */
export type PendingTransaction = Map<string, ReceivedLog>

/** Beyond this many logs the oldest block is forgotten; its settling groups its logs again. */
const LOGS_BOUND = 100_000

/** Pre-confirmed logs until their block is settled: a later log may belong to the same fact. */
export class PendingLogs {
  readonly #blocks = new Map<number, Map<Hex, PendingTransaction>>()
  #size = 0

  ofTransaction({ blockNumber, transactionHash }: Pick<Log, 'blockNumber' | 'transactionHash'>): PendingTransaction {
    return this.#blocks.get(blockNumber)?.get(transactionHash) ?? new Map()
  }

  add(received: ReceivedLog): void {
    const { blockNumber, transactionHash, key } = received.log
    const block = this.#blocks.get(blockNumber) ?? new Map<Hex, PendingTransaction>()
    const transaction = block.get(transactionHash) ?? new Map<string, ReceivedLog>()
    if (!transaction.has(key)) this.#size += 1
    this.#blocks.set(blockNumber, block.set(transactionHash, transaction.set(key, received)))
    if (this.#size <= LOGS_BOUND) return
    const [oldest] = this.#blocks.keys()
    if (oldest !== undefined) this.#forgetBlock(oldest)
  }

  forgetSettled(newest: number): void {
    for (const block of this.#blocks.keys()) if (block <= newest) this.#forgetBlock(block)
  }

  #forgetBlock(block: number): void {
    for (const transaction of this.#blocks.get(block)?.values() ?? []) this.#size -= transaction.size
    this.#blocks.delete(block)
  }
}
