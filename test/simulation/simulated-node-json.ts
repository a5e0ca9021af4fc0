import type { DevnetBlock } from '../../src/devnet/chain/chain-types.ts'
import * as devnet from '../../src/devnet/node/block-json.ts'
import { type Hex, quantity, ZERO_WORD } from '../../src/lib/hex.ts'
import type { SeededRandom } from './seeded-random.ts'
import { GAS_PER_TX, hex } from './simulated-transactions.ts'
import type { NodeTrait } from './simulation-settings.ts'

/** The JSON that a node sends. */

const YEAR_S = 31_536_000

export type JsonObject = Readonly<Record<string, unknown>>

/** A block's time as a false message gives it: about a year later than it is, each time another. */
export const falseTime = (timestamp: unknown, random: SeededRandom): Hex =>
  quantity(Number(timestamp) + YEAR_S + random.int(0, YEAR_S))

const headers = new WeakMap<DevnetBlock, JsonObject>()

/** A block contains more than the relay's logs: at least the system's own transaction. */
export function headerJson(block: DevnetBlock): JsonObject {
  const { number, transactions } = block
  const header = headers.get(block) ?? {
    ...devnet.headerJson(block),
    gasUsed: quantity(GAS_PER_TX * (transactions.length + 1)),
    transactions: [hex(64, 0x5e_0000_0000 + number), ...transactions.map(({ hash }) => hash)],
  }
  headers.set(block, header)
  return header
}

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
