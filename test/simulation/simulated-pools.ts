import { type ReadState, type StateWrite, writeValue } from '../../src/devnet/chain/account-state.ts'
import { type Hex, toWord } from '../../src/lib/hex.ts'
import type { Pool } from '../../src/relay/chain/pools/pool.ts'
import { randomHolder, TRANSFER } from './random-transactions.ts'
import type { SeededRandom } from './seeded-random.ts'
import { laterToken, listedTokens, type SimulatedToken } from './simulated-tokens.ts'
import { emit, hex, type Step } from './simulated-transactions.ts'
import type { Settings } from './simulation-settings.ts'

/** `tradesOthers`: its tokens are not those that the settings name. */
export type SimulatedPool = Pool & { readonly fee: number; readonly tradesOthers: boolean }

export const SWAP: Hex = '0xc42079f94a6350d7e6235f29174924f928cc2ac818eb64fed8004e115fbcca67'
const Q96 = 2n ** 96n
/** The least and the greatest root of a price. */
export const ROOT_BOUNDS: readonly [bigint, bigint] = [4295128739n, 1461446703485210103287273052203988822378723970342n]
const LIQUIDITY = 10n ** 18n

// One address is below those of the tokens, so it is the first of its pools. The other one is above them.
const dollars = { symbol: 'USDC', address: `0xa0${'0'.repeat(38)}`, decimals: 18 } as const
const cents = { symbol: 'USDT', address: `0xc0${'0'.repeat(38)}`, decimals: 6 } as const

const [apple, tesla, nvidia] = listedTokens as readonly [SimulatedToken, SimulatedToken, SimulatedToken]
const makePool = (
  nth: number,
  { address }: SimulatedToken,
  kind: SimulatedPool['kind'],
  currency: SimulatedPool['currency'],
  tradesOthers = false,
): SimulatedPool => ({
  ...{ token: address, kind, id: hex(40, 0xb3n * 2n ** 152n + BigInt(nth)), manager: null, currency, fee: 3_000, tradesOthers },
})

const simulatedPools = [
  makePool(1, apple, 'uniswap_v3', cents),
  makePool(2, tesla, 'slipstream', dollars),
  makePool(3, nvidia, 'uniswap_v3', dollars),
  makePool(4, laterToken, 'uniswap_v3', cents),
  makePool(5, apple, 'uniswap_v3', dollars, true),
] as const
const poolsById = new Map<string, SimulatedPool>(simulatedPools.map((pool) => [pool.id, pool]))
export const poolAt = (id: string): SimulatedPool | undefined => poolsById.get(id)

/** The pools that the settings of the relay name in its nth run. */
export function poolsOfRun({ pools }: Settings, run: number): readonly SimulatedPool[] {
  if (!pools) return []
  return pools === 'same' ? simulatedPools : simulatedPools.filter((_, nth) => nth !== run % simulatedPools.length)
}

const rootKey = (pool: SimulatedPool) => `root ${pool.id}`
const rootWrite = (pool: SimulatedPool, root: bigint): StateWrite => writeValue(rootKey(pool), root)
const isTokenFirst = ({ token, currency }: SimulatedPool): boolean => token < currency.address

/** What the contract of a pool answers. */
export function answerPoolCall(pool: SimulatedPool, data: Hex, read: ReadState): Hex {
  const tokens = isTokenFirst(pool) ? [pool.token, pool.currency.address] : [pool.currency.address, pool.token]
  const [token0, token1] = pool.tradesOthers ? tokens.toReversed() : tokens
  const answers: Readonly<Record<string, readonly (bigint | Hex)[]>> = {
    '0x3850c7bd': [rootIn(pool, read), 0n, 0n, 0n, 0n, 0n, 1n],
    '0x1a686502': [LIQUIDITY],
    '0x0dfe1681': [token0 ?? 0n],
    '0xd21220a7': [token1 ?? 0n],
    '0xddca3f43': [BigInt(pool.fee)],
  }
  return words(answers[data] ?? [])
}

/** What is stored in a slot of a Uniswap v3 pool. */
export const poolSlot = (pool: SimulatedPool, slot: Hex, read: ReadState): Hex =>
  toWord(BigInt(slot) === 0n ? rootIn(pool, read) : LIQUIDITY)

const rootIn = (pool: SimulatedPool, read: ReadState): bigint => read(rootKey(pool)) || Q96

const words = (values: readonly (bigint | Hex)[]): Hex =>
  `0x${values.map((value) => toWord(BigInt.asUintN(256, BigInt(value))).slice(2)).join('')}`

/** Swaps of pools, most with the transfer of the token, some in an unknown layout, and other events of pools. */
export function randomSwaps(random: SeededRandom): readonly Step[] {
  const swaps = Array.from({ length: random.int(1, 3) }, () => randomSwap(random))
  const [first] = swaps
  return [...swaps, ...(first && random.chance(10) ? [first] : [])].flat()
}

function randomSwap(random: SeededRandom): readonly Step[] {
  const pool = random.pick<SimulatedPool>(simulatedPools)
  const [sender, recipient] = [randomHolder(random), randomHolder(random)]
  const raw = random.chance(5) ? 0n : BigInt(random.int(1, 2_000_000_000))
  const paid = random.chance(5) ? 0n : BigInt(random.int(1, 2_000_000_000)) * 10n ** BigInt(random.int(0, pool.currency.decimals))
  const isSale = random.chance(50)
  const [token, currency] = isSale ? [raw, -paid] : [-raw, paid]
  const root = random.chance(6) ? random.pick(ROOT_BOUNDS) : (Q96 * BigInt(random.int(1, 1_000_000))) / 1_000n
  const data = words([...(isTokenFirst(pool) ? [token, currency] : [currency, token]), root, LIQUIDITY, BigInt(random.int(-9, 9))])
  const topics: [Hex, Hex, Hex] = [SWAP, sender, recipient]
  const swap = (log: { readonly topics: Hex[]; readonly data: Hex }): Step => ({
    address: pool.id,
    call: () => ({ input: '0x', logs: [{ address: pool.id, ...log }], writes: [rootWrite(pool, root)] }),
  })
  const kind = random.int(0, 99)
  if (kind < 5) return [swap({ topics: [SWAP, sender], data })]
  if (kind < 8) return [swap({ topics, data: `0x${data.slice(66)}` })]
  if (kind < 12) return [swap({ topics: [hex(64, 0xe000), sender], data })]
  if (kind < 40) return [swap({ topics, data })]
  const account = hex(64, BigInt(pool.id))
  const ends = isSale ? [sender, account] : [account, recipient]
  return [emit({ address: pool.token, topics: [TRANSFER, ...(ends as [Hex, Hex])], data: hex(64, raw) }), swap({ topics, data })]
}
