import { matching, type Params } from '../../chain/rpc/methods.ts'
import type { Log } from '../chain/block.ts'
import { type Hex, lower } from '../chain/hex.ts'
import { CallError } from './json-rpc.ts'
import { type Node, numberOf } from './node.ts'

type Filter = Params<'eth_getLogs'>[0]
type Place = number | 'pending'

/** The logs that a filter finds: of one block by its hash, or of a range of blocks. */
export const readLogs = (node: Node, filter: Filter): readonly Log[] => {
  const { fromBlock, toBlock, blockHash } = filter
  if (blockHash) {
    if (node.skies.weather.strictFilters && (fromBlock || toBlock)) {
      throw new CallError(-32602, 'cannot specify both blockHash and fromBlock/toBlock, choose one or the other')
    }
    const logs = blockLogs(node, lower(blockHash)).filter(matching(filter))
    if (logs.length > 0 && node.skies.spends('emptyLogs')) return []
    return bounded(node, logs)
  }
  const from = numberOf(node, fromBlock ?? 'latest')
  const to = numberOf(node, toBlock ?? 'latest')
  return bounded(node, rangeLogs(node, from, to).filter(matching(filter)), { from, to })
}

const blockLogs = ({ replica, skies }: Node, hash: Hex): readonly Log[] => {
  const block = replica.blockOfHash(hash)
  if (!block || skies.spends('missingByHash')) throw new CallError(-32001, `block not found: hash ${hash}`)
  return block.logs
}

const rangeLogs = (node: Node, from: Place, to: Place): readonly Log[] => {
  const { replica } = node
  const pending = to === 'pending' ? (replica.preconfirmed?.logs ?? []) : []
  if (from === 'pending') return pending
  const sealed = sealedLogs(node, from, to === 'pending' ? replica.head.number : to)
  // What is still pending here although it is sealed is told once, as on the real node.
  const told = new Set(sealed.map(slotOf))
  return [...sealed, ...pending.filter((log) => !told.has(slotOf(log)))]
}

const sealedLogs = ({ replica, skies }: Node, from: number, to: number): readonly Log[] => {
  if (from > replica.head.number) return []
  if (from > to) throw new CallError(-32602, 'invalid block range params')
  const { rangeBound } = skies.weather
  if (to - from >= rangeBound) throw new CallError(-32602, `block range greater than ${rangeBound} max`)
  const last = Math.min(to, replica.head.number)
  if (last > 0 && Math.max(from, 1) < replica.oldest) throw new CallError(-32000, 'pruned history unavailable')
  const numbers = Array.from({ length: last - from + 1 }, (_, at) => from + at)
  return numbers.flatMap((number) => replica.block(number)?.logs ?? [])
}

/** The logs if they are not too many. */
const bounded = ({ skies }: Node, logs: readonly Log[], range?: { from: Place; to: Place }): readonly Log[] => {
  const { resultsBound, suggestRange } = skies.weather
  const tooMuch = logs[resultsBound]
  if (!tooMuch) return logs
  const refusal = `query exceeds max results ${resultsBound}`
  if (!suggestRange) throw new CallError(-32602, refusal)
  if (!range || range.from === 'pending' || range.from === range.to) return logs
  const last = Math.max(range.from, Number(tooMuch.blockNumber) - 1)
  throw new CallError(-32602, `${refusal}, retry with the range ${range.from}-${last}`)
}

const slotOf = ({ blockNumber, logIndex }: Log) => `${blockNumber} ${logIndex}`
