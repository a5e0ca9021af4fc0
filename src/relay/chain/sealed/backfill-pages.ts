import type { Hex } from '../../../lib/hex.ts'
import { LOGS_RANGE_BOUND } from '../../../protocol/json-rpc-methods.ts'
import type { Log } from '../logs/log-parser.ts'
import type { SealedBlock } from './settlement-types.ts'

export type BlockRange = { readonly from: number; readonly to: number }

/** Number of successful pages before a larger one is tried. */
const GROW_AFTER_PAGES = 8
/** Limit of logs per event, so that no turn of the event loop takes long. A block is not split, even if it has more. */
const BATCH_BOUND_LOGS = 500

/** Learns how many blocks the node accepts in one request. */
export class PageSize {
  #blocks = LOGS_RANGE_BOUND
  #successfulPages = 0

  get blocks(): number {
    return this.#blocks
  }

  grow(): void {
    this.#successfulPages += 1
    if (this.#successfulPages < GROW_AFTER_PAGES) return
    this.#successfulPages = 0
    this.#blocks = Math.min(LOGS_RANGE_BOUND, this.#blocks * 2)
  }

  /** Halves a page that was too large, or takes a smaller size that the node's message suggests. */
  shrink({ from, to }: BlockRange, message = ''): void {
    const size = to - from + 1
    this.#successfulPages = 0
    this.#blocks = Math.max(1, Math.min(suggestedSize(message, from) ?? size, Math.floor(size / 2)))
  }
}

/** Some nodes suggest a range: `retry with the range 16-31`, in decimal or hex. */
function suggestedSize(message: string, first: number): number | null {
  const [, low, high] = /range\D{0,3}(0x[0-9a-f]+|\d+)\s*[-–,]\s*(0x[0-9a-f]+|\d+)/i.exec(message) ?? []
  return Number(low) === first && Number(high) >= first ? Number(high) - first + 1 : null
}

/** Returns the parts of a range that lie between the given blocks, which are in ascending order. */
export function rangesAround(blocks: readonly number[], { from, to }: BlockRange): readonly BlockRange[] {
  const ends = [...blocks, to + 1]
  return ends.flatMap((end, index) => {
    const start = index === 0 ? from : (ends[index - 1] ?? from) + 1
    return start < end ? [{ from: start, to: end - 1 }] : []
  })
}

/** Builds a block from its logs alone; null if the first log lacks block hash or time, or if the logs have several hashes. */
export function blockFromLogs(logs: readonly Log[], addresses: readonly Hex[]): SealedBlock | null {
  const [first] = logs
  if (!first?.blockHash || first.blockTimestamp === null) return null
  const { blockNumber: number, blockHash: hash, blockTimestamp: timestamp } = first
  const isSameBlock = logs.every((log) => log.blockHash === hash)
  return isSameBlock ? { number, hash, timestamp, logs, addresses, via: 'backfill' } : null
}

/** Splits the blocks of a page into parts, each with its last block number. */
export function splitIntoBatches(
  blocks: readonly SealedBlock[],
  to: number,
): readonly { readonly blocks: readonly SealedBlock[]; readonly to: number }[] {
  const batches = []
  let batch: SealedBlock[] = []
  let size = 0
  for (const block of blocks) {
    const last = batch.at(-1)
    if (last && size + block.logs.length > BATCH_BOUND_LOGS) {
      batches.push({ blocks: batch, to: last.number })
      batch = []
      size = 0
    }
    batch.push(block)
    size += block.logs.length
  }
  // The last part ends with the page, since no log follows the blocks in it.
  return [...batches, { blocks: batch, to }]
}
