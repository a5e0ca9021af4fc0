import type { Hex } from '../../src/protocol/fields.ts'
import { type Block, type Building, hex, type Placed } from './simulated-block.ts'
import type { Trait } from './simulation-settings.ts'

/** What a node sends, as it sends it. */

const quantity = (value: number): Hex => `0x${value.toString(16)}`
const ZERO_WORD = hex(64, 0)

export type WireLog = Readonly<Record<string, unknown>>

/** A log on the wire: without a block's hash, which nodes write as zeros, while it is pre-confirmed. */
export const wireLog = (log: Placed, blockHash: Hex = ZERO_WORD, removed = false): WireLog => ({
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

export const wireHeader = ({ number, hash, parentHash, timestamp, txs }: Block): WireLog => ({
  number: quantity(number),
  hash,
  parentHash,
  timestamp: quantity(timestamp),
  gasUsed: quantity(21_000 * (txs.length + 1)),
  // A block holds more than what concerns anybody here: the system's own transaction at least.
  transactions: [hex(64, 0x5e_0000_0000 + number), ...txs.map((tx) => tx.hash)],
})

/** The header of a block that is being built, as far as it is shown. */
export const wireBuilding = (
  { number, parentHash, timestamp }: Building,
  txs: Building['txs'],
  hash: Hex = ZERO_WORD,
): WireLog => ({
  number: quantity(number),
  hash,
  parentHash,
  timestamp: quantity(timestamp),
  gasUsed: quantity(21_000 * (txs.length + 1)),
  transactions: [hex(64, 0x5e_0000_0000 + number), ...txs.map((tx) => tx.hash)],
})

const capitals = (address: unknown): string => `0x${String(address).slice(2).toUpperCase()}`
const PARTIAL_HASH = hex(64, 0xf1a5_0000n)

/** The same log as a node with such habits writes it. */
export function habitually(traits: readonly Trait[], log: WireLog): WireLog {
  const has = (trait: Trait) => traits.includes(trait)
  const { address, blockHash, blockTimestamp, ...rest } = log
  const pending = blockHash === ZERO_WORD
  const hash = !pending ? blockHash : has('hashNull') ? null : has('hashPartial') ? PARTIAL_HASH : blockHash
  return {
    address: has('checksums') ? capitals(address) : address,
    ...rest,
    ...(pending && has('hashMissing') ? {} : { blockHash: hash }),
    ...(pending && has('timeless') ? {} : { blockTimestamp }),
  }
}
