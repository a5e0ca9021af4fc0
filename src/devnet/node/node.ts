import type { AnyBlock, blockTags } from '../../chain/rpc/methods.ts'
import type { Block } from '../chain/block.ts'
import { lower, quantity } from '../chain/hex.ts'
import type { Skies } from '../faults/apply.ts'
import { CallError } from './json-rpc.ts'
import type { Replica } from './replica.ts'

/** What the methods are answered from. */
export type Node = {
  replica: Replica
  skies: Skies
  chainId: number
  /** Whether `eth_getBlockReceipts` is answered. */
  receipts: boolean
  /** Whether `eth_call` is. */
  calls: boolean
  /** How far the safe and the finalized block trail the newest. */
  safeDepth: number
  finalizedDepth: number
}

/** A block parameter by its number, where it may name a block by its hash as well. */
export const named = ({ replica }: Node, at: AnyBlock): string => {
  if (typeof at !== 'string' && 'blockNumber' in at) return at.blockNumber
  const hash = typeof at === 'string' ? at : at.blockHash
  if (hash.length < 66) return hash
  const block = replica.blockOfHash(lower(hash))
  if (!block) throw new CallError(-32001, `block not found: hash ${hash}`)
  return quantity(block.number)
}

/** The number that a block parameter means. */
export const numberOf = (node: Node, at: string): number | 'pending' => {
  switch (at as (typeof blockTags)[number]) {
    case 'pending':
      return 'pending'
    case 'latest':
      return node.replica.head.number
    case 'safe':
      return trailing(node, node.safeDepth)
    case 'finalized':
      return trailing(node, node.finalizedDepth)
    case 'earliest':
      return 0
    default:
      return Number(at)
  }
}

/** The block asked for, pending or sealed; undefined where there is none. */
export const blockAt = (node: Node, at: string): Block | undefined => {
  const { replica, skies } = node
  const number = numberOf(node, at)
  if (number !== 'pending') return replica.block(number)
  if (skies.weather.pending === 'null') return undefined
  return replica.preconfirmed ?? replica.head
}

/** Where state is read: a sealed block's number, or what is pre-confirmed. */
export const stateAt = (node: Node, at: string): number | 'pending' => {
  const { replica } = node
  const number = numberOf(node, at)
  if (number === 'pending') {
    const shown = replica.preconfirmed ?? replica.head
    return shown.number > replica.head.number ? 'pending' : shown.number
  }
  if (number > replica.head.number) throw new CallError(-32001, `block not found: ${at}`)
  // The state before the oldest block that is kept can still be told by undoing that block.
  if (number !== 0 && number < replica.oldest - 1) throw new CallError(-32000, `state at block ${at} is pruned`)
  return number
}

/** Never less than before: a reorganisation replaces blocks by as many. */
const trailing = ({ replica, skies }: Node, depth: number): number => {
  if (skies.weather.finality === 'refused') throw new CallError(-32602, 'invalid params: unknown block tag')
  const { head, oldest } = replica
  return head.number === 0 ? 0 : Math.min(head.number, Math.max(head.number - depth, oldest))
}
