import type { JsonRpcApiProvider } from 'ethers'
import { onTestFinished } from 'vitest'
import { type Hex, quantity } from '../../../src/lib/hex.ts'
import type { SeededRandom } from '../../simulation/seeded-random.ts'
import { ACCOUNTS, type Anvil, serveList, startAnvil } from '../../support/anvil-node.ts'
import { ethersProviderFor } from '../../support/ethers-client.ts'
import { openRelay } from '../../support/in-process-relay.ts'
import type { TestListener } from '../../support/test-listener.ts'
import { listenToAll } from '../../support/test-stack.ts'
import { waitForSource } from '../listeners.ts'
import { openPushingNode, type PushingNode } from './pushing-node.ts'
import {
  anyRoot,
  deployUniswap,
  EVERYTHING,
  farthestRoot,
  mintCall,
  nearbyRoot,
  powerOfTen,
  type UniswapPool,
} from './uniswap-pools.ts'

const DECIMALS = [6, 8, 18] as const
const OUTERMOST_TICK = 887_272
/** Enough for a swap that crosses a pool. */
const GAS = '0x4c4b40'
type Version = 'openV3' | 'openV4'
type Terms = {
  readonly fee: number
  readonly tickSpacing: number
  readonly protocolFees?: readonly [number, number]
  readonly hasHooks?: boolean
  /** Whether the settings name a pool of Uniswap v4 by its key, which tells its hooks, and not by its id. */
  readonly isNamedByKey?: boolean
}
/** The terms that the pools of each version have in turn. */
const termsOf: Readonly<Record<Version, readonly Terms[]>> = {
  openV3: [
    { fee: 500, tickSpacing: 10 },
    { fee: 3_000, tickSpacing: 60 },
    { fee: 10_000, tickSpacing: 200 },
  ],
  openV4: [
    { fee: 2_550, tickSpacing: 50, isNamedByKey: true },
    { fee: 3_000, tickSpacing: 60, protocolFees: [200, 1_000] },
    { fee: 12_345, tickSpacing: 200, hasHooks: true, isNamedByKey: true },
    { fee: 0, tickSpacing: 10, hasHooks: true },
  ],
}

export type Coin = { readonly symbol: string; readonly address: Hex; readonly decimals: number }
/** A pool of a stock and a currency. `home` is the root of its first price, `hooks` is as in a trade. */
export type Market = {
  readonly pool: UniswapPool
  readonly stock: Coin
  readonly currency: Coin
  readonly fee: number
  readonly home: bigint
  readonly hooks: string | null
  /** The pool in the settings. */
  readonly text: string
}

const coins = (name: string, addresses: readonly Hex[]): readonly Coin[] =>
  DECIMALS.map((decimals, place) => ({ symbol: `${name}${decimals}`, address: addresses[place] ?? '0x', decimals }))

type OpenedUniswap = Awaited<ReturnType<typeof deployUniswap>> & { readonly hooks: Hex }

async function openMarket(
  uniswap: OpenedUniswap,
  [version, { fee, tickSpacing, protocolFees, hasHooks, isNamedByKey }]: readonly [Version, Terms],
  [stock, currency]: readonly [Coin, Coin],
  random: SeededRandom,
): Promise<Market> {
  const home = anyRoot(random)
  const pair = [stock.address, currency.address].toSorted()
  const others = { pair, ...(hasHooks && { hooks: uniswap.hooks }), ...(protocolFees && { protocolFees }) }
  const pool = await uniswap[version](fee, tickSpacing, home, others)
  const outermost = Math.floor(OUTERMOST_TICK / tickSpacing) * tickSpacing
  await pool.mint(-outermost, outermost, powerOfTen(random, 8, 18))
  const middle = Math.floor((await pool.state()).tick / tickSpacing) * tickSpacing
  await pool.mint(middle - 20 * tickSpacing, middle + 20 * tickSpacing, powerOfTen(random, 8, 22))
  const { kind, id, manager } = pool
  const hooks = hasHooks ? uniswap.hooks : 'none'
  const name = isNamedByKey ? `${fee}/${tickSpacing}/${hooks}` : id
  const text = `${stock.symbol}/${currency.symbol}=${kind}:${name}${manager ? `@${manager}` : ''}`
  return { pool, stock, currency, fee, home, hooks: manager && !isNamedByKey ? null : hooks, text }
}

/**
 * A relay on a real node with pools of these versions: of each stock and each currency, all of 6, 8 and 18 decimals,
 * and in both orders, because half of the currencies have lower addresses than all stocks. `strangers` are pools that
 * the settings do not name. From the start the node may refuse those of the manager.
 */
export async function openMarkets(
  random: SeededRandom,
  versions: readonly Version[],
  refuses: PushingNode['refuses'] = () => null,
): Promise<Markets> {
  const anvil = await startAnvil()
  onTestFinished(() => anvil.kill())
  const deployed = await deployUniswap(anvil, 3 * DECIMALS.length)
  const uniswap = { ...deployed, hooks: await deployed.deployHooks() }
  const [low, stocks, high] = ['LOW', 'STOCK', 'HIGH'].map((name, third) =>
    coins(name, uniswap.tokens.slice(DECIMALS.length * third)),
  ) as [readonly Coin[], readonly Coin[], readonly Coin[]]
  const pairs = stocks.flatMap((stock) => [...low, ...high].map((currency) => [stock, currency] as const))
  const markets: Market[] = []
  for (const [place, pair] of pairs.entries())
    for (const version of versions) {
      const terms = termsOf[version][place % termsOf[version].length]
      if (terms) markets.push(await openMarket(uniswap, [version, terms], pair, random))
    }
  const strangers: Market[] = []
  for (const pair of pairs.slice(0, 1))
    for (const version of versions) strangers.push(await openMarket(uniswap, [version, { fee: 100, tickSpacing: 1 }], pair, random))
  const node = await openPushingNode(anvil, refuses)
  const record = { multiplier: 2, nav_price: 10.5, nav_price_updated_at: new Date().toISOString() }
  const list = await serveList(...stocks.map(({ address, ...stock }) => ({ contract_address: address, ...stock, ...record })))
  onTestFinished(() => list.stop())
  const currencyTexts = [...low, ...high].map(({ symbol, address, decimals }) => `${symbol}:${address}:${decimals}`)
  const settings = { ...{ POOLS: markets.map(({ text }) => text).join(), QUOTE_TOKENS: currencyTexts.join(), POOL_MIN_DEPTH: '0' } }
  const relay = await openRelay({ ...node, url: list.url }, settings)
  onTestFinished(() => relay.stop())
  const listener = await listenToAll({ relay }, 'start')
  await listener.until(() => listener.messagesOf('venue').length === markets.length, 'every pool followed')
  await waitForSource(listener, 'pendingLogs')
  await anvil.rpc('evm_setAutomine', false)
  const provider = ethersProviderFor({ url: anvil.rpcUrl, wsUrl: anvil.wsUrl }, 'http')
  const opened = { anvil, node, markets, strangers, stocks, listener, provider }
  // Until a head is pushed the relay polls for it, and may settle the first block before its logs are pushed.
  await sealBlock(opened)
  return opened
}
export type Markets = {
  readonly anvil: Anvil
  readonly node: PushingNode
  readonly markets: readonly Market[]
  readonly strangers: readonly Market[]
  readonly stocks: readonly Coin[]
  readonly listener: TestListener
  readonly provider: JsonRpcApiProvider
}

const accountsOf = async ({ anvil }: Markets) => (await anvil.rpc('eth_accounts')) as readonly string[]

/** Sends random swaps and routes for the next block, at least one. A pool may refuse one. */
export async function sendSwaps(
  opened: Markets,
  random: SeededRandom,
  most: number,
  markets: readonly Market[] = [...opened.markets, ...opened.strangers],
): Promise<void> {
  const accounts = await accountsOf(opened)
  for (let left = random.int(1, most); left > 0; left -= 1) {
    const market = markets[random.int(0, markets.length - 1)]
    const from = accounts[random.int(0, accounts.length - 1)]
    if (market) await opened.anvil.rpc('eth_sendTransaction', { from, gas: GAS, ...(await anySwap(market, markets, random)) })
  }
}

async function anySwap({ pool, home, stock }: Market, markets: readonly Market[], random: SeededRandom) {
  const { sqrtPriceX96 } = await pool.state()
  const choice = random.int(1, 100)
  const [other, ...others] = markets.filter((one) => one.stock === stock && one.pool.manager !== null && one.pool !== pool)
  if (choice > 90 && pool.manager && other)
    return pool.routeCall(random.pick([other, ...others]).pool, stock.address, powerOfTen(random, 0, 12))
  const sign = random.chance(50) ? 1n : -1n
  const zeroForOne = random.chance(50)
  if (choice <= 3) return pool.swapCall(zeroForOne, sign * EVERYTHING, farthestRoot(zeroForOne))
  if (choice <= 15) {
    const goesDown = sqrtPriceX96 > home
    return pool.swapCall(goesDown, sign * EVERYTHING, nearbyRoot(random, home, !goesDown))
  }
  const amount = choice <= 25 ? BigInt(random.int(1, 9)) : powerOfTen(random, 0, 22)
  return pool.swapCall(zeroForOne, sign * amount, nearbyRoot(random, sqrtPriceX96, zeroForOne))
}

/** Sends a call of a pool for the next block. Returns the hash of the transaction. */
export async function sendCall(opened: Markets, call: { readonly to: Hex; readonly data: Hex }): Promise<string> {
  const [from] = await accountsOf(opened)
  return String(await opened.anvil.rpc('eth_sendTransaction', { from, gas: GAS, ...call }))
}

/** Seals a block with all that was sent and a mint of a stock, and waits until the relay has settled the blocks before it. */
export async function sealBlock(opened: Markets): Promise<void> {
  const { anvil, listener, stocks } = opened
  // Another amount each time: no two of these transactions are the same one, even if a nonce is used again.
  const mint = mintCall(stocks[0]?.address ?? '0x', ACCOUNTS[1], BigInt(listener.messages.length))
  const hash = await sendCall(opened, mint)
  await anvil.rpc('evm_mine')
  await listener.waitFor('seal', ({ keys }) => keys.some((key) => key.includes(hash)))
}

type Transaction = { readonly hash: string; readonly from: string }

/** Replaces the newest blocks. Of each account some of its last transactions are dropped; the others are kept or moved. */
export async function replaceBlocks({ anvil }: Markets, random: SeededRandom, depth: number): Promise<void> {
  const first = Number(await anvil.rpc('eth_blockNumber')) - depth + 1
  const placed: [raw: unknown, place: number][] = []
  /** The last place of each account: its nonces allow none before. Null if a transaction was dropped. */
  const last = new Map<string, number | null>()
  for (let place = 0; place < depth; place += 1) {
    const block = await anvil.rpc('eth_getBlockByNumber', quantity(first + place), true)
    for (const { hash, from } of (block as { transactions: readonly Transaction[] }).transactions) {
      const chosen = Math.max(last.get(from) ?? 0, random.chance(60) ? place : random.int(0, depth - 1))
      last.set(from, last.get(from) === null || random.chance(15) ? null : chosen)
      if (last.get(from) !== null) placed.push([await anvil.rpc('debug_getRawTransaction', hash), chosen])
    }
  }
  await anvil.rpc('anvil_reorg', depth, placed)
}
