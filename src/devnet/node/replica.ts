import type { Block } from '../chain/block.ts'
import type { Chain } from '../chain/chain.ts'
import { digest, type Hex, ZERO_WORD } from '../chain/hex.ts'
import type { Weather } from '../faults/faults.ts'

/** How many blocks before the newest a pending state is that got stuck. */
const STUCK_BLOCKS = 5

/** The chain as one of the nodes behind the same door knows it. */
export type Replica = Pick<Chain, 'head' | 'oldest' | 'block' | 'blockOfHash' | 'held'> & {
  /** The block that it shows as pre-confirmed; none where it knows of no such thing. */
  readonly preconfirmed: Block | undefined
}

/** A node that is up to date, and shows as pre-confirmed what the weather lets it. */
export const nearestOf = (chain: Chain, weather: Weather): Replica => {
  let stuck: Block | undefined
  const stuckBlock = () => {
    const block = chain.block(chain.head.number - STUCK_BLOCKS)
    stuck ??= block && called(block, ZERO_WORD)
    return stuck
  }
  const preconfirmed = () => {
    const { pending } = chain
    switch (weather.pending) {
      case 'shown':
      case 'numberless':
        return pending
      case 'partial':
        return called(pending, digest('partial', pending.parentHash, pending.flashes))
      case 'behind':
        return stuckBlock()
      case 'latest':
      case 'null':
        return undefined
    }
  }
  return {
    get head() {
      return chain.head
    },
    get oldest() {
      return chain.oldest
    },
    get preconfirmed() {
      if (weather.pending !== 'behind') stuck = undefined
      return preconfirmed()
    },
    block: (number) => chain.block(number),
    blockOfHash: (hash) => chain.blockOfHash(hash),
    held: (key, at) => chain.held(key, at),
  }
}

/** A node that is some blocks behind, knows nothing of those, and pre-confirms nothing. */
export const laggingOf = (chain: Chain, weather: Weather): Replica => {
  const head = () => chain.block(Math.max(chain.head.number - weather.lagBlocks, chain.oldest)) ?? chain.head
  const known = (block: Block | undefined) => (block && block.number <= head().number ? block : undefined)
  return {
    get head() {
      return head()
    },
    get oldest() {
      return chain.oldest
    },
    preconfirmed: undefined,
    block: (number) => known(chain.block(number)),
    blockOfHash: (hash) => known(chain.blockOfHash(hash)),
    held: (key, at) => chain.held(key, at),
  }
}

/** The same block under another hash, which its logs name. */
const called = (block: Block, hash: Hex): Block => ({
  ...block,
  hash,
  logs: block.logs.map((log) => ({ ...log, blockHash: hash })),
})
