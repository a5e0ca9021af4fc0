import { BoundedMap } from '../bounded-map.ts'
import { RECENT_BLOCKS_BOUND } from '../chain/sealed/recent-blocks.ts'
import type { ChainEvent } from '../chain/source/source.ts'
import type { Hex } from '../protocol/fields.ts'

/** No block is built so far above the head. */
const AHEAD_BOUND_BLOCKS = 64

/** How far the chain is as far as was heard, and how often it moved: what was answered before may no longer be so. */
export class ChainState {
  /** The newest sealed block, and what is known to stay. */
  head: number | null = null
  safe: number | null = null
  finalized: number | null = null
  #pending: number | null = null
  /** Whether nobody would tell us of a new head now. */
  isDisconnected = true
  /** Counts what took back sealed blocks, new heads, and moves of the pending state. */
  reorgCount = 0
  headCount = 0
  pendingCount = 0
  readonly #hashes = new BoundedMap<number, Hex>(RECENT_BLOCKS_BOUND)

  /** The newest block that anything is known of. */
  get pending(): number | null {
    return this.head === null ? this.#pending : Math.max(this.head, this.#pending ?? 0)
  }

  /** The block of a number as it was heard of last; where none was, it would not be noticed that it is another. */
  hashOf(number: number): Hex | null {
    return this.#hashes.get(number) ?? null
  }

  receive(event: ChainEvent): void {
    switch (event.type) {
      case 'log':
        this.pendingCount += 1
        return this.#receivePending(event.log.blockNumber)
      case 'head':
        return this.#receiveHead(event)
      case 'finality':
        this[event.stage] = event.block.number
        this.headCount += 1
        return
      case 'status':
        this.isDisconnected = event.source === 'down' || event.reason === 'unreachable'
        if (this.isDisconnected) this.headCount += 1
        return
      case 'doubted':
        return this.#rollBack(event.from)
      case 'sealed':
        for (const { number, hash } of event.blocks) this.#recordBlock(number, hash)
        return
      default:
    }
  }

  /** A block is being built; one far ahead of all others is garbage. */
  #receivePending(pending: number): void {
    if (this.head !== null && pending > this.head + AHEAD_BOUND_BLOCKS) return
    this.#pending = Math.max(pending, this.#pending ?? 0)
  }

  #receiveHead({ sealed, pending, hash, parentHash }: Extract<ChainEvent, { type: 'head' }>): void {
    if (sealed !== null) {
      this.#setHead(sealed)
      // It may stand on another block than the one we know.
      if (parentHash) this.#recordBlock(sealed - 1, parentHash)
      if (hash) this.#recordBlock(sealed, hash)
    }
    if (pending !== null && pending !== this.#pending) {
      this.#pending = pending
      this.pendingCount += 1
    }
  }

  #recordBlock(number: number, hash: Hex): void {
    const knownHash = this.#hashes.get(number)
    if (knownHash !== undefined && knownHash !== hash) this.#rollBack(number)
    // After a reorganisation what is settled anew may be all that is heard of the head.
    if (this.head !== null && number > this.head) this.#setHead(number)
    this.#hashes.set(number, hash)
  }

  #setHead(head: number): void {
    if (head === this.head) return
    this.head = head
    this.headCount += 1
  }

  #rollBack(from: number): void {
    this.reorgCount += 1
    // What stands there now is not known before it is heard of, be it lower than it was.
    if (this.head !== null) this.head = Math.min(this.head, from - 1)
    for (const number of this.#hashes.keys()) if (number >= from) this.#hashes.delete(number)
  }
}
