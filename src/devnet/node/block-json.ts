import { keccak256 } from 'viem/utils'
import { memoized } from '../../lib/bounded-map.ts'
import { type Hex, quantity, ZERO_WORD } from '../../lib/hex.ts'
import { GAS_PRICE } from '../chain/chain.ts'
import type { DevnetBlock, DevnetLog, DevnetTransaction } from '../chain/chain-types.ts'
import { digest } from '../chain/hashes.ts'

const BASE_FEE = 5_000_000n
const GAS_LIMIT = 400_000_000
const SEQUENCER: Hex = '0x4200000000000000000000000000000000000011'
const NO_UNCLES: Hex = '0x1dcc4de8dec75d7aab85b567b6ccd41ad312451b948a7413f0a142fd40d49347'
const NO_REQUESTS: Hex = '0xe3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855'

export const headerJson = (block: DevnetBlock) => ({
  number: quantity(block.number),
  hash: block.hash,
  parentHash: block.parentHash,
  nonce: '0x0000000000000000',
  sha3Uncles: NO_UNCLES,
  logsBloom: bloomOf(block.logs),
  transactionsRoot: rootOf(block, 'transactions'),
  // A pending block has no state root.
  stateRoot: block.hash === ZERO_WORD ? ZERO_WORD : rootOf(block, 'state'),
  receiptsRoot: rootOf(block, 'receipts'),
  miner: SEQUENCER,
  difficulty: '0x0',
  mixHash: digest('mix', block.number),
  extraData: '0x00000000fa00000006',
  gasLimit: quantity(GAS_LIMIT),
  gasUsed: quantity(block.transactions.reduce((sum, { gasUsed }) => sum + gasUsed, 0)),
  timestamp: quantity(block.timestamp),
  ...(block.timestampMs !== undefined && { timestampMs: quantity(block.timestampMs) }),
  withdrawalsRoot: digest('withdrawals'),
  baseFeePerGas: quantity(BASE_FEE),
  // On this chain the field counts the data size of the block's transactions.
  blobGasUsed: quantity(dataSizeOf(block)),
  excessBlobGas: '0x0',
  parentBeaconBlockRoot: digest('beacon', block.number),
  requestsHash: NO_REQUESTS,
})

export const blockJson = (block: DevnetBlock, withTransactions: boolean, chainId: number) => ({
  ...headerJson(block),
  size: quantity(600 + dataSizeOf(block)),
  transactions: withTransactions
    ? block.transactions.map((transaction, index) => transactionJson(block, transaction, index, chainId))
    : block.transactions.map(({ hash }) => hash),
  uncles: [],
  withdrawals: [],
})

export const receiptsJson = (block: DevnetBlock) => {
  const logsByTransaction = Map.groupBy(block.logs, (log) => log.transactionHash)
  let cumulativeGasUsed = 0
  return block.transactions.map((transaction, index) => {
    const transactionLogs = logsByTransaction.get(transaction.hash) ?? []
    cumulativeGasUsed += transaction.gasUsed
    return {
      type: '0x2',
      status: '0x1',
      transactionHash: transaction.hash,
      transactionIndex: quantity(index),
      blockHash: block.hash,
      blockNumber: quantity(block.number),
      from: transaction.from,
      to: transaction.to,
      contractAddress: null,
      gasUsed: quantity(transaction.gasUsed),
      cumulativeGasUsed: quantity(cumulativeGasUsed),
      effectiveGasPrice: quantity(GAS_PRICE),
      logs: transactionLogs,
      logsBloom: bloomOf(transactionLogs),
    }
  })
}

const transactionJson = (block: DevnetBlock, transaction: DevnetTransaction, index: number, chainId: number) => ({
  type: '0x2',
  chainId: quantity(chainId),
  hash: transaction.hash,
  nonce: quantity(transaction.nonce),
  blockHash: block.hash,
  blockNumber: quantity(block.number),
  transactionIndex: quantity(index),
  from: transaction.from,
  to: transaction.to,
  value: '0x0',
  input: transaction.input,
  gas: quantity(transaction.gasUsed * 2),
  gasPrice: quantity(GAS_PRICE),
  maxFeePerGas: quantity(GAS_PRICE * 2n),
  maxPriorityFeePerGas: quantity(GAS_PRICE - BASE_FEE),
  accessList: [],
  r: quantity(BigInt(digest('r', transaction.hash))),
  s: quantity(BigInt(digest('s', transaction.hash))),
  v: '0x0',
  yParity: '0x0',
})

const rootOf = (block: DevnetBlock, rootName: string): Hex =>
  digest(rootName, block.number, ...block.transactions.map(({ hash }) => hash))

const dataSizeOf = (block: DevnetBlock) => block.transactions.reduce((sum, { input }) => sum + 110 + input.length / 2, 0)

const BLOOM_BITS_BOUND = 10_000

/** Returns the three bits, of the 2,048 in a bloom filter, that an address or topic sets. */
const bloomBitsOf = memoized(BLOOM_BITS_BOUND, (bytes: Hex): readonly number[] => {
  const hash = keccak256(bytes)
  return [0, 4, 8].map((at) => Number.parseInt(hash.slice(2 + at, 6 + at), 16) & 2_047)
})

const bloomOf = (logs: readonly DevnetLog[]): Hex => {
  const bloom = Buffer.alloc(256)
  for (const { address, topics } of logs)
    for (const bit of [address, ...topics].flatMap((bytes) => bloomBitsOf(bytes)))
      bloom[255 - (bit >> 3)] = (bloom[255 - (bit >> 3)] ?? 0) | (1 << (bit & 7))
  return `0x${bloom.toString('hex')}`
}
