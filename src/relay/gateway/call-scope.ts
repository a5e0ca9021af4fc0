import type { AnyBlock, Method, Params } from '../../protocol/json-rpc-methods.ts'
import type { ChainState } from './chain-state.ts'

/** The blocks that a call concerns. They determine the validity of its answer. */
export type CallScope =
  | { readonly at: 'pending' }
  | { readonly at: 'head' }
  /** A sealed block, or a range that ends with it. `several` is true for a range. */
  | { readonly at: 'number'; readonly number: number; readonly several: boolean }
  | { readonly at: 'hash' }
  | { readonly at: 'chain' }

export type LogsFilter = Params<'eth_getLogs'>[0]

/** Index of the block among the params of each method that has one. */
export const blockParamIndex: Partial<Record<Method, number>> = {
  eth_getBlockByNumber: 0,
  eth_getBlockReceipts: 0,
  eth_getStorageAt: 2,
  eth_getTransactionCount: 1,
  eth_getCode: 1,
  eth_getBalance: 1,
}

export function scopeOf(method: Method, params: readonly unknown[], chainState: ChainState): CallScope {
  if (method === 'eth_chainId') return { at: 'chain' }
  if (method === 'eth_blockNumber') return { at: 'head' }
  if (method === 'eth_getLogs') return scopeOfLogs(params[0] as LogsFilter, chainState)
  const scope = scopeOfBlock(params[blockParamIndex[method] ?? 0] as AnyBlock)
  // `eth_getBlockByNumber` takes no hash, and a number with as many digits as a hash is above every head.
  return scope.at === 'hash' && method === 'eth_getBlockByNumber' ? { at: 'head' } : scope
}

function scopeOfBlock(block: AnyBlock): CallScope {
  if (typeof block !== 'string') return 'blockHash' in block ? { at: 'hash' } : scopeOfBlock(block.blockNumber)
  if (block === 'pending') return { at: 'pending' }
  if (block === 'earliest') return { at: 'number', number: 0, several: false }
  if (!block.startsWith('0x')) return { at: 'head' }
  return block.length === 66 ? { at: 'hash' } : { at: 'number', number: Number(block), several: false }
}

function scopeOfLogs({ fromBlock, toBlock, blockHash }: LogsFilter, chainState: ChainState): CallScope {
  if (blockHash) return { at: 'hash' }
  const ends = [fromBlock ?? 'latest', toBlock ?? 'latest']
  if (ends.includes('pending')) return { at: 'pending' }
  const [from, to] = ends.map((end) => numberOf(end, chainState))
  if (!ends.every((end) => end === 'earliest' || end.startsWith('0x')) || to == null) return { at: 'head' }
  return { at: 'number', number: Math.max(from ?? 0, to), several: from !== to }
}

/** Returns the number of the block that a parameter such as `latest` means now; null while it is unknown. */
export function numberOf(block: string, chainState: ChainState): number | null {
  switch (block) {
    case 'earliest':
      return 0
    case 'latest':
      return chainState.head
    case 'pending':
      return chainState.pending
    case 'safe':
      return chainState.safe
    case 'finalized':
      return chainState.finalized
    default:
      return Number(block)
  }
}
