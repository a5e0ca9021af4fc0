import { type Hex, ZERO_WORD } from '../../lib/hex.ts'
import type { Chain } from '../chain/chain.ts'
import type { DevnetBlock } from '../chain/chain-types.ts'
import { digest } from '../chain/hashes.ts'
import type { Faults } from '../faults/faults.ts'

/** Number of blocks from a pending block that no longer changes to the newest block. */
const STUCK_BLOCKS = 5

/** The chain as one node behind a load balancer sees it. */
export type Replica = Pick<Chain, 'head' | 'oldest' | 'block' | 'blockOfHash' | 'valueAt'> & {
  /** The block shown as pending; undefined without pre-confirmations. */
  readonly preconfirmed: DevnetBlock | undefined
}

/** Makes an up-to-date node. The faults decide what it shows as pending. */
export const createUpToDateReplica = (chain: Chain, faults: Faults): Replica => {
  let cachedStuckBlock: DevnetBlock | undefined
  const readStuckBlock = () => {
    const block = chain.block(chain.head.number - STUCK_BLOCKS)
    cachedStuckBlock ??= block && withHash(block, ZERO_WORD)
    return cachedStuckBlock
  }
  const readPreconfirmed = () => {
    if (faults.pending !== 'behind') cachedStuckBlock = undefined
    const { pending } = chain
    switch (faults.pending) {
      case 'shown':
      case 'numberless':
        return pending
      case 'partial':
        return withHash(pending, digest('partial', pending.parentHash, pending.flashblocks))
      case 'behind':
        return readStuckBlock()
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
      return readPreconfirmed()
    },
    block: (number) => chain.block(number),
    blockOfHash: (hash) => chain.blockOfHash(hash),
    valueAt: (key, stateBlock) => chain.valueAt(key, stateBlock),
  }
}

/** Makes a node that is some blocks behind, without pre-confirmations. */
export const createLaggingReplica = (chain: Chain, faults: Faults): Replica => {
  const readHead = () => chain.block(Math.max(chain.head.number - faults.lagBlocks, chain.oldest)) ?? chain.head
  const ifKnown = (block: DevnetBlock | undefined) => (block && block.number <= readHead().number ? block : undefined)
  return {
    get head() {
      return readHead()
    },
    get oldest() {
      return chain.oldest
    },
    preconfirmed: undefined,
    block: (number) => ifKnown(chain.block(number)),
    blockOfHash: (hash) => ifKnown(chain.blockOfHash(hash)),
    valueAt: (key, stateBlock) => chain.valueAt(key, stateBlock),
  }
}

const withHash = (block: DevnetBlock, hash: Hex): DevnetBlock => ({
  ...block,
  hash,
  logs: block.logs.map((log) => ({ ...log, blockHash: hash })),
})
