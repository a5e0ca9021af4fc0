import { type Hex, toLowerHex } from '../../lib/hex.ts'
import { logMatcher, type Params } from '../../protocol/json-rpc-methods.ts'
import type { DevnetLog } from '../chain/chain-types.ts'
import { CallError } from './json-rpc.ts'
import { type DevnetNode, resolveBlockNumber } from './node-blocks.ts'

type Filter = Params<'eth_getLogs'>[0]
type BlockPosition = number | 'pending'

/** Returns the matching logs of one block by its hash, or of a range of blocks. */
export const readLogs = (node: DevnetNode, filter: Filter): readonly DevnetLog[] => {
  const { fromBlock, toBlock, blockHash } = filter
  if (blockHash) {
    const logs = logsOfBlock(node, toLowerHex(blockHash)).filter(logMatcher(filter))
    if (logs.length > 0 && node.faultController.consume('emptyLogs')) return []
    return checkResultCount(node, logs)
  }
  const from = resolveBlockNumber(node, fromBlock ?? 'latest')
  const to = resolveBlockNumber(node, toBlock ?? 'latest')
  return checkResultCount(node, logsOfRange(node, from, to).filter(logMatcher(filter)), { from, to })
}

const logsOfBlock = ({ replica, faultController }: DevnetNode, hash: Hex): readonly DevnetLog[] => {
  const block = replica.chain.blockOfHash(hash)
  if (!block || faultController.consume('missingByHash')) throw new CallError(-32001, `block not found: hash ${hash}`)
  return block.logs
}

const logsOfRange = (node: DevnetNode, from: BlockPosition, to: BlockPosition): readonly DevnetLog[] => {
  const { replica } = node
  const pending = to === 'pending' ? (replica.preconfirmed?.logs ?? []) : []
  if (from === 'pending') return pending
  const sealed = sealedLogsOfRange(node, from, to === 'pending' ? replica.chain.head.number : to)
  // A log that is sealed, and still in the pending block, is returned once, as by the real node.
  const sealedIds = new Set(sealed.map(logIdOf))
  return [...sealed, ...pending.filter((log) => !sealedIds.has(logIdOf(log)))]
}

const sealedLogsOfRange = ({ replica, faultController }: DevnetNode, from: number, to: number): readonly DevnetLog[] => {
  if (from > replica.chain.head.number) return []
  if (from > to) throw new CallError(-32602, 'invalid block range params')
  const { rangeBound } = faultController.faults
  if (to - from >= rangeBound) throw new CallError(-32602, `block range greater than ${rangeBound} max`)
  const last = Math.min(to, replica.chain.head.number)
  if (last > 0 && Math.max(from, 1) < replica.chain.oldest) throw new CallError(-32000, 'pruned history unavailable')
  const numbers = Array.from({ length: last - from + 1 }, (_, index) => from + index)
  return numbers.flatMap((number) => replica.chain.block(number)?.logs ?? [])
}

const checkResultCount = (
  { faultController }: DevnetNode,
  logs: readonly DevnetLog[],
  range?: { from: BlockPosition; to: BlockPosition },
): readonly DevnetLog[] => {
  const { resultsBound, suggestRange } = faultController.faults
  const firstExcessLog = logs[resultsBound]
  if (!firstExcessLog) return logs
  const message = `query exceeds max results ${resultsBound}`
  if (!suggestRange) throw new CallError(-32602, message)
  if (!range || range.from === 'pending' || range.from === range.to) return logs
  const last = Math.max(range.from, Number(firstExcessLog.blockNumber) - 1)
  throw new CallError(-32602, `${message}, retry with the range ${range.from}-${last}`)
}

const logIdOf = ({ blockNumber, logIndex }: DevnetLog) => `${blockNumber} ${logIndex}`
