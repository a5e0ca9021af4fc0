import type { Hex } from '../../src/lib/hex.ts'
import type { SeededRandom } from './seeded-random.ts'
import { hex, type PendingBlock, type PlacedLog, type SimulatedBlock } from './simulated-block.ts'
import type { NodeTrait } from './simulation-settings.ts'

/** The JSON that a node sends. */

const quantity = (value: number): Hex => `0x${value.toString(16)}`
const ZERO_WORD = hex(64, 0)
const YEAR_S = 31_536_000

export type JsonObject = Readonly<Record<string, unknown>>

/** A block's time as a false message gives it: about a year later than it is, each time another. */
export const falseTime = (timestamp: unknown, random: SeededRandom): Hex =>
  quantity(Number(timestamp) + YEAR_S + random.int(0, YEAR_S))

/** A log on the wire. While it is pre-confirmed it has no block hash, which nodes write as zeros. */
export const logJson = (log: PlacedLog, blockHash: Hex = ZERO_WORD, removed = false): JsonObject => ({
  address: log.content.address,
  topics: log.content.topics,
  data: log.content.data,
  blockHash,
  blockNumber: quantity(log.block),
  blockTimestamp: quantity(log.timestamp),
  transactionHash: log.tx,
  transactionIndex: quantity(log.txIndex),
  logIndex: quantity(log.logIndex),
  removed,
})

export const headerJson = ({ number, hash, parentHash, timestamp, txs }: SimulatedBlock): JsonObject => ({
  number: quantity(number),
  hash,
  parentHash,
  timestamp: quantity(timestamp),
  gasUsed: quantity(21_000 * (txs.length + 1)),
  // A block contains more than the relay's logs: at least the system's own transaction.
  transactions: [hex(64, 0x5e_0000_0000 + number), ...txs.map((tx) => tx.hash)],
})

/** The header of the pending block, as far as it is shown. */
export const pendingHeaderJson = (
  { number, parentHash, timestamp }: PendingBlock,
  txs: PendingBlock['txs'],
  hash: Hex = ZERO_WORD,
): JsonObject => ({
  number: quantity(number),
  hash,
  parentHash,
  timestamp: quantity(timestamp),
  gasUsed: quantity(21_000 * (txs.length + 1)),
  transactions: [hex(64, 0x5e_0000_0000 + number), ...txs.map((tx) => tx.hash)],
})

const uppercaseAddress = (address: unknown): string => `0x${String(address).slice(2).toUpperCase()}`
const PARTIAL_HASH = hex(64, 0xf1a5_0000n)

/** The same log as a node with these traits writes it. */
export function applyNodeTraits(traits: readonly NodeTrait[], log: JsonObject): JsonObject {
  const has = (trait: NodeTrait) => traits.includes(trait)
  const { address, blockHash, blockTimestamp, ...rest } = log
  const pending = blockHash === ZERO_WORD
  const hash = !pending ? blockHash : has('hashNull') ? null : has('hashPartial') ? PARTIAL_HASH : blockHash
  return {
    address: has('checksums') ? uppercaseAddress(address) : address,
    ...rest,
    ...(pending && has('hashMissing') ? {} : { blockHash: hash }),
    ...(pending && has('timeless') ? {} : { blockTimestamp }),
  }
}
