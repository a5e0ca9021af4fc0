import { BoundedMap } from '../../lib/bounded-map.ts'
import type { Hex } from '../../lib/hex.ts'
import { RECENT_BLOCKS_BOUND, WITHIN_REACH_BLOCKS } from '../chain/blocks/block-bounds.ts'
import type { ChainEvent } from '../chain/source/source.ts'

/** The known state of the chain, and counts of its changes. Each change may invalidate cached answers. */
export class ChainState {
  head: number | null = null
  safe: number | null = null
  finalized: number | null = null
  #pending: number | null = null
  /** Whether the relay cannot receive heads now. */
  isDisconnected = true
  reorgCount = 0
  headCount = 0
  pendingCount = 0
  readonly #hashes = new BoundedMap<number, Hex>(RECENT_BLOCKS_BOUND)

  /** Number of the newest block, pending ones included; null if none is known. */
  get pending(): number | null {
    return this.head === null ? this.#pending : Math.max(this.head, this.#pending ?? 0)
  }

  /** Returns the known hash of a block. If it is null, the relay would not notice that a reorg replaces the block. */
  hashOf(number: number): Hex | null {
    return this.#hashes.get(number) ?? null
  }

  receive(event: ChainEvent): void {
    switch (event.type) {
      case 'logs':
        this.pendingCount += 1
        for (const { blockNumber } of event.logs) this.#receivePending(blockNumber)
        return
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
      case 'reorg':
        return this.#rollBack(event.from)
      case 'sealed':
        for (const { number, hash } of event.blocks) this.#recordBlock(number, hash)
        return
      default:
    }
  }

  #receivePending(pending: number): void {
    if (this.head !== null && pending > this.head + WITHIN_REACH_BLOCKS) return
    this.#pending = Math.max(pending, this.#pending ?? 0)
  }

  #receiveHead({ sealed, pending, hash, parentHash }: Extract<ChainEvent, { type: 'head' }>): void {
    if (sealed !== null) {
      this.#setHead(sealed)
      // The parent may replace a known block.
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
    // After a reorg, settled blocks may be the only news of the head.
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
    // The new head, which may be lower than before, is unknown until it is received.
    if (this.head !== null) this.head = Math.min(this.head, from - 1)
    for (const number of this.#hashes.keys()) if (number >= from) this.#hashes.delete(number)
  }
}
