import type { z } from 'zod'
import { type Hex, quantity, toLowerHex, toWord } from '../../lib/hex.ts'
import { type AnyBlock, type Method, methods } from '../../protocol/json-rpc-methods.ts'
import { codeKey, etherKey, nonceKey, storageKey } from '../chain/account-state.ts'
import { blockJson, receiptsJson } from './block-json.ts'
import { answerEthCall, CallParams } from './eth-call.ts'
import { readLogs } from './eth-get-logs.ts'
import { CallError, type RpcHandler } from './json-rpc.ts'
import { type DevnetNode, findBlock, resolveBlockHash, resolveStateBlock } from './node.ts'

/** Dispatches a method with unchecked parameters. Throws a `CallError` where there is no result. */
export const createMethods = (node: DevnetNode): RpcHandler => {
  const { replica, faultController } = node
  const readAccountValue =
    (keyOf: (address: Hex) => string) =>
    ([address, blockId]: readonly [string, AnyBlock]) =>
      replica.valueAt(keyOf(toLowerHex(address)), resolveStateBlock(node, resolveBlockHash(node, blockId)))

  const handlers: Record<AnsweredMethod, (params: unknown) => unknown> = {
    eth_chainId: defineMethod(methods.eth_chainId.params, () => quantity(faultController.faults.chainId ?? node.chainId)),
    eth_blockNumber: defineMethod(methods.eth_blockNumber.params, () => quantity(replica.head.number)),
    eth_getBlockByNumber: defineMethod(methods.eth_getBlockByNumber.params, ([blockId, withTransactions]) =>
      readBlock(node, blockId, withTransactions),
    ),
    eth_getLogs: defineMethod(methods.eth_getLogs.params, ([filter]) => readLogs(node, filter)),
    eth_getBlockReceipts: defineMethod(methods.eth_getBlockReceipts.params, ([blockId]) => readReceipts(node, blockId)),
    eth_getStorageAt: defineMethod(methods.eth_getStorageAt.params, ([address, slot, blockId]) =>
      toWord(
        replica.valueAt(
          storageKey(toLowerHex(address), toWord(BigInt(slot))),
          resolveStateBlock(node, resolveBlockHash(node, blockId)),
        ),
      ),
    ),
    eth_getTransactionCount: defineMethod(methods.eth_getTransactionCount.params, (params) =>
      quantity(readAccountValue(nonceKey)(params)),
    ),
    eth_getCode: defineMethod(methods.eth_getCode.params, (params) => codeToBytes(readAccountValue(codeKey)(params))),
    eth_getBalance: defineMethod(methods.eth_getBalance.params, (params) => quantity(readAccountValue(etherKey)(params))),
    eth_call: defineMethod(CallParams, (params) => answerEthCall(node, params)),
  }
  return (method, params) => {
    if (!isAnsweredMethod(method)) throw new CallError(-32601, `the method ${method} does not exist`)
    return handlers[method](params)
  }
}

/** The methods of the interface document, and `eth_call`, which is not in it. */
type AnsweredMethod = Method | 'eth_call'

const isAnsweredMethod = (name: string): name is AnsweredMethod => name === 'eth_call' || Object.hasOwn(methods, name)

/** Parses parameters by a schema; -32602 if they are invalid. */
export const parseParams = <S extends z.ZodType>(schema: S, params: unknown): z.infer<S> => {
  const parsed = schema.safeParse(params)
  if (parsed.success) return parsed.data
  const [issue] = parsed.error.issues
  throw new CallError(-32602, `invalid params: ${issue?.path.join('.') ?? ''} ${issue?.message ?? ''}`)
}

const defineMethod =
  <S extends z.ZodType>(schema: S, handle: (params: z.infer<S>) => unknown) =>
  (params: unknown) =>
    handle(parseParams(schema, params))

const readBlock = (node: DevnetNode, blockId: string, withTransactions: boolean) => {
  const block = findBlock(node, blockId)
  if (!block) return null
  const json = blockJson(block, withTransactions, node.chainId)
  const isPreconfirmed = blockId === 'pending' && node.replica.preconfirmed !== undefined
  const isNumberless = isPreconfirmed && node.faultController.faults.pending === 'numberless'
  return isNumberless ? { ...json, number: null, hash: null } : json
}

const readReceipts = (node: DevnetNode, blockId: AnyBlock) => {
  if (!node.receipts) throw new CallError(-32601, 'rpc method is not whitelisted', 403)
  const block = findBlock(node, resolveBlockHash(node, blockId))
  return block ? receiptsJson(block) : null
}

const codeToBytes = (code: bigint) => (code === 0n ? '0x' : quantity(code))
