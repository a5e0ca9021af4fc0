import type { z } from 'zod'
import { type Hex, quantity, toLowerHex, toWord } from '../../lib/hex.ts'
import { type AnyBlock, type Method, methods, type Params } from '../../protocol/json-rpc-methods.ts'
import { codeKey, etherKey, nonceKey, storageKey } from '../chain/account-state.ts'
import { blockJson, receiptsJson } from './block-json.ts'
import { answerEthCall, CallParams } from './eth-call.ts'
import { readLogs } from './eth-get-logs.ts'
import { CallError, type RpcHandler } from './json-rpc.ts'
import { type DevnetNode, findBlock, resolveBlockHash, resolveStateBlock } from './node-blocks.ts'

/** Makes a function that checks the parameters of a method and answers it. It throws a `CallError` if there is no result. */
export const createMethods = (node: DevnetNode): RpcHandler => {
  const { replica, faultController } = node
  const readValue = (keyOf: (account: Hex) => string, address: string, blockId: AnyBlock) =>
    replica.chain.valueAt(keyOf(toLowerHex(address)), resolveStateBlock(node, resolveBlockHash(node, blockId)))

  const handlers: { readonly [Name in Method]: (params: Params<Name>) => unknown } = {
    eth_chainId: () => quantity(faultController.faults.chainId ?? node.chainId),
    eth_blockNumber: () => quantity(replica.chain.head.number),
    eth_getBlockByNumber: ([blockId, withTransactions]) => readBlock(node, blockId, withTransactions),
    eth_getLogs: ([filter]) => readLogs(node, filter),
    eth_getBlockReceipts: ([blockId]) => readReceipts(node, blockId),
    eth_getStorageAt: ([address, slot, blockId]) =>
      toWord(readValue((account) => storageKey(account, toWord(BigInt(slot))), address, blockId)),
    eth_getTransactionCount: (params) => quantity(readValue(nonceKey, ...params)),
    eth_getCode: (params) => codeToBytes(readValue(codeKey, ...params)),
    eth_getBalance: (params) => quantity(readValue(etherKey, ...params)),
  }
  const callMethod = <Name extends Method>(name: Name, params: unknown) =>
    handlers[name](parseParams(methods[name].params, params) as Params<Name>)
  return (method, params) => {
    // The interface document does not have `eth_call`, so `methods` does not contain it.
    if (method === 'eth_call') return answerEthCall(node, parseParams(CallParams, params))
    if (!isMethod(method)) throw new CallError(-32601, `the method ${method} does not exist`)
    return callMethod(method, params)
  }
}

const isMethod = (name: string): name is Method => Object.hasOwn(methods, name)

/** Parses parameters by a schema. Throws -32602 if they are invalid. */
export const parseParams = <S extends z.ZodType>(schema: S, params: unknown): z.infer<S> => {
  const parsed = schema.safeParse(params)
  if (parsed.success) return parsed.data
  const [issue] = parsed.error.issues
  throw new CallError(-32602, `invalid params: ${issue?.path.join('.') ?? ''} ${issue?.message ?? ''}`)
}

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
