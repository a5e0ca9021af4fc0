import { z } from 'zod'
import type { RpcCall } from './rpc-scenarios.ts'

/**
 * What the results of the methods must be, as JSON Schemas. The rules are those of the Ethereum execution API
 * (github.com/ethereum/execution-apis, public domain under CC0 1.0), said again here field by field: which there are,
 * which must be there, and how each is written. Each place that goes beyond it, or asks for more, says so.
 */
type Schema = z.core.JSONSchema.JSONSchema

const stringMatching = (pattern: string): Schema => ({ type: 'string', pattern })
const fixedBytes = (count: number): Schema => stringMatching(`^0x[0-9a-f]{${2 * count}}$`)

const uint = stringMatching('^0x(0|[1-9a-f][0-9a-f]*)$')
const bytes = stringMatching('^0x[0-9a-f]*$')
const byte = stringMatching('^0x[0-9a-fA-F]{1,2}$')
const address = stringMatching('^0x[0-9a-fA-F]{40}$')
const hash = fixedBytes(32)
const bloom = fixedBytes(256)

const NULL_SCHEMA: Schema = { type: 'null' }
const nullable = (schema: Schema): Schema => ({ oneOf: [NULL_SCHEMA, schema] })
const listOf = (items: Schema): Schema => ({ type: 'array', items })
const exactly = (value: string): Schema => ({ type: 'string', const: value })

/** An object of these fields and no others; one whose name ends in a question mark may be missing. */
const strictObject = (fields: Readonly<Record<string, Schema>>): Schema => ({
  type: 'object',
  additionalProperties: false,
  required: Object.keys(fields).filter((name) => !name.endsWith('?')),
  properties: Object.fromEntries(Object.entries(fields).map(([name, schema]) => [name.replace('?', ''), schema])),
})

/** The chain's document has all of these in every log; the execution API demands no more than the transaction. */
const log = strictObject({
  ...{ address, topics: { ...listOf(hash), maxItems: 4 }, data: bytes, removed: { type: 'boolean' } },
  ...{ blockNumber: uint, blockHash: hash, transactionHash: hash, transactionIndex: uint, logIndex: uint },
  // Named by the chain's document as its own extension; newer editions of the execution API have it too.
  blockTimestamp: uint,
})

/** `more`: what one node adds to its receipts. */
const receipt = (extraFields: ExtraFields) =>
  strictObject({
    ...{ transactionHash: hash, transactionIndex: uint, blockHash: hash, blockNumber: uint, from: address },
    ...{ cumulativeGasUsed: uint, gasUsed: uint, effectiveGasPrice: uint, logs: listOf(log), logsBloom: bloom },
    ...{ 'to?': nullable(address), 'contractAddress?': nullable(address), 'root?': hash },
    ...{ 'blobGasUsed?': uint, 'blobGasPrice?': uint },
    // Both are named by the chain's document, so they must be there.
    ...{ type: byte, status: uint },
    ...extraFields,
  })

const accessList = listOf(strictObject({ address, storageKeys: listOf(hash) }))
const authorization = strictObject({ chainId: uint, nonce: uint, address, yParity: byte, r: uint, s: uint })

/** Where a transaction stands, what all have, and how it is signed. */
const commonTransactionFields = {
  ...{ hash, from: address, blockHash: hash, blockNumber: uint, transactionIndex: uint, 'blockTimestamp?': uint },
  ...{ nonce: uint, gas: uint, value: uint, input: bytes, r: uint, s: uint },
}
const feeFields = { maxFeePerGas: uint, maxPriorityFeePerGas: uint }
const typedTransactionFields = { ...commonTransactionFields, chainId: uint, accessList, yParity: uint, 'v?': uint }

const transaction: Schema = {
  anyOf: [
    strictObject({
      type: exactly('0x0'),
      ...commonTransactionFields,
      'to?': nullable(address),
      gasPrice: uint,
      v: uint,
      'chainId?': uint,
    }),
    strictObject({ type: exactly('0x1'), ...typedTransactionFields, 'to?': nullable(address), gasPrice: uint }),
    strictObject({
      type: exactly('0x2'),
      ...typedTransactionFields,
      ...feeFields,
      'to?': nullable(address),
      gasPrice: uint,
    }),
    strictObject({
      ...{ type: exactly('0x3'), ...typedTransactionFields, ...feeFields, to: address, 'gasPrice?': uint },
      ...{ maxFeePerBlobGas: uint, blobVersionedHashes: listOf(hash) },
    }),
    strictObject({
      ...{ type: exactly('0x4'), ...typedTransactionFields, ...feeFields, to: address, 'gasPrice?': uint },
      authorizationList: listOf(authorization),
    }),
  ],
}

const withdrawal = strictObject({ index: uint, validatorIndex: uint, address, amount: uint })

/** Whether a block is still being built, and whether its transactions are given whole. */
type BlockForm = { readonly pending?: boolean; readonly full?: boolean }

const block = ({ pending = false, full = false }: BlockForm) =>
  strictObject({
    // The chain's document says that both may be null while the block is being built; the execution API does not.
    ...{ number: pending ? nullable(uint) : uint, hash: pending ? nullable(hash) : hash },
    ...{ parentHash: hash, sha3Uncles: hash, miner: address, stateRoot: hash, transactionsRoot: hash },
    ...{ receiptsRoot: hash, logsBloom: bloom, gasLimit: uint, gasUsed: uint, timestamp: uint, extraData: bytes },
    ...{ mixHash: hash, nonce: fixedBytes(8), size: uint, uncles: listOf(hash), 'totalDifficulty?': uint },
    transactions: listOf(full ? transaction : hash),
    // These the chain's document has in every block; the execution API leaves them to the fork.
    ...{ difficulty: uint, baseFeePerGas: uint, withdrawalsRoot: hash, withdrawals: listOf(withdrawal) },
    ...{ blobGasUsed: uint, excessBlobGas: uint, parentBeaconBlockRoot: hash },
    // Named by the chain's document, and not by every edition of the execution API.
    requestsHash: hash,
  })

/** What a node adds of its own to its receipts. */
type ExtraFields = Readonly<Record<string, Schema>>

/** The schema of what a call is answered with. */
function resultSchema({ method, params }: RpcCall, extraReceiptFields: ExtraFields): Schema {
  switch (method) {
    case 'eth_getBlockByNumber':
      return nullable(block({ pending: params[0] === 'pending', full: params[1] === true }))
    case 'eth_getLogs':
      return listOf(log)
    case 'eth_getBlockReceipts':
      return nullable(listOf(receipt(extraReceiptFields)))
    // Bytes to the execution API; to the chain's document a word.
    case 'eth_getStorageAt':
      return hash
    case 'eth_getCode':
      return bytes
    case 'eth_getTransactionCount':
    case 'eth_getBalance':
    case 'eth_chainId':
    case 'eth_blockNumber':
      return uint
    default:
      throw new Error(`nobody wrote down what ${method} answers`)
  }
}

/** Says what speaks against a result of a call; null where it is as its schema has it. */
export function resultChecker(call: RpcCall, extraReceiptFields: ExtraFields = {}): (result: unknown) => string | null {
  const schema = z.fromJSONSchema(resultSchema(call, extraReceiptFields))
  return (result) => {
    const parsed = schema.safeParse(result)
    return parsed.success ? null : JSON.stringify(parsed.error.issues)
  }
}
