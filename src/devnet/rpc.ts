import type { z } from 'zod'
import { type blockTags, type LogFilter, type Method, methods, type Params } from '../chain/methods.ts'
import type { Block, Chain, Log } from './chain.ts'
import { type Call, CallError } from './envelope.ts'
import { lower, quantity, word } from './hex.ts'
import { codeOf, etherOf, nonceOf, slotOf } from './state.ts'
import type { Skies } from './weather.ts'
import { blockOf, receiptsOf } from './wire.ts'

/** How far the safe and the finalized block trail the newest. */
const SAFE_DEPTH = 30
const FINALIZED_DEPTH = 100

/** What the methods read. */
export type Node = { chain: Chain; skies: Skies; chainId: number; receipts: boolean }

type Filter = Params<'eth_getLogs'>[0]

/** The methods, each from unchecked parameters to its result; a `CallError` where there is none. */
export const createRpc = (node: Node): Call => {
  const { chain, skies } = node
  const held =
    (keyOf: (address: `0x${string}`) => string) =>
    ([address, at]: readonly [string, string]) =>
      chain.held(keyOf(lower(address)), place(node, at))

  const rows: Record<Method, (params: unknown) => unknown> = {
    eth_chainId: row(methods.eth_chainId.params, () => quantity(skies.weather.chainId ?? node.chainId)),
    eth_blockNumber: row(methods.eth_blockNumber.params, () => quantity(chain.head.number)),
    eth_getBlockByNumber: row(methods.eth_getBlockByNumber.params, ([at, full]) => readBlock(node, at, full)),
    eth_getLogs: row(methods.eth_getLogs.params, ([filter]) => readLogs(node, filter)),
    eth_getBlockReceipts: row(methods.eth_getBlockReceipts.params, ([at]) => readReceipts(node, at)),
    eth_getStorageAt: row(methods.eth_getStorageAt.params, ([address, slot, at]) =>
      word(chain.held(slotOf(lower(address), word(BigInt(slot))), place(node, at))),
    ),
    eth_getTransactionCount: row(methods.eth_getTransactionCount.params, (params) => quantity(held(nonceOf)(params))),
    eth_getCode: row(methods.eth_getCode.params, (params) => bytesOf(held(codeOf)(params))),
    eth_getBalance: row(methods.eth_getBalance.params, (params) => quantity(held(etherOf)(params))),
  }
  return (method, params) => {
    if (!isMethod(method)) throw new CallError(-32601, `the method ${method} does not exist`)
    return rows[method](params)
  }
}

const isMethod = (name: string): name is Method => Object.hasOwn(methods, name)

/** Reads parameters by a schema; -32602 if they do not fit. */
export const checked = <S extends z.ZodType>(schema: S, params: unknown): z.infer<S> => {
  const read = schema.safeParse(params)
  if (read.success) return read.data
  const [issue] = read.error.issues
  throw new CallError(-32602, `invalid params: ${issue?.path.join('.') ?? ''} ${issue?.message ?? ''}`)
}

/** Whether a log is of one of these addresses and has these topics; an empty list asks for nothing in particular. */
export const matches = ({ address, topics }: LogFilter): ((log: Log) => boolean) => {
  const addresses = new Set([address ?? []].flat().map(lower))
  const positions = (topics ?? []).map((topic) => new Set([topic ?? []].flat().map(lower)))
  return (log) =>
    (addresses.size === 0 || addresses.has(log.address)) &&
    positions.every((wanted, at) => {
      const topic = log.topics[at]
      return wanted.size === 0 || (topic !== undefined && wanted.has(topic))
    })
}

const row =
  <S extends z.ZodType>(schema: S, answer: (params: z.infer<S>) => unknown) =>
  (params: unknown) =>
    answer(checked(schema, params))

/** Where state is read: a sealed block's number, or what is pre-confirmed. */
const place = (node: Node, at: string): number | 'pending' => {
  const number = numberOf(node, at)
  if (number === 'pending') return node.skies.preconfirms() ? 'pending' : node.chain.head.number
  if (number > node.chain.head.number) throw new CallError(-32001, `block not found: ${at}`)
  // The state before the oldest block that is kept can still be told by undoing that block.
  if (number !== 0 && number < node.chain.oldest - 1) throw new CallError(-32000, `state at block ${at} is pruned`)
  return number
}

const numberOf = ({ chain }: Node, at: string): number | 'pending' => {
  switch (at as (typeof blockTags)[number]) {
    case 'pending':
      return 'pending'
    case 'latest':
      return chain.head.number
    case 'safe':
      return trailing(chain, SAFE_DEPTH)
    case 'finalized':
      return trailing(chain, FINALIZED_DEPTH)
    case 'earliest':
      return 0
    default:
      return Number(at)
  }
}

const trailing = (chain: Chain, depth: number): number =>
  chain.head.number === 0 ? 0 : Math.min(chain.head.number, Math.max(chain.head.number - depth, chain.oldest))

/** The block asked for, pending or sealed; undefined where there is none. */
const find = (node: Node, at: string): Block | undefined => {
  const number = numberOf(node, at)
  if (number !== 'pending') return node.chain.block(number)
  if (node.skies.weather.pending === 'null') return undefined
  return node.skies.preconfirms() ? node.chain.pending : node.chain.head
}

const readBlock = (node: Node, at: string, full: boolean) => {
  const block = find(node, at)
  if (!block) return null
  const answer = blockOf(block, full, node.chainId)
  const numberless = at === 'pending' && node.skies.weather.pending === 'numberless'
  return numberless ? { ...answer, number: null, hash: null } : answer
}

const readReceipts = (node: Node, at: string) => {
  if (!node.receipts) throw new CallError(-32601, 'rpc method is not whitelisted', 403)
  const block = find(node, at)
  return block ? receiptsOf(block) : null
}

const readLogs = (node: Node, filter: Filter): readonly Log[] => {
  const logs = logsOf(node, filter).filter(matches(filter))
  const { resultsBound } = node.skies.weather
  if (logs.length > resultsBound) throw new CallError(-32602, `query exceeds max results ${resultsBound}`)
  return logs
}

const logsOf = (node: Node, { fromBlock, toBlock, blockHash }: Filter): readonly Log[] => {
  const { chain, skies } = node
  if (blockHash !== undefined) {
    if (skies.weather.strictFilters && (fromBlock !== undefined || toBlock !== undefined)) {
      throw new CallError(-32602, 'cannot specify both blockHash and fromBlock/toBlock, choose one or the other')
    }
    const block = chain.blockOfHash(lower(blockHash))
    if (!block) throw new CallError(-32001, `block not found: hash ${blockHash}`)
    return block.logs
  }
  const from = numberOf(node, fromBlock ?? 'latest')
  const to = numberOf(node, toBlock ?? 'latest')
  const pending = to === 'pending' && skies.preconfirms() ? chain.pending.logs : []
  if (from === 'pending') return pending
  return [...sealedLogs(node, from, to === 'pending' ? chain.head.number : to), ...pending]
}

const sealedLogs = ({ chain, skies }: Node, from: number, to: number): readonly Log[] => {
  if (from > chain.head.number) return []
  if (from > to) throw new CallError(-32602, 'invalid block range params')
  const { rangeBound } = skies.weather
  if (to - from >= rangeBound) throw new CallError(-32602, `block range greater than ${rangeBound} max`)
  const last = Math.min(to, chain.head.number)
  if (last > 0 && Math.max(from, 1) < chain.oldest) throw new CallError(-32000, 'pruned history unavailable')
  const numbers = Array.from({ length: last - from + 1 }, (_, at) => from + at)
  return numbers.flatMap((number) => chain.block(number)?.logs ?? [])
}

const bytesOf = (code: bigint) => (code === 0n ? '0x' : quantity(code))
