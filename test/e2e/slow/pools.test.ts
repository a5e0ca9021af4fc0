import { Fraction, Token } from '@uniswap/sdk-core'
import { Pool as SdkPool, SqrtPriceMath } from '@uniswap/v3-sdk'
import { asyncScheduler } from 'rxjs'
import { describe, expect, it, onTestFinished } from 'vitest'
import type { Hex } from '../../../src/lib/hex.ts'
import { isToken0, type Pool, SQRT_PRICE_BOUNDS } from '../../../src/relay/chain/pools/pool.ts'
import { PoolReader } from '../../../src/relay/chain/pools/pool-reader.ts'
import { ChainIdentity } from '../../../src/relay/chain/rpc/chain-identity.ts'
import { EndpointPool, type RequestBatchFn } from '../../../src/relay/chain/rpc/endpoint-pool.ts'
import { judgePool } from '../../../src/relay/tokens/quote-math.ts'
import { SeededRandom } from '../../simulation/seeded-random.ts'
import { ACCOUNTS, startAnvil } from '../../support/anvil-node.ts'
import { type ExactFraction, isNearest, shifted, unitsOf } from '../../support/exact-fraction.ts'
import { serve } from '../../support/loopback-server.ts'
import {
  anyRoot,
  type ContractState,
  deployUniswap,
  EVERYTHING,
  exactPrice,
  farthestRoot,
  nearbyRoot,
  powerOfTen,
  toBigInt,
  type UniswapPool,
} from './uniswap-pools.ts'

const SEEDS = [1, 2, 3, 4]
const ROUNDS = 25
const DECIMALS = [6, 8, 18] as const
const MIN_DEPTH = { units: 1_000n, scale: 0 }
const { min: MIN, max: MAX } = SQRT_PRICE_BOUNDS
const MAX_TICK = 887_272
const Q96 = 2n ** 96n

/** √1.01 in units of 10^-18. */
const ROOT_OF_101 = 1_004_987_562_112_089_027n
const ROOT_UNIT = 10n ** 18n

/** A node with Uniswap's contracts, and two readers of it: by calls, and from storage because calls are refused. */
async function openUniswap() {
  const anvil = await startAnvil()
  onTestFinished(() => anvil.kill())
  const uniswap = await deployUniswap(anvil)
  const callMethods = new Set<string>()
  const byCalls = readerOf(anvil.rpcUrl, callMethods)
  const fromStorage = readerOf(await openProxyWithoutCalls(anvil.rpcUrl))
  const signal = new AbortController().signal
  /** Reads in both ways, which differ in the fee of a v3 pool alone. */
  const read = async (pools: readonly Pool[], tag: 'pending' | 'latest' = 'latest') => {
    const called = await byCalls.read(pools, tag, signal)
    const stored = await fromStorage.read(pools, tag, signal)
    expect(stored.block && { ...stored.block, timestamp: null }).toEqual(called.block && { ...called.block, timestamp: null })
    for (const pool of pools) {
      const reading = called.pools.get(pool)
      // The storage does not tell the fee and the tokens.
      const isV3 = pool.kind === 'uniswap_v3' && reading?.kind === 'read'
      expect(stored.pools.get(pool)).toEqual(isV3 ? { ...reading, feeBps: null, tokens: 'refused' } : reading)
    }
    return called
  }
  return { anvil, uniswap, read, callMethods }
}

/** A reader, and the methods that it used. */
const readerOf = (url: string, methods = new Set<string>()): PoolReader => {
  const chain = new ChainIdentity(31_337, 'CHAIN_ID')
  const rpc = new EndpointPool({ urls: [url], chain, now: () => performance.now(), random: () => 0.5, log: () => undefined })
  const requestBatch: RequestBatchFn = (batch, signal) => {
    for (const { method } of batch) methods.add(method)
    return rpc.requestBatch(batch, signal)
  }
  return new PoolReader({ requestBatch, clock: asyncScheduler })
}

/** Passes requests on to a node, except calls, which it refuses as public endpoints do. */
function openProxyWithoutCalls(nodeUrl: string): Promise<string> {
  type Call = { readonly id: number; readonly method: string }
  const error = { code: -32_601, message: 'rpc method is not whitelisted' }
  return serve(onTestFinished, async (request, response) => {
    const sent = JSON.parse(Buffer.concat(await request.toArray()).toString()) as Call | Call[]
    const [refused, passed] = [true, false].map((isCall) =>
      [sent].flat().filter(({ method }) => (method === 'eth_call') === isCall),
    ) as [Call[], Call[]]
    const headers = { 'content-type': 'application/json' }
    const answered = await (await fetch(nodeUrl, { method: 'POST', body: JSON.stringify(passed), headers })).json()
    const all = [...(answered as object[]), ...refused.map(({ id }) => ({ jsonrpc: '2.0', id, error }))]
    response.writeHead(200, headers).end(JSON.stringify(Array.isArray(sent) ? all : all[0]))
  })
}

/** The pool as a place to trade the first token for the second one, and the other way round. */
const sidesOf = ({ kind, id, manager }: UniswapPool, tokens: readonly Hex[]): readonly Pool[] =>
  [tokens, tokens.toReversed()].map(([token = '0x', address = '0x']) => {
    return { token, kind, id, manager, currency: { symbol: 'USDC', address, decimals: 6 } }
  })

/** What Uniswap's SDK says of a pool in which the token and its currency have these decimals. */
function sdkQuote(
  side: Pool,
  { sqrtPriceX96, tick, liquidity, fee }: ContractState,
  tokenDecimals: number,
  currencyDecimals: number,
) {
  const token = new Token(1, side.token, tokenDecimals)
  const currency = new Token(1, side.currency.address, currencyDecimals)
  const pool = new SdkPool(token, currency, fee, `${sqrtPriceX96}`, `${liquidity}`, tick)
  const price = exactPrice(pool.priceOf(token))
  // What the way to the root where the token costs 1 % more costs.
  const isFirst = token.sortsBefore(currency)
  const next = isFirst ? (sqrtPriceX96 * ROOT_OF_101) / ROOT_UNIT : (sqrtPriceX96 * ROOT_UNIT) / ROOT_OF_101
  const [from, to] = [pool.sqrtRatioX96, new Fraction(`${next}`).numerator]
  const paid = isFirst
    ? SqrtPriceMath.getAmount1Delta(from, to, pool.liquidity, false)
    : SqrtPriceMath.getAmount0Delta(from, to, pool.liquidity, false)
  const depth: ExactFraction = [toBigInt(paid), 10n ** BigInt(currencyDecimals)]
  return { price, depth }
}

/** Compares what a client would get with what Uniswap's SDK says. Returns the states. */
function expectSameAsSdk(side: Pool, state: ContractState): readonly string[] {
  const pairs = DECIMALS.flatMap((tokenDecimals) => DECIMALS.map((currencyDecimals) => [tokenDecimals, currencyDecimals] as const))
  return pairs.map(([tokenDecimals, currencyDecimals]) => {
    const judged = judgePool(state, { isToken0: isToken0(side), tokenDecimals, currencyDecimals, poolMinDepth: MIN_DEPTH })
    if (state.liquidity === 0n || state.sqrtPriceX96 === MIN || state.sqrtPriceX96 === MAX) {
      expect(judged).toEqual({ state: 'empty', price: null, depth: null })
      return judged.state
    }
    const { price, depth } = sdkQuote(side, state, tokenDecimals, currencyDecimals)
    const cents = unitsOf(judged.depth ?? '', 2)
    expect(isNear(cents, shifted(depth, 2)), `depth ${judged.depth}, not ${depth.join(' / ')}`).toBe(true)
    const isThin = isNearest(0n, shifted(price, 8)) || cents < 100n * MIN_DEPTH.units
    expect(judged.state).toBe(isThin ? 'thin' : 'ok')
    if (isThin) expect(judged.price).toBeNull()
    else expect(isNearest(unitsOf(judged.price ?? '', 8), shifted(price, 8)), `price ${judged.price}`).toBe(true)
    return judged.state
  })
}

/** Within a millionth, and one cent that is rounded off. */
const isNear = (cents: bigint, [a, b]: ExactFraction): boolean => {
  const difference = cents * b - a
  return (difference < 0n ? -difference : difference) <= a / 1_000_000n + b
}

type Position = { readonly lower: number; readonly upper: number; readonly liquidity: bigint }
/** A pool, and what is left in it of what was minted. */
type Traded = { readonly pool: UniswapPool; readonly sides: readonly Pool[]; positions: Position[]; accepted: number }

/** One random change of a pool. The contract may refuse it. */
async function trade(
  { pool, positions, ...traded }: Traded,
  random: SeededRandom,
): Promise<Pick<Traded, 'positions' | 'accepted'>> {
  const { tickSpacing } = pool
  const { sqrtPriceX96, tick } = await pool.state()
  const [choice, accepted] = [random.int(1, 100), (isDone: boolean) => traded.accepted + (isDone ? 1 : 0)]
  const position = positions[random.int(0, positions.length - 1)]
  if (choice <= 20 && position) {
    const isDone = await pool.burn(position.lower, position.upper, position.liquidity)
    return { positions: isDone ? positions.filter((other) => other !== position) : positions, accepted: accepted(isDone) }
  }
  if (choice <= 60) {
    const zeroForOne = random.chance(50)
    const limit = choice <= 24 ? farthestRoot(zeroForOne) : nearbyRoot(random, sqrtPriceX96, zeroForOne)
    const amount = choice <= 24 ? EVERYTHING : powerOfTen(random, 0, 30)
    return { positions, accepted: accepted(await pool.swap(zeroForOne, amount, limit)) }
  }
  const outer = Math.floor(MAX_TICK / tickSpacing)
  const middle = Math.floor(tick / tickSpacing)
  const [lower = 0, upper = 0] = [middle - random.int(0, 400), middle + random.int(1, 400)].map(
    (place) => Math.max(-outer, Math.min(outer, place)) * tickSpacing,
  )
  const minted = { lower, upper, liquidity: powerOfTen(random, 2, 22) }
  const isDone = await pool.mint(lower, upper, minted.liquidity)
  return { positions: isDone ? [...positions, minted] : positions, accepted: accepted(isDone) }
}

const kinds = [
  ...([
    ['openV3', 500, 10],
    ['openV3', 3_000, 60],
    ['openV3', 10_000, 200],
  ] as const),
  ...([
    ['openV4', 0, 10],
    ['openV4', 2_550, 50],
    ['openV4', 12_345, 200],
  ] as const),
]

type Read = Awaited<ReturnType<typeof openUniswap>>['read']

/** Reads all pools, and compares each with what Uniswap's own code says. Returns the states of all quotes. */
async function check(read: Read, all: readonly Traded[]): Promise<readonly string[]> {
  const { block, pools: readings } = await read(all.flatMap(({ sides }) => sides))
  expect(block).not.toBeNull()
  const states: string[] = []
  for (const { pool, sides } of all) {
    const state = await pool.state()
    const { sqrtPriceX96, liquidity, fee } = state
    for (const side of sides) {
      expect(readings.get(side)).toEqual({ kind: 'read', sqrtPriceX96, liquidity, feeBps: String(fee / 100) })
      states.push(...expectSameAsSdk(side, state))
    }
  }
  return states
}

describe('pools of Uniswap', () => {
  it.each(SEEDS)('are quoted as by its SDK, whatever is done to them: seed %i', async (seed) => {
    const { uniswap, read, callMethods } = await openUniswap()
    const random = new SeededRandom('pools', seed)
    const pools: UniswapPool[] = []
    for (const [open, fee, tickSpacing] of kinds) pools.push(await uniswap[open](fee, tickSpacing, anyRoot(random)))
    const all: Traded[] = pools.map((pool) => ({ pool, sides: sidesOf(pool, uniswap.tokens), positions: [], accepted: 0 }))
    const states = [...(await check(read, all))]
    for (let round = 0; round < ROUNDS; round += 1) {
      for (const each of all) Object.assign(each, await trade(each, random))
      states.push(...(await check(read, all)))
    }
    expect(callMethods).toEqual(new Set(['eth_getBlockByNumber', 'eth_call']))
    expect(all.filter(({ accepted }) => accepted < ROUNDS / 2)).toEqual([])
    for (const state of ['ok', 'thin', 'empty']) expect(states.filter((found) => found === state).length).toBeGreaterThan(200)
    for (const { pool, positions } of all)
      for (const { lower, upper, liquidity } of positions) expect(await pool.burn(lower, upper, liquidity)).toBe(true)
    expect(new Set(await check(read, all))).toEqual(new Set(['empty']))
  })

  it('show a swap before it is sealed, and are as before if it is dropped', async () => {
    const { anvil, uniswap, read } = await openUniswap()
    const pools = [await uniswap.openV3(3_000, 60, Q96), await uniswap.openV4(3_000, 60, Q96)]
    const sides = pools.flatMap((pool) => sidesOf(pool, uniswap.tokens))
    for (const pool of pools) await pool.mint(-600, 600, 10n ** 18n)
    const rootsAt = async (tag: 'pending' | 'latest') => {
      const { block, pools: readings } = await read(sides, tag)
      const roots = [...readings.values()].map((reading) => reading.kind === 'read' && reading.sqrtPriceX96)
      return { block: { number: block?.number, isSealed: block?.hash !== null }, roots }
    }
    const head = Number(await anvil.rpc('eth_blockNumber'))
    const before = sides.map(() => Q96)
    await anvil.rpc('evm_setAutomine', false)
    const swaps: unknown[] = []
    for (const pool of pools) {
      const swap = { from: ACCOUNTS[0], gas: '0x1e8480', ...pool.swapCall(true, 10n ** 15n, MIN + 1n) }
      swaps.push(await anvil.rpc('eth_sendTransaction', swap))
    }
    const pending = await rootsAt('pending')
    expect(pending.block).toEqual({ number: head + 1, isSealed: false })
    for (const root of pending.roots) expect(root).toBeLessThan(Q96)
    expect(await rootsAt('latest')).toEqual({ block: { number: head, isSealed: true }, roots: before })
    for (const hash of swaps) await anvil.rpc('anvil_dropTransaction', hash)
    expect(await rootsAt('pending')).toEqual({ block: { number: head + 1, isSealed: false }, roots: before })
  })
})
