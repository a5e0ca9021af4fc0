import { z } from 'zod'
import type { RpcCall } from './rpc-scenarios.ts'

/**
 * JSON Schemas of the methods' results. The rules are those of the Ethereum execution API
 * (github.com/ethereum/execution-apis, public domain under CC0 1.0), restated field by field: which fields exist, which
 * are required, and their format. A comment marks each place that differs from it.
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

/** An object with exactly these fields. A name that ends in a question mark is optional. */
const strictObject = (fields: Readonly<Record<string, Schema>>): Schema => ({
  type: 'object',
  additionalProperties: false,
  required: Object.keys(fields).filter((name) => !name.endsWith('?')),
  properties: Object.fromEntries(Object.entries(fields).map(([name, schema]) => [name.replace('?', ''), schema])),
})

/** The chain's documentation has all of these in every log; the execution API requires only the transaction. */
const log = strictObject({
  ...{ address, topics: { ...listOf(hash), maxItems: 4 }, data: bytes, removed: { type: 'boolean' } },
  ...{ blockNumber: uint, blockHash: hash, transactionHash: hash, transactionIndex: uint, logIndex: uint },
  // The chain's documentation calls this its own extension; newer editions of the execution API have it too.
  blockTimestamp: uint,
})

/** `more`: what one node adds to its receipts. */
const receipt = (extraFields: ExtraFields) =>
  strictObject({
    ...{ transactionHash: hash, transactionIndex: uint, blockHash: hash, blockNumber: uint, from: address },
    ...{ cumulativeGasUsed: uint, gasUsed: uint, effectiveGasPrice: uint, logs: listOf(log), logsBloom: bloom },
    ...{ 'to?': nullable(address), 'contractAddress?': nullable(address), 'root?': hash },
    ...{ 'blobGasUsed?': uint, 'blobGasPrice?': uint },
    // The chain's documentation has both, so they are required.
    ...{ type: byte, status: uint },
    ...extraFields,
  })

const accessList = listOf(strictObject({ address, storageKeys: listOf(hash) }))
const authorization = strictObject({ chainId: uint, nonce: uint, address, yParity: byte, r: uint, s: uint })

/** A transaction's place in a block, the common fields, and its signature. */
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
    strictObject({ type: exactly('0x2'), ...typedTransactionFields, ...feeFields, 'to?': nullable(address), gasPrice: uint }),
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

/** Whether a block is pending, and whether its transactions are full objects. */
type BlockForm = { readonly pending?: boolean; readonly full?: boolean }

const block = ({ pending = false, full = false }: BlockForm) =>
  strictObject({
    // In the chain's documentation both may be null in the pending block; the execution API does not allow it.
    ...{ number: pending ? nullable(uint) : uint, hash: pending ? nullable(hash) : hash },
    ...{ parentHash: hash, sha3Uncles: hash, miner: address, stateRoot: hash, transactionsRoot: hash },
    ...{ receiptsRoot: hash, logsBloom: bloom, gasLimit: uint, gasUsed: uint, timestamp: uint, extraData: bytes },
    ...{ mixHash: hash, nonce: fixedBytes(8), size: uint, uncles: listOf(hash), 'totalDifficulty?': uint },
    transactions: listOf(full ? transaction : hash),
    // The chain's documentation has these in every block; in the execution API they depend on the fork.
    ...{ difficulty: uint, baseFeePerGas: uint, withdrawalsRoot: hash, withdrawals: listOf(withdrawal) },
    ...{ blobGasUsed: uint, excessBlobGas: uint, parentBeaconBlockRoot: hash },
    // In the chain's documentation, and not in every edition of the execution API.
    requestsHash: hash,
  })

/** Fields that a node adds to its receipts. */
type ExtraFields = Readonly<Record<string, Schema>>

/** The schema of a call's result. */
function resultSchema({ method, params }: RpcCall, extraReceiptFields: ExtraFields): Schema {
  switch (method) {
    case 'eth_getBlockByNumber':
      return nullable(block({ pending: params[0] === 'pending', full: params[1] === true }))
    case 'eth_getLogs':
      return listOf(log)
    case 'eth_getBlockReceipts':
      return nullable(listOf(receipt(extraReceiptFields)))
    // Bytes in the execution API; a 32-byte word in the chain's documentation.
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
      throw new Error(`no schema for the result of ${method}`)
  }
}

/** The schema error in a call's result; null where it fits. */
export function resultChecker(call: RpcCall, extraReceiptFields: ExtraFields = {}): (result: unknown) => string | null {
  const schema = z.fromJSONSchema(resultSchema(call, extraReceiptFields))
  return (result) => {
    const parsed = schema.safeParse(result)
    return parsed.success ? null : JSON.stringify(parsed.error.issues)
  }
}
