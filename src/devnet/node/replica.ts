import { type Hex, ZERO_WORD } from '../../lib/hex.ts'
import type { Chain } from '../chain/chain.ts'
import type { DevnetBlock } from '../chain/chain-types.ts'
import { digest } from '../chain/hashes.ts'
import type { Faults } from '../faults/faults.ts'

/** Number of blocks from a pending block that no longer changes to the newest block. */
const STUCK_BLOCKS = 5

/** The chain as one node behind a load balancer sees it. */
export type Replica = {
  readonly chain: Chain
  /** The block shown as pending; undefined without pre-confirmations. */
  readonly preconfirmed: DevnetBlock | undefined
}

type ChainHolder = { readonly chain: Chain }

/** Makes an up-to-date node. The faults decide what it shows as pending. */
export const createUpToDateReplica = (present: ChainHolder, faults: Faults): Replica => {
  let stuckBlock: DevnetBlock | undefined
  return {
    get chain() {
      return present.chain
    },
    get preconfirmed() {
      const { head, pending } = present.chain
      const old = stuckBlock ?? present.chain.block(head.number - STUCK_BLOCKS)
      stuckBlock = faults.pending === 'behind' && old ? withHash(old, ZERO_WORD) : undefined
      if (faults.pending === 'behind') return stuckBlock
      if (faults.pending === 'latest' || faults.pending === 'null') return undefined
      const hash = digest('partial', pending.parentHash, pending.flashblocks)
      return faults.pending === 'partial' ? withHash(pending, hash) : pending
    },
  }
}

/** Makes a node that is some blocks behind, without pre-confirmations. */
export const createLaggingReplica = (present: ChainHolder, faults: Faults): Replica => ({
  get chain() {
    const { head, oldest } = present.chain
    const newest = Math.max(head.number - faults.lagBlocks, Math.min(oldest, head.number))
    return present.chain.backTo(newest, { timestamp: head.timestamp })
  },
  preconfirmed: undefined,
})

const withHash = (block: DevnetBlock, hash: Hex): DevnetBlock => ({
  ...block,
  hash,
  logs: block.logs.map((log) => ({ ...log, blockHash: hash })),
})
