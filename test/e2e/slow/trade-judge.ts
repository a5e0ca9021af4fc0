import { createHash } from 'node:crypto'
import { CurrencyAmount, Price, Token } from '@uniswap/sdk-core'
import { Pool as SdkPool } from '@uniswap/v3-sdk'
import { formatUnits, Interface, type Log, type TransactionReceipt } from 'ethers'
import { expect } from 'vitest'
import { isNearest, shifted, unitsOf } from '../../support/exact-fraction.ts'
import { keyStatesFrom, keysInState } from '../../support/key-states.ts'
import type { Message, MessageOf } from '../../support/test-listener.ts'
import type { Coin, Market, Markets } from './traded-markets.ts'
import { exactPrice } from './uniswap-pools.ts'

const PRICE_PLACES = 8

type Version = {
  readonly open: 'openV3' | 'openV4'
  readonly swaps: Interface
  readonly poolOf: (log: Log) => string | undefined
  /** The factor with which an amount of the event is positive if it went into the pool. */
  readonly intoPool: bigint
}

/** The versions of Uniswap whose trades the relay publishes. */
const versions: readonly Version[] = [
  {
    open: 'openV3',
    swaps: new Interface([
      'event Swap(address indexed sender, address indexed recipient, int256 amount0, int256 amount1, uint160 sqrtPriceX96, uint128 liquidity, int24 tick)',
    ]),
    poolOf: ({ address }) => address.toLowerCase(),
    intoPool: 1n,
  },
  {
    open: 'openV4',
    swaps: new Interface([
      'event Swap(bytes32 indexed id, address indexed sender, int128 amount0, int128 amount1, uint160 sqrtPriceX96, uint128 liquidity, int24 tick, uint24 fee)',
    ]),
    poolOf: ({ topics }) => topics[1],
    intoPool: -1n,
  },
]
export const openers = versions.map(({ open }) => open)

type Trade = Omit<MessageOf<'trade'>, 'id' | 'prev' | 'time'>
/** A swap by the event of its pool, as ethers decodes it. Positive amounts went into the pool. */
export type Swap = {
  readonly market: Market
  readonly key: string
  readonly log: Log
  readonly token: bigint
  readonly paid: bigint
  readonly state: { readonly sqrtPriceX96: bigint; readonly liquidity: bigint; readonly tick: bigint | number }
  readonly sender: string
  readonly recipient: string | null
  /** In hundredths of a basis point. */
  readonly fee: bigint | number
}

const keyOf = ({ blockNumber, transactionHash, index }: Log) => `${blockNumber}-${transactionHash}-${index}`
const magnitude = (value: bigint) => (value < 0n ? -value : value)
const isMint = ({ topics }: Log) => topics[1] === `0x${'0'.repeat(64)}`

/** Null if the log is no swap of a pool. */
function swapOf({ markets }: Markets, log: Log): Swap | null {
  const version = versions.find(({ swaps }) => swaps.getEvent('Swap')?.topicHash === log.topics[0])
  const market = markets.find(({ pool }) => pool.id === version?.poolOf(log))
  if (!version || !market) return null
  const { args } = version.swaps.parseLog(log) ?? expect.unreachable()
  const amounts: readonly bigint[] = [args.amount0, args.amount1].map((amount) => version.intoPool * amount)
  const { stock, currency } = market
  const [token = 0n, paid = 0n] = BigInt(stock.address) < BigInt(currency.address) ? amounts : amounts.toReversed()
  const { sqrtPriceX96, liquidity, tick, sender, recipient } = args
  return {
    ...{ market, key: keyOf(log), log, token, paid, state: { sqrtPriceX96, liquidity, tick } },
    ...{ sender: sender.toLowerCase(), recipient: recipient?.toLowerCase() ?? null, fee: args.fee ?? market.fee },
  }
}

const swapsIn = (opened: Markets, logs: readonly Log[]): readonly Swap[] => logs.flatMap((log) => swapOf(opened, log) ?? [])

/** All logs of stocks and pools that the node has now. Of a pool manager these are the swaps of the named pools. */
async function logsOf({ provider, markets, stocks }: Markets): Promise<readonly Log[]> {
  const own = [...stocks.map((stock) => stock.address), ...markets.flatMap(({ pool }) => (pool.manager ? [] : [pool.id]))]
  const managed = markets.flatMap(({ pool }) => (pool.manager ? [pool.id] : []))
  const managers = [...new Set(markets.flatMap(({ pool }) => pool.manager ?? []))]
  const topics = [versions.flatMap(({ swaps }) => swaps.getEvent('Swap')?.topicHash ?? []), managed]
  const filters = [{ address: own }, ...(managers.length > 0 ? [{ address: managers, topics }] : [])]
  const answers = await Promise.all(filters.map((each) => provider.getLogs({ ...each, fromBlock: 0, toBlock: 'latest' })))
  return answers.flat().toSorted((a, b) => a.blockNumber - b.blockNumber || a.index - b.index)
}

export const swapsOn = async (opened: Markets): Promise<readonly Swap[]> => swapsIn(opened, await logsOf(opened))

/** The keys of all logs of stocks that are no swaps. */
export async function otherKeysOn(opened: Markets): Promise<ReadonlySet<string>> {
  const addresses = new Set<string>(opened.stocks.map(({ address }) => address))
  return new Set((await logsOf(opened)).filter(({ address }) => addresses.has(address.toLowerCase())).map(keyOf))
}

/** The trades that hold by the tape, by their keys. */
function tradesOn(messages: readonly Message[]): ReadonlyMap<string, Trade> {
  const trades = new Map<string, Trade>()
  for (const message of messages) {
    if (message.type === 'trade') trades.set(message.key, message)
    if (message.type === 'retract' || message.type === 'amend') trades.delete(message.key)
    if (message.type === 'amend' && message.update.type === 'trade') trades.set(message.key, message.update)
  }
  return trades
}

/** Judges the whole tape by the receipts and logs that the node has now. Returns the swaps with their trades. */
export async function judgeTape(opened: Markets) {
  const { provider, listener, stocks } = opened
  const { messages } = listener
  const venues = listener.messagesOf('venue')
  const published = new Set(listener.messagesOf('trade').map(({ key, venue }) => `${key} ${venue.pool}`))
  const from = Math.min(...venues.map(({ from_block }) => from_block))
  const ownerOf = (log: Log) => swapOf(opened, log)?.market.stock.address ?? log.address.toLowerCase()
  const isFollowed = ({ market, log }: Swap) =>
    venues.findLast(({ venue, from_block }) => venue.pool === market.pool.id && from_block <= log.blockNumber)?.change ===
    'followed'
  const isPublished = (log: Log) => {
    const swap = swapOf(opened, log)
    if (log.blockNumber < from) return false
    // A trade that was open when its pool was dropped is settled too.
    return swap
      ? isFollowed(swap) || published.has(`${swap.key} ${swap.market.pool.id}`)
      : stocks.some(({ address }) => address === log.address.toLowerCase())
  }
  const logs = (await logsOf(opened)).filter(isPublished)
  expect(keysInState(messages, 'sealed')).toEqual(logs.map(keyOf).toSorted())
  expect(keysInState(messages, 'preconfirmed')).toEqual([])

  const seals = new Map(listener.messagesOf('seal').map((seal) => [`${seal.block.number} ${seal.address}`, seal]))
  for (const [name, sealed] of Map.groupBy(logs, (log) => `${log.blockNumber} ${ownerOf(log)}`)) {
    const keys = sealed.map(keyOf)
    expect(seals.get(name)).toMatchObject({
      ...{ keys, block: { number: sealed[0]?.blockNumber, hash: sealed[0]?.blockHash } },
      types: sealed.map((log) => (swapOf(opened, log) ? 'trade' : isMint(log) ? 'mint' : 'transfer')),
      digest: createHash('sha256').update(keys.join('\n')).digest('hex').slice(0, 32),
    })
    seals.delete(name)
  }
  // Only seals of blocks that were replaced remain.
  const states = keyStatesFrom(messages)
  for (const key of [...seals.values()].flatMap(({ keys }) => keys)) expect(states.get(key)).toBe('retracted')

  const trades = tradesOn(messages)
  const hashes = new Set(logs.map(({ transactionHash }) => transactionHash))
  const receipts = await Promise.all([...hashes].map((hash) => provider.getTransactionReceipt(hash)))
  for (const receipt of receipts) expectTransfers(opened, receipt)
  const decoded = receipts.flatMap((receipt) => swapsIn(opened, (receipt?.logs ?? []).filter(isPublished)))
  expect(trades.size).toBe(decoded.length)
  return decoded.map((swap) => {
    const trade = trades.get(swap.key) ?? expect.unreachable(swap.key)
    expectTrade(trade, swap)
    return { swap, trade }
  })
}

const transfers = new Interface(['event Transfer(address indexed from, address indexed to, uint256 value)'])

/** The transfers of a token in a transaction, by the token's own events. */
export const transfersOf = (coin: Coin, receipt: TransactionReceipt | null) =>
  (receipt?.logs ?? []).flatMap((log) => {
    const event = log.address.toLowerCase() === coin.address ? transfers.parseLog(log) : null
    const [from, to, value]: [string, string, bigint] = event ? [event.args.from, event.args.to, event.args.value] : ['', '', 0n]
    return event ? [{ from: from.toLowerCase(), to: to.toLowerCase(), value }] : []
  })

export const sumOf = (moved: readonly { readonly value: bigint }[]): bigint => moved.reduce((sum, { value }) => sum + value, 0n)

/** Checks the swaps by the transfers: the sum that went into all pools of an account is the sum that it received. */
function expectTransfers(opened: Markets, receipt: TransactionReceipt | null): void {
  const swaps = swapsIn({ ...opened, markets: [...opened.markets, ...opened.strangers] }, receipt?.logs ?? [])
  const byCoin = swaps.flatMap(({ market: { pool, stock, currency }, token, paid }) => {
    const account = pool.manager ?? pool.id
    return [
      { account, coin: stock, value: token },
      { account, coin: currency, value: paid },
    ]
  })
  for (const [name, moved] of Map.groupBy(byCoin, ({ account, coin }) => `${account} ${coin.address}`)) {
    const [{ account, coin } = expect.unreachable()] = moved
    const all = transfersOf(coin, receipt)
    const into = sumOf(all.filter(({ to }) => to === account)) - sumOf(all.filter(({ from }) => from === account))
    expect(into, name).toBe(sumOf(moved))
  }
}

function expectTrade(trade: Trade, { market, key, log, token, paid, state, sender, recipient, fee }: Swap): void {
  const { pool, stock, currency, hooks } = market
  const [raw, paidRaw] = [magnitude(token), magnitude(paid)]
  const sold = token === 0n ? -paid : token
  // The index of a transaction is as published: it may be another one after a reorganisation.
  expect(trade).toMatchObject({
    ...{ symbol: stock.symbol, address: stock.address, key, sender, recipient },
    venue: {
      ...{ kind: pool.kind, pool: pool.id, fee_bps: String(Number(fee) / 100), hooks },
      currency: { symbol: currency.symbol, address: currency.address },
    },
    ...{ side: sold === 0n ? null : sold > 0n ? 'sell' : 'buy', raw: String(raw), amount: textOf(raw, stock) },
    currency_amount: textOf(paidRaw, currency),
    block: { number: log.blockNumber },
    tx: { hash: log.transactionHash, log_index: log.index },
  })
  const [base, quote] = tokensOf(market)
  const baseAmount = CurrencyAmount.fromRawAmount(base, String(raw))
  const quoteAmount = CurrencyAmount.fromRawAmount(quote, String(paidRaw))
  expectPrice(trade.price, raw === 0n ? null : new Price({ baseAmount, quoteAmount }))
  expectPrice(trade.pool_price, priceIn(market, state))
}

const textOf = (raw: bigint, { decimals }: Market['stock']) => formatUnits(raw, decimals).replace(/\.0$/, '')

const expectPrice = (price: string | null, exact: Price<Token, Token> | null): void =>
  expect(isPrice(price, exact), `${price}, not ${exact?.toSignificant(20)}`).toBe(true)

/** Compares a price with an exact one. Null says that there is none, or that it rounds to 0. */
function isPrice(price: string | null, exact: Price<Token, Token> | null): boolean {
  const units = price === null ? 0n : unitsOf(price, PRICE_PLACES)
  if ((units === 0n) !== (price === null)) return false
  return exact ? isNearest(units, shifted(exactPrice(exact), PRICE_PLACES)) : price === null
}

/** Resolves when the newest quote of each pool says what the pool is now. */
export async function waitForQuotes({ listener, markets }: Markets): Promise<void> {
  for (const market of markets) {
    const state = await market.pool.state()
    const exact = state.liquidity === 0n ? null : priceIn(market, state)
    const newest = () => listener.messagesOf('quote').findLast(({ venue }) => venue.pool === market.pool.id)
    await listener.until(() => isPrice(newest()?.price ?? null, exact), `${exact?.toSignificant(20)} in ${market.pool.id}`)
  }
}

const tokensOf = ({ stock, currency }: Market) =>
  [stock, currency].map(({ address, decimals }) => new Token(1, address, decimals)) as [stock: Token, currency: Token]

/** The price of a pool by Uniswap's SDK. */
function priceIn(market: Market, { sqrtPriceX96, liquidity, tick }: Swap['state']): Price<Token, Token> {
  const [base, quote] = tokensOf(market)
  return new SdkPool(base, quote, market.fee, String(sqrtPriceX96), String(liquidity), Number(tick)).priceOf(base)
}

/**
 * Checks that after each trade the newest quote of its pool says the price that the trade left.
 * Returns the number of trades that were published after a quote of a newer block.
 */
export function countQuotesAhead(messages: readonly Message[], swaps: readonly Swap[]): number {
  const liquidityOf = new Map(swaps.map(({ key, state }) => [key, state.liquidity]))
  const quotes = new Map<string, MessageOf<'quote'>>()
  let ahead = 0
  for (const [place, message] of messages.entries()) {
    if (message.type === 'quote') quotes.set(message.venue.pool, message)
    if (message.type !== 'trade') continue
    const { key, venue, pool_price: price, block } = message
    const next = messages[place + 1]
    const quote = next?.type === 'quote' && next.venue.pool === venue.pool ? next : quotes.get(venue.pool)
    const state = liquidityOf.get(key) === 0n ? 'empty' : price === null ? 'thin' : 'ok'
    if (quote && quote.block.number > block.number) ahead += 1
    else expect(quote, `${key}, followed by ${next?.type}`).toMatchObject({ state, price: state === 'ok' ? price : null })
  }
  return ahead
}
