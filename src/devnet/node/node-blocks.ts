import { quantity, toLowerHex } from '../../lib/hex.ts'
import type { AnyBlock, blockTags } from '../../protocol/json-rpc-methods.ts'
import type { DevnetBlock } from '../chain/chain-types.ts'
import type { FaultController } from '../faults/fault-controller.ts'
import { CallError } from './json-rpc.ts'
import type { Replica } from './replica.ts'

export type DevnetNode = {
  replica: Replica
  faultController: FaultController
  chainId: number
  receipts: boolean
  calls: boolean
  safeDepth: number
  finalizedDepth: number
}

/** Replaces a block hash by the number of the block. Tags and numbers stay. */
export const resolveBlockHash = ({ replica }: DevnetNode, blockId: AnyBlock): string => {
  if (typeof blockId !== 'string' && 'blockNumber' in blockId) return blockId.blockNumber
  const hash = typeof blockId === 'string' ? blockId : blockId.blockHash
  if (hash.length < 66) return hash
  const block = replica.chain.blockOfHash(toLowerHex(hash))
  if (!block) throw new CallError(-32001, `block not found: hash ${hash}`)
  return quantity(block.number)
}

export const resolveBlockNumber = (node: DevnetNode, blockId: string): number | 'pending' => {
  switch (blockId as (typeof blockTags)[number]) {
    case 'pending':
      return 'pending'
    case 'latest':
      return node.replica.chain.head.number
    case 'safe':
      return trailingBlock(node, node.safeDepth)
    case 'finalized':
      return trailingBlock(node, node.finalizedDepth)
    case 'earliest':
      return 0
    default:
      return Number(blockId)
  }
}

export const findBlock = (node: DevnetNode, blockId: string): DevnetBlock | undefined => {
  const { replica, faultController } = node
  const number = resolveBlockNumber(node, blockId)
  if (number !== 'pending') return replica.chain.block(number)
  return faultController.faults.pending === 'null' ? undefined : (replica.preconfirmed ?? replica.chain.head)
}

/** Returns the block whose state is read: the number of a sealed block, or `pending`. */
export const resolveStateBlock = (node: DevnetNode, blockId: string): number | 'pending' => {
  const { replica } = node
  const number = resolveBlockNumber(node, blockId)
  if (number === 'pending') {
    const shownBlock = replica.preconfirmed ?? replica.chain.head
    return shownBlock.number > replica.chain.head.number ? 'pending' : shownBlock.number
  }
  if (number > replica.chain.head.number) throw new CallError(-32001, `block not found: ${blockId}`)
  // The state before the oldest kept block is known too, because that block can be undone.
  if (number !== 0 && number < replica.chain.oldest - 1) throw new CallError(-32000, `state at block ${blockId} is pruned`)
  return number
}

/** Returns the block of `safe` or `finalized`. It never decreases, because a reorg keeps the number of blocks. */
const trailingBlock = ({ replica, faultController }: DevnetNode, depth: number): number => {
  if (faultController.faults.finality === 'refused') throw new CallError(-32602, 'invalid params: unknown block tag')
  const { head, oldest } = replica.chain
  return head.number === 0 ? 0 : Math.min(head.number, Math.max(head.number - depth, oldest))
}
