import { LATELY_BLOCKS } from '../chain/sealed/recent-blocks.ts'
import type { Heard } from '../chain/source/source.ts'
import type { Hex } from '../protocol/fields.ts'

/** No block is built so far above the head. */
const AHEAD_BOUND_BLOCKS = 64

/** How far the chain is as far as was heard, and how often it moved: what was answered before may no longer be so. */
export class Moment {
  /** The newest sealed block, and what is known to stay. */
  head: number | null = null
  safe: number | null = null
  finalized: number | null = null
  #building: number | null = null
  /** Whether nobody would tell us of a new head now. */
  isDeaf = true
  /** Counts what took back sealed blocks, new heads, and moves of the pending state. */
  era = 0
  heads = 0
  moves = 0
  readonly #hashes = new Map<number, Hex>()

  /** The newest block that anything is known of. */
  get pending(): number | null {
    return this.head === null ? this.#building : Math.max(this.head, this.#building ?? 0)
  }

  /** The block of a number as it was heard of last; where none was, it would not be noticed that it is another. */
  hashOf(number: number): Hex | null {
    return this.#hashes.get(number) ?? null
  }

  hear(heard: Heard): void {
    switch (heard.type) {
      case 'log':
        this.moves += 1
        return this.#shows(heard.log.blockNumber)
      case 'head':
        return this.#headed(heard)
      case 'finality':
        this[heard.stage] = heard.block.number
        this.heads += 1
        return
      case 'status':
        this.isDeaf = heard.source === 'down' || heard.reason === 'unreachable'
        if (this.isDeaf) this.heads += 1
        return
      case 'doubted':
        return this.#tookBack(heard.from)
      case 'sealed':
        for (const { number, hash } of heard.blocks) this.#sealed(number, hash)
        return
      default:
    }
  }

  /** A block is being built; one far ahead of all others is garbage. */
  #shows(building: number): void {
    if (this.head !== null && building > this.head + AHEAD_BOUND_BLOCKS) return
    this.#building = Math.max(building, this.#building ?? 0)
  }

  #headed({ sealed, pending, hash, parentHash }: Extract<Heard, { type: 'head' }>): void {
    if (sealed !== null) {
      this.#raise(sealed)
      // It may stand on another block than the one we know.
      if (parentHash) this.#sealed(sealed - 1, parentHash)
      if (hash) this.#sealed(sealed, hash)
    }
    if (pending !== null && pending !== this.#building) {
      this.#building = pending
      this.moves += 1
    }
  }

  #sealed(number: number, hash: Hex): void {
    const before = this.#hashes.get(number)
    if (before !== undefined && before !== hash) this.#tookBack(number)
    // After a reorganisation what is settled anew may be all that is heard of the head.
    if (this.head !== null && number > this.head) this.#raise(number)
    this.#hashes.set(number, hash)
    const [oldest] = this.#hashes.keys()
    if (this.#hashes.size > LATELY_BLOCKS && oldest !== undefined) this.#hashes.delete(oldest)
  }

  #raise(head: number): void {
    if (head === this.head) return
    this.head = head
    this.heads += 1
  }

  #tookBack(from: number): void {
    this.era += 1
    // What stands there now is not known before it is heard of, be it lower than it was.
    if (this.head !== null) this.head = Math.min(this.head, from - 1)
    for (const number of this.#hashes.keys()) if (number >= from) this.#hashes.delete(number)
  }
}
