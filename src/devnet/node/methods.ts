import type { z } from 'zod'
import { type AnyBlock, type Method, methods } from '../../chain/rpc/methods.ts'
import { lower, quantity, word } from '../chain/hex.ts'
import { codeOf, etherOf, nonceOf, slotOf } from '../chain/state.ts'
import { answerCall, CallParams } from './eth-call.ts'
import { readLogs } from './eth-get-logs.ts'
import { blockOf, receiptsOf } from './json.ts'
import { type Call, CallError } from './json-rpc.ts'
import { blockAt, type Node, named, stateAt } from './node.ts'

/** The methods, each from unchecked parameters to its result; a `CallError` where there is none. */
export const createRpc = (node: Node): Call => {
  const { replica, skies } = node
  const held =
    (keyOf: (address: `0x${string}`) => string) =>
    ([address, at]: readonly [string, AnyBlock]) =>
      replica.held(keyOf(lower(address)), stateAt(node, named(node, at)))

  const rows: Record<Answered, (params: unknown) => unknown> = {
    eth_chainId: row(methods.eth_chainId.params, () => quantity(skies.weather.chainId ?? node.chainId)),
    eth_blockNumber: row(methods.eth_blockNumber.params, () => quantity(replica.head.number)),
    eth_getBlockByNumber: row(methods.eth_getBlockByNumber.params, ([at, full]) => readBlock(node, at, full)),
    eth_getLogs: row(methods.eth_getLogs.params, ([filter]) => readLogs(node, filter)),
    eth_getBlockReceipts: row(methods.eth_getBlockReceipts.params, ([at]) => readReceipts(node, at)),
    eth_getStorageAt: row(methods.eth_getStorageAt.params, ([address, slot, at]) =>
      word(replica.held(slotOf(lower(address), word(BigInt(slot))), stateAt(node, named(node, at)))),
    ),
    eth_getTransactionCount: row(methods.eth_getTransactionCount.params, (params) => quantity(held(nonceOf)(params))),
    eth_getCode: row(methods.eth_getCode.params, (params) => bytesOf(held(codeOf)(params))),
    eth_getBalance: row(methods.eth_getBalance.params, (params) => quantity(held(etherOf)(params))),
    eth_call: row(CallParams, (params) => answerCall(node, params)),
  }
  return (method, params) => {
    if (!isAnswered(method)) throw new CallError(-32601, `the method ${method} does not exist`)
    return rows[method](params)
  }
}

/** What is answered: the methods of the interface document, and one beside it. */
type Answered = Method | 'eth_call'

const isAnswered = (name: string): name is Answered => name === 'eth_call' || Object.hasOwn(methods, name)

/** Reads parameters by a schema; -32602 if they do not fit. */
export const checked = <S extends z.ZodType>(schema: S, params: unknown): z.infer<S> => {
  const read = schema.safeParse(params)
  if (read.success) return read.data
  const [issue] = read.error.issues
  throw new CallError(-32602, `invalid params: ${issue?.path.join('.') ?? ''} ${issue?.message ?? ''}`)
}

const row =
  <S extends z.ZodType>(schema: S, answer: (params: z.infer<S>) => unknown) =>
  (params: unknown) =>
    answer(checked(schema, params))

const readBlock = (node: Node, at: string, full: boolean) => {
  const block = blockAt(node, at)
  if (!block) return null
  const answer = blockOf(block, full, node.chainId)
  const preconfirmed = at === 'pending' && node.replica.preconfirmed !== undefined
  const numberless = preconfirmed && node.skies.weather.pending === 'numberless'
  return numberless ? { ...answer, number: null, hash: null } : answer
}

const readReceipts = (node: Node, at: AnyBlock) => {
  if (!node.receipts) throw new CallError(-32601, 'rpc method is not whitelisted', 403)
  const block = blockAt(node, named(node, at))
  return block ? receiptsOf(block) : null
}

const bytesOf = (code: bigint) => (code === 0n ? '0x' : quantity(code))
