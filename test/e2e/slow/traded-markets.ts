import { onTestFinished } from 'vitest'
import { type Hex, quantity } from '../../../src/lib/hex.ts'
import type { SeededRandom } from '../../simulation/seeded-random.ts'
import { ACCOUNTS, serveList, startAnvil } from '../../support/anvil-node.ts'
import { ethersProviderFor } from '../../support/ethers-client.ts'
import { openRelay } from '../../support/in-process-relay.ts'
import { listenToAll } from '../../support/test-stack.ts'
import { waitForSource } from '../listeners.ts'
import { openPushingNode } from './pushing-node.ts'
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
const FEES = [
  [500, 10],
  [3_000, 60],
  [10_000, 200],
] as const

export type Coin = { readonly symbol: string; readonly address: Hex; readonly decimals: number }
/** A pool of a stock and a currency. `home` is the root of its first price. */
export type Market = {
  readonly pool: UniswapPool
  readonly stock: Coin
  readonly currency: Coin
  readonly fee: number
  readonly home: bigint
}

const coins = (name: string, addresses: readonly Hex[]): readonly Coin[] =>
  DECIMALS.map((decimals, place) => ({ symbol: `${name}${decimals}`, address: addresses[place] ?? '0x', decimals }))

/**
 * A relay on a real node with pools of these versions: of each stock and each currency, all of 6, 8 and 18 decimals,
 * and in both orders, because half of the currencies have lower addresses than all stocks.
 */
export async function openMarkets(random: SeededRandom, versions: readonly ('openV3' | 'openV4')[]) {
  const anvil = await startAnvil()
  onTestFinished(() => anvil.kill())
  const uniswap = await deployUniswap(anvil, 3 * DECIMALS.length)
  const [low, stocks, high] = ['LOW', 'STOCK', 'HIGH'].map((name, third) =>
    coins(name, uniswap.tokens.slice(DECIMALS.length * third)),
  ) as [readonly Coin[], readonly Coin[], readonly Coin[]]
  const markets: Market[] = []
  for (const open of versions)
    for (const stock of stocks)
      for (const currency of [...low, ...high]) {
        const [[fee, tickSpacing], home] = [random.pick<readonly [number, number]>(FEES), anyRoot(random)]
        const pair = [stock.address, currency.address].toSorted()
        const pool = await uniswap[open](fee, tickSpacing, home, pair)
        const outermost = Math.floor(OUTERMOST_TICK / tickSpacing) * tickSpacing
        await pool.mint(-outermost, outermost, powerOfTen(random, 8, 18))
        const middle = Math.floor((await pool.state()).tick / tickSpacing) * tickSpacing
        await pool.mint(middle - 20 * tickSpacing, middle + 20 * tickSpacing, powerOfTen(random, 8, 22))
        markets.push({ pool, stock, currency, fee, home })
      }
  const node = await openPushingNode(anvil)
  const record = { multiplier: 2, nav_price: 10.5, nav_price_updated_at: new Date().toISOString() }
  const list = await serveList(...stocks.map(({ address, ...stock }) => ({ contract_address: address, ...stock, ...record })))
  onTestFinished(() => list.stop())
  const poolTexts = markets.map(({ pool: { kind, id, manager }, stock, currency }) => {
    return `${stock.symbol}/${currency.symbol}=${kind}:${id}${manager ? `@${manager}` : ''}`
  })
  const currencyTexts = [...low, ...high].map(({ symbol, address, decimals }) => `${symbol}:${address}:${decimals}`)
  const settings = { POOLS: poolTexts.join(), QUOTE_TOKENS: currencyTexts.join(), POOL_MIN_DEPTH: '0' }
  const relay = await openRelay({ ...node, url: list.url }, settings)
  onTestFinished(() => relay.stop())
  const listener = await listenToAll({ relay }, 'start')
  await listener.until(() => listener.messagesOf('venue').length === markets.length, 'every pool followed')
  await waitForSource(listener, 'pendingLogs')
  await anvil.rpc('evm_setAutomine', false)
  const provider = ethersProviderFor({ url: anvil.rpcUrl, wsUrl: anvil.wsUrl }, 'http')
  return { anvil, node, markets, stocks, listener, provider }
}
export type Markets = Awaited<ReturnType<typeof openMarkets>>

const accountsOf = async ({ anvil }: Markets) => (await anvil.rpc('eth_accounts')) as readonly string[]

/** Sends random swaps for the next block, at least one. A pool may refuse one. */
export async function sendSwaps(opened: Markets, random: SeededRandom, most: number, markets = opened.markets): Promise<void> {
  const accounts = await accountsOf(opened)
  for (let left = random.int(1, most); left > 0; left -= 1) {
    const market = markets[random.int(0, markets.length - 1)]
    const from = accounts[random.int(0, accounts.length - 1)]
    if (market) await opened.anvil.rpc('eth_sendTransaction', { from, gas: GAS, ...(await anySwap(market, random)) })
  }
}

async function anySwap({ pool, home }: Market, random: SeededRandom) {
  const { sqrtPriceX96 } = await pool.state()
  const choice = random.int(1, 100)
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

/** Seals a block with all that was sent and a mint of a stock, and waits until the relay has settled the blocks before it. */
export async function sealBlock(opened: Markets): Promise<void> {
  const { anvil, listener, stocks } = opened
  const [from] = await accountsOf(opened)
  // Another amount each time: no two of these transactions are the same one, even if a nonce is used again.
  const mint = mintCall(stocks[0]?.address ?? '0x', ACCOUNTS[1], BigInt(listener.messages.length))
  const hash = String(await anvil.rpc('eth_sendTransaction', { from, gas: GAS, ...mint }))
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
