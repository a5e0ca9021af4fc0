import { encodeAbiParameters, keccak256, parseAbiParameters } from 'viem/utils'
import { type Hex, ZERO_ADDRESS } from '../../lib/hex.ts'
import { addressFrom } from '../chain/hashes.ts'
import { TOKEN_DECIMALS, testToken, tokenOf } from './issued-tokens.ts'

/** The currency of every pool. Its address is between those of the tokens, so that it is first in some pools, second in others. */
const usdc = { symbol: 'USDC', address: '0xb2000000000000000000007a5e2f8c0d4b6191e3', decimals: 6 } as const

export type DevnetPool = {
  token: Hex
  kind: 'uniswap_v3' | 'uniswap_v4' | 'slipstream'
  /** Address of the pool; in Uniswap v4, the 32 bytes by which the manager names the pool. */
  id: Hex
  manager: Hex | null
  /** Key of a pool of Uniswap v4, from which its id follows, as in the relay's setting POOLS: `fee/tickSpacing/hooks`. */
  key: string | null
  /** The contract that may change a swap in Uniswap v4. */
  hooks: Hex | 'none'
  currency: { symbol: string; address: Hex; decimals: number }
  symbol: string
  /** Average reference value of the token, in dollars. */
  averagePrice: number
  /** Fee in hundredths of a basis point. */
  fee: number
  /** Liquidity at the start. */
  liquidity: bigint
}

type PoolDetails = { averagePrice?: number; hooks?: Hex }
type PoolRow = readonly [symbol: string, kind: DevnetPool['kind'], fee: number, depth: number, details?: PoolDetails]

// The last 14 bits of the address of a hooks contract say when the manager calls it: here after each swap.
const swapHooks: Hex = '0x5afe7e57000000000000000000000000000c0040'

// `depth` is the amount in dollars that raises the price by 1 %. One pool is thin, one is empty.
const poolRows: readonly PoolRow[] = [
  ['AAPLc', 'uniswap_v3', 3_000, 10_000],
  ['AAPLc', 'uniswap_v4', 500, 12_000],
  ['AAPLc', 'uniswap_v4', 3_000, 3_000, { hooks: swapHooks }],
  ['AAPLc', 'slipstream', 500, 4_000],
  ['AMZNc', 'uniswap_v3', 3_000, 9_000],
  ['COINc', 'uniswap_v3', 10_000, 0],
  ['CRCLc', 'uniswap_v3', 10_000, 5_000],
  ['GOOGLc', 'uniswap_v3', 10_000, 9_000],
  ['INTCc', 'uniswap_v3', 3_000, 6_000, { averagePrice: 38.4 }],
  ['METAc', 'uniswap_v3', 3_000, 11_000],
  ['METAc', 'slipstream', 500, 5_000],
  ['MSFTc', 'uniswap_v3', 3_000, 12_000],
  ['MSTRc', 'uniswap_v3', 10_000, 7_000],
  ['NVDAc', 'uniswap_v3', 3_000, 14_000],
  ['NVDAc', 'slipstream', 500, 16_000],
  ['SNDKc', 'uniswap_v3', 10_000, 400],
  ['SPCXc', 'uniswap_v3', 10_000, 6_000],
  ['TSLAc', 'uniswap_v3', 3_000, 13_000],
  ['TSLAc', 'uniswap_v4', 500, 9_000],
  ['TSLAc', 'slipstream', 500, 7_000],
]

/** Relative change of the root of a price when the price rises by 1 %. */
const ROOT_MOVE = Math.sqrt(1.01) - 1

const poolManager = addressFrom('pool', 'manager')

/** Distance between the ticks that liquidity may begin at, by fee, as in most pools of Uniswap v4. */
const tickSpacings: Readonly<Record<number, number>> = { 500: 10, 3000: 60, 10000: 200 }
const keyType = parseAbiParameters('address, address, uint24, int24, address')

const toPool = ([symbol, kind, fee, depth, { hooks, ...details } = {}]: PoolRow): DevnetPool => {
  const { address, nav = 1 } = tokenOf(symbol)
  const { averagePrice = nav } = details
  const terms = { token: address, kind, currency: usdc, symbol, averagePrice, fee, liquidity: liquidityOf(averagePrice, depth) }
  if (kind !== 'uniswap_v4') return { ...terms, id: addressFrom('pool', symbol, kind), manager: null, key: null, hooks: 'none' }
  const tickSpacing = tickSpacings[fee] ?? 1
  const currencies = isTokenFirst(terms) ? ([address, usdc.address] as const) : ([usdc.address, address] as const)
  const id = keccak256(encodeAbiParameters(keyType, [...currencies, fee, tickSpacing, hooks ?? ZERO_ADDRESS]))
  const key = `${fee}/${tickSpacing}/${hooks ?? 'none'}`
  return { ...terms, id, manager: poolManager, key, hooks: hooks ?? 'none' }
}

const liquidityOf = (price: number, depth: number): bigint =>
  BigInt(Math.round((depth * 10 ** usdc.decimals) / (Math.sqrt(price * 10 ** (usdc.decimals - TOKEN_DECIMALS)) * ROOT_MOVE)))

/** The pools of the market. */
export const pools: readonly DevnetPool[] = poolRows.map(toPool)

/** The pool of the test token, in which only its schedule trades. */
export const testPool: DevnetPool = toPool([testToken.symbol, 'uniswap_v3', 3_000, 10_000, { averagePrice: 100 }])

/** The contract that stores the pool, and sends and receives the tokens of its swaps. */
export const poolContract = ({ id, manager }: DevnetPool): Hex => manager ?? id

/** A deeper pool of the same token and manager: the second pool of a route. */
export const routePartnerOf = ({ token, manager, liquidity }: DevnetPool): DevnetPool | undefined =>
  pools.find((pool) => manager !== null && pool.manager === manager && pool.token === token && pool.liquidity > liquidity)

/** Whether the stock is the first token of the pool, which orders its two tokens by address. */
export function isTokenFirst({ token, currency }: Pick<DevnetPool, 'token' | 'currency'>): boolean {
  return BigInt(token) < BigInt(currency.address)
}

/** Value of the relay's setting POOLS. */
export const poolsTextOf = (named: readonly DevnetPool[]): string =>
  named
    .map(
      ({ symbol, currency, kind, id, key, manager }) =>
        `${symbol}/${currency.symbol}=${kind}:${key ?? id}${manager ? `@${manager}` : ''}`,
    )
    .join(',')

export const quoteTokens: string = `${usdc.symbol}:${usdc.address}:${usdc.decimals}`
