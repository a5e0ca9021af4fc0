import type { Hex } from '../../lib/hex.ts'
import { addressFrom, digest } from '../chain/hashes.ts'
import { type DevnetToken, TOKEN_DECIMALS, tokenOf } from './issued-tokens.ts'

/** The currency of every pool. Its address is between those of the tokens, so that it is first in some pools, second in others. */
const usdc = { symbol: 'USDC', address: '0xb2000000000000000000007a5e2f8c0d4b6191e3', decimals: 6 } as const

export type DevnetPool = {
  token: Hex
  kind: 'uniswap_v3' | 'uniswap_v4' | 'slipstream'
  /** Address of the pool; in Uniswap v4, the 32 bytes by which the manager names the pool. */
  id: Hex
  manager: Hex | null
  currency: { symbol: string; address: Hex; decimals: number }
  symbol: string
  /** Average reference value of the token, in dollars. */
  averagePrice: number
  /** Fee in hundredths of a basis point. */
  fee: number
  /** Liquidity at the start. */
  liquidity: bigint
}

type PoolRow = readonly [symbol: string, kind: DevnetPool['kind'], fee: number, depth: number, averagePrice?: number]

// `depth` is the amount in dollars that raises the price by 1 %. One pool is thin, one is empty.
const poolRows: readonly PoolRow[] = [
  ['AAPLc', 'uniswap_v3', 3_000, 10_000],
  ['AAPLc', 'uniswap_v4', 500, 12_000],
  ['AAPLc', 'slipstream', 500, 4_000],
  ['AMZNc', 'uniswap_v3', 3_000, 9_000],
  ['COINc', 'uniswap_v3', 10_000, 0],
  ['CRCLc', 'uniswap_v3', 10_000, 5_000],
  ['GOOGLc', 'uniswap_v3', 10_000, 9_000],
  ['INTCc', 'uniswap_v3', 3_000, 6_000, 38.4],
  ['METAc', 'uniswap_v3', 3_000, 11_000],
  ['METAc', 'slipstream', 500, 5_000],
  ['MSFTc', 'uniswap_v3', 3_000, 12_000],
  ['MSFTc', 'uniswap_v4', 500, 8_000],
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

const toPool = ({ address, symbol, nav = 1 }: DevnetToken, [, kind, fee, depth, averagePrice = nav]: PoolRow): DevnetPool => ({
  token: address,
  kind,
  id: kind === 'uniswap_v4' ? digest('pool', symbol, kind) : addressFrom('pool', symbol, kind),
  manager: kind === 'uniswap_v4' ? poolManager : null,
  currency: usdc,
  symbol,
  averagePrice,
  fee,
  liquidity: liquidityOf(averagePrice, depth),
})

const liquidityOf = (price: number, depth: number): bigint =>
  BigInt(Math.round((depth * 10 ** usdc.decimals) / (Math.sqrt(price * 10 ** (usdc.decimals - TOKEN_DECIMALS)) * ROOT_MOVE)))

export const pools: readonly DevnetPool[] = poolRows.map((row) => toPool(tokenOf(row[0]), row))

/** The contract that stores the pool, and sends and receives the tokens of its swaps. */
export const poolContract = ({ id, manager }: DevnetPool): Hex => manager ?? id

/** Whether the stock is the first token of the pool, which orders its two tokens by address. */
export const isTokenFirst = ({ token, currency }: DevnetPool): boolean => BigInt(token) < BigInt(currency.address)

/** Value of the relay's setting POOLS. */
export const poolsText: string = pools
  .map(({ symbol, currency, kind, id, manager }) => `${symbol}/${currency.symbol}=${kind}:${id}${manager ? `@${manager}` : ''}`)
  .join(',')

export const quoteTokens: string = `${usdc.symbol}:${usdc.address}:${usdc.decimals}`
