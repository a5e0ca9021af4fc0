import type { Hex } from '../../../../src/lib/hex.ts'

/** The JSON of a node. */

export const apple: Hex = `0x${'aa'.repeat(20)}`
export const tesla: Hex = `0x${'7e'.repeat(20)}`
export const alice: Hex = `0x${'a1'.repeat(20)}`
export const bob: Hex = `0x${'b0'.repeat(20)}`

export const TRANSFER: Hex = '0xddf252ad1be2c89b69c2b068fc378daa952ba7f163c4a11628f55a4df523b3ef'
export const ZERO_WORD: Hex = `0x${'0'.repeat(64)}`

export const word = (value: number | bigint | Hex): Hex =>
  `0x${(typeof value === 'string' ? value.slice(2) : value.toString(16)).padStart(64, '0')}`
/** Data of these words. */
export const words = (...values: readonly (number | bigint | Hex)[]): Hex =>
  `0x${values.map((value) => word(value).slice(2)).join('')}`
/** Data of these strings: first all offsets, then each length with its bytes. */
export const stringData = (...strings: readonly string[]): Hex => {
  const tails = strings.map((text) => {
    const bytes = Buffer.from(text)
    return words(bytes.length).slice(2) + bytes.toString('hex').padEnd(Math.ceil(bytes.length / 32) * 64, '0')
  })
  const offsets = tails.map((_, index) => strings.length * 32 + tails.slice(0, index).join('').length / 2)
  return `${words(...offsets)}${tails.join('')}`
}
const quantity = (value: number): Hex => `0x${value.toString(16)}`

/** The hash of a sealed block, derived from its number. */
export const blockHash = (block: number): Hex => word(0xb10c_0000_0000 + block)
export const txHash = (block: number, index = 0): Hex => word(0x7a00_0000_0000 + block * 1_000 + index)
/** Two seconds per ten blocks, as on the real chain. */
export const timestampOf = (block: number): number => 1_795_000_000 + Math.floor(block / 5)

export type NodeLog = Record<string, unknown>

type NodeLogFields = {
  readonly block: number
  /** The log index. Each log has its own transaction. */
  readonly index?: number
  readonly address?: Hex
  readonly raw?: bigint
  readonly from?: Hex
  readonly to?: Hex
}

/** A pre-confirmed transfer. Nodes send zeros for the missing block hash. */
export const pendingLog = ({ block, index = 0, address = apple, raw = 1n, from = alice, to = bob }: NodeLogFields): NodeLog => ({
  address,
  topics: [TRANSFER, word(from), word(to)],
  data: word(raw),
  blockHash: ZERO_WORD,
  blockNumber: quantity(block),
  blockTimestamp: quantity(timestampOf(block)),
  transactionHash: txHash(block, index),
  transactionIndex: quantity(index),
  logIndex: quantity(index),
  removed: false,
})

export const sealedLog = (fields: NodeLogFields): NodeLog => ({ ...pendingLog(fields), blockHash: blockHash(fields.block) })

/** The key of such a log. */
export const keyOf = ({ block, index = 0 }: { block: number; index?: number }): string =>
  `${block}-${txHash(block, index)}-${index}`

/** A header. A block being built has no hash. */
export const header = (block: number, { sealed = true, transactions = 1 } = {}): Record<string, unknown> => ({
  number: quantity(block),
  hash: sealed ? blockHash(block) : ZERO_WORD,
  parentHash: blockHash(block - 1),
  timestamp: quantity(timestampOf(block)),
  gasUsed: quantity(21_000 * transactions),
  transactions: Array.from({ length: transactions }, (_, index) => txHash(block, index)),
})
