import type { Log } from '../chain/log.ts'

/** Blocks behind the newest sealed one of which a log can still be news. */
export const DEPTH_BLOCKS = 1_024
/** Keys remembered at most; beyond it the oldest block is forgotten first. */
const KEYS_BOUND = 1_000_000

/** From where on a restart finds on the tape all that this ledger still has to know. */
export type Mark = { readonly block: number; readonly seq: number }

/** Which logs have been told. A log that comes again, by whichever way and in whichever shape, is told once. */
export class Ledger {
  /** The keys told, block by block, and the tape's end when the block was first heard of. */
  readonly #blocks = new Map<number, { readonly keys: Set<string>; readonly since: number }>()
  readonly #depthBlocks: number
  #floor = 0
  #size = 0

  constructor(depthBlocks: number = DEPTH_BLOCKS) {
    this.#depthBlocks = depthBlocks
  }

  /** Whether this is the first time that the log is heard. `end` is the tape's end now. */
  admit(log: Pick<Log, 'key' | 'blockNumber'>, end: number): boolean {
    if (log.blockNumber < this.#floor) return false
    let block = this.#blocks.get(log.blockNumber)
    if (!block) {
      block = { keys: new Set(), since: end }
      this.#blocks.set(log.blockNumber, block)
    }
    if (block.keys.has(log.key)) return false
    block.keys.add(log.key)
    this.#size += 1
    if (this.#size > KEYS_BOUND) this.#forgetBelow(this.#oldest() + 1)
    return true
  }

  /** The chain is sealed up to here: what lies deeper is no longer news, and is forgotten. */
  settle(sealed: number): void {
    this.#forgetBelow(sealed - this.#depthBlocks)
  }

  /** Where on the tape the first of the remembered keys may stand. */
  mark(sealed: number, end: number): Mark {
    let seq = end
    for (const block of this.#blocks.values()) seq = Math.min(seq, block.since)
    return { block: sealed, seq }
  }

  #oldest(): number {
    let oldest = Number.POSITIVE_INFINITY
    for (const number of this.#blocks.keys()) oldest = Math.min(oldest, number)
    return oldest
  }

  #forgetBelow(floor: number): void {
    if (floor <= this.#floor) return
    this.#floor = floor
    for (const [number, block] of this.#blocks) {
      if (number >= floor) continue
      this.#size -= block.keys.size
      this.#blocks.delete(number)
    }
  }
}
