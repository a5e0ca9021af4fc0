import { mappingSlot, type ReadState, type StateWrite, writeValue } from '../../src/devnet/chain/account-state.ts'
import type { EmittedLog } from '../../src/devnet/chain/chain-types.ts'
import { type Hex, toWord } from '../../src/lib/hex.ts'
import type { Pool } from '../../src/relay/chain/pools/pool.ts'
import { laterToken, listedTokens, type SimulatedToken } from './simulated-tokens.ts'
import { hex } from './simulated-transactions.ts'
import type { Settings } from './simulation-settings.ts'

/** `tradesOthers`: its tokens are not those that the settings name. */
export type SimulatedPool = Pool & { readonly fee: number; readonly tradesOthers: boolean }

/** The contract that holds every pool of Uniswap v4. */
export const MANAGER: Hex = `0xc4${'0'.repeat(38)}`
export const SWAP: Hex = '0xc42079f94a6350d7e6235f29174924f928cc2ac818eb64fed8004e115fbcca67'
export const MANAGER_SWAP: Hex = '0x40e9cecb9f5f1f1c5b9c97dec2917b7ee92e57ba5563708daca94dd84ad7112f'
export const Q96 = 2n ** 96n
/** The least and the greatest root of a price. */
export const ROOT_BOUNDS: readonly [bigint, bigint] = [4295128739n, 1461446703485210103287273052203988822378723970342n]
export const LIQUIDITY = 10n ** 18n

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
const makeManagerPool = (
  nth: number,
  { address }: SimulatedToken,
  currency: SimulatedPool['currency'],
  fee: number,
): SimulatedPool => ({
  ...{ token: address, kind: 'uniswap_v4', id: hex(64, 0xb4n * 2n ** 248n + BigInt(nth)), manager: MANAGER, currency, fee },
  tradesOthers: false,
})

export const simulatedPools = [
  makePool(1, apple, 'uniswap_v3', cents),
  makePool(2, tesla, 'slipstream', dollars),
  makePool(3, nvidia, 'uniswap_v3', dollars),
  makePool(4, laterToken, 'uniswap_v3', cents),
  makePool(5, apple, 'uniswap_v3', dollars, true),
] as const
/** The first two are of one token: a route through both may move none of it. */
export const managerPools = [
  makeManagerPool(1, tesla, dollars, 3_000),
  makeManagerPool(2, tesla, cents, 500),
  makeManagerPool(3, laterToken, dollars, 45),
] as const

const poolsById = new Map<string, SimulatedPool>([...simulatedPools, ...managerPools].map((pool) => [pool.id, pool]))
export const poolAt = (id: string): SimulatedPool | undefined => poolsById.get(id)

/** The pool that a log may be of, by its contract, or by the id that follows the name of a manager's event. */
export function poolOf({ address, topics }: Pick<EmittedLog, 'address' | 'topics'>): SimulatedPool | undefined {
  const pool = poolAt(address === MANAGER ? (topics[1] ?? '') : address)
  return pool && contractOf(pool) === address ? pool : undefined
}

/** The contract that emits the swaps of a pool. */
export const contractOf = ({ id, manager }: SimulatedPool): Hex => manager ?? id

/** The pools that the settings of the relay name in its nth run. */
export function poolsOfRun({ pools, hasManager }: Settings, run: number): readonly SimulatedPool[] {
  if (!pools) return []
  const all = hasManager ? [...simulatedPools, ...managerPools] : simulatedPools
  return pools === 'same' ? all : all.filter((_, nth) => nth !== run % all.length)
}

/** The currency of the trades in bars; null for any. */
export const mainCurrencyOf = ({ hasSecondary = false }: Settings): Hex | null => (hasSecondary ? dollars.address : null)

export const isOfSecond = ({ currency }: SimulatedPool): boolean => currency === cents

const rootKey = (pool: SimulatedPool) => `root ${pool.id}`
export const rootWrite = (pool: SimulatedPool, root: bigint): StateWrite => writeValue(rootKey(pool), root)
export const isTokenFirst = ({ token, currency }: SimulatedPool): boolean => token < currency.address

/** The answer of a pool, or of the manager of pools, to a call; null for another contract. */
export function answerPoolCall(contract: Hex, data: Hex, read: ReadState): Hex | null {
  if (contract === MANAGER) return data.startsWith(EXTSLOAD) ? managerSlot(`0x${data.slice(EXTSLOAD.length)}`, read) : '0x'
  const pool = poolAt(contract)
  if (!pool) return null
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

/** The word that a pool, or the manager of pools, stores in a slot; null for another contract. */
export function poolSlot(contract: Hex, slot: Hex, read: ReadState): Hex | null {
  if (contract === MANAGER) return managerSlot(slot, read)
  const pool = poolAt(contract)
  return pool ? toWord(BigInt(slot) === 0n ? rootIn(pool, read) : LIQUIDITY) : null
}

/** `extsload(bytes32)`. */
const EXTSLOAD = '0x1e2eaeaf'
const POOLS_SLOT = toWord(6n)
const LIQUIDITY_OFFSET = 3n
const TICK_SHIFT = 160n
const FEE_SHIFT = 208n
/** The tick is of no use to a reader of prices. One below zero has all of its bits. */
const TICK = BigInt.asUintN(24, -1n)

const managerPoolsBySlot = new Map(managerPools.map((pool) => [BigInt(mappingSlot(pool.id, POOLS_SLOT)), pool]))

/** The first slot of a pool has its root, its tick and its fee. */
function managerSlot(slot: Hex, read: ReadState): Hex {
  const place = BigInt(slot)
  const pool = managerPoolsBySlot.get(place)
  if (pool) return toWord(rootIn(pool, read) | (TICK << TICK_SHIFT) | (BigInt(pool.fee) << FEE_SHIFT))
  return toWord(managerPoolsBySlot.has(place - LIQUIDITY_OFFSET) ? LIQUIDITY : 0n)
}

const rootIn = (pool: SimulatedPool, read: ReadState): bigint => read(rootKey(pool)) || Q96

export const words = (values: readonly (bigint | Hex)[]): Hex =>
  `0x${values.map((value) => toWord(BigInt.asUintN(256, BigInt(value))).slice(2)).join('')}`
