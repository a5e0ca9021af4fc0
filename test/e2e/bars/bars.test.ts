import { toEventSelector } from 'viem/utils'
import { describe, expect, it } from 'vitest'
import type { EmittedLog } from '../../../src/devnet/chain/chain-types.ts'
import { isTokenFirst } from '../../../src/devnet/tokens/devnet-pools.ts'
import { type Hex, toWord } from '../../../src/lib/hex.ts'
import { addParts, barFieldsOf, partOfTrade } from '../../../src/protocol/bars/bar-fold.ts'
import { intervals } from '../../../src/protocol/bars/bars-query.ts'
import type { MessageOf, TestListener } from '../../support/test-listener.ts'
import { exactBarsOf } from './exact-bars.ts'
import {
  barsAt,
  closeMinute,
  contentOf,
  fetchBars,
  MINUTE_S,
  makeBlock,
  openTradedMinutes,
  poolsOf,
  startMinute,
  type TradedMinutes,
  timeText,
  trade,
  waitForBar,
} from './traded-minutes.ts'

/** The last revision of each bar that a listener received, in the order of /v1/bars. */
const lastBarsOf = (listener: TestListener): readonly MessageOf<'bar'>[] =>
  [...new Map(listener.messagesOf('bar').map((bar) => [`${bar.start} ${bar.symbol}`, bar])).entries()]
    .sort(([a], [b]) => (a < b ? -1 : 1))
    .map(([, bar]) => bar)

/** Resolves when a listener has the seal of a trade that is made now. Everything before it is settled then. */
async function settle(opened: TradedMinutes, price: string): Promise<void> {
  const { key } = await trade(opened, price, { symbol: 'TSLAc' })
  makeBlock(opened.devnet)
  await opened.listener.waitFor('seal', ({ keys }) => keys.includes(key))
}

describe('the bars of a listener', () => {
  it('are those of an independent calculation from its sealed trades, and those of /v1/bars', async () => {
    const opened = await openTradedMinutes()
    const { devnet, relay, listener } = opened
    const first = devnet.chain.pending.timestamp
    // A minute of both tokens, in pools of each kind; two trades of one block.
    await trade(opened, '320')
    await trade(opened, '321.5', { kind: 'uniswap_v4' })
    makeBlock(devnet)
    await trade(opened, '318.25', { kind: 'slipstream' })
    await trade(opened, '401.125', { symbol: 'TSLAc' })
    const dropped = await trade(opened, '350')
    devnet.faults.drop(dropped.tx.hash)
    makeBlock(devnet)
    const amended = await trade(opened, '323')
    const [transfer] = devnet.chain.pending.transactions.find(({ hash }) => hash === amended.tx.hash)?.logs ?? []
    devnet.faults.change(amended.tx.hash, [transfer ?? expect.unreachable(), swapForNothing(devnet, 150_000_000n)])
    closeMinute(devnet)
    await waitForBar(listener, first)
    expect(listener.messagesOf('amend')).toMatchObject([
      { key: amended.key, update: { type: 'trade', amount: '1.5', price: null } },
    ])
    // A trade that was never pushed.
    devnet.faults.lostFlashes = 1
    devnet.swap('AAPLc', { price: '319' })
    makeBlock(devnet)
    await listener.waitFor('trade', ({ late }) => late)
    // A minute without a trade, and then a trade that the chain moves from the last block of a minute into the next one.
    closeMinute(devnet)
    const empty = devnet.chain.head.timestamp
    closeMinute(devnet)
    makeBlock(devnet)
    const moved = await trade(opened, '317', { kind: 'uniswap_v4' })
    devnet.faults.move(moved.tx.hash)
    const minute = startMinute(devnet)
    makeBlock(devnet)
    await listener.waitFor('trade', ({ key, tx }) => tx.hash === moved.tx.hash && key !== moved.key)
    closeMinute(devnet)
    const last = await waitForBar(listener, minute)

    const { bars } = await fetchBars(relay.url, '')
    const expected = exactBarsOf(listener.messages)
    expect(expected.map(({ start, symbol, trades }) => [start, symbol, trades])).toEqual([
      [timeText(first), 'AAPLc', 4],
      [timeText(first), 'TSLAc', 1],
      [timeText(first + MINUTE_S), 'AAPLc', 1],
      [timeText(minute), 'AAPLc', 1],
    ])
    expect(bars).toEqual(expected.map((bar) => ({ ...bar, revision: 1, partial: null, state: 'closed' })))
    expect(lastBarsOf(listener).map(contentOf)).toEqual(bars.map(contentOf))
    expect(listener.messagesOf('bar')).toHaveLength(bars.length)
    expect(bars.some(({ start }) => start === timeText(empty))).toBe(false)
    expect(last.blocks).toEqual({ first: moved.block.number + 1, last: moved.block.number + 1 })
  })

  it('are those that a program folds from the trades with the file of the SDK', async () => {
    const opened = await openTradedMinutes()
    const { devnet, listener } = opened
    const start = devnet.chain.pending.timestamp
    for (const [price, kind] of [
      ['320', 'uniswap_v3'],
      ['322', 'slipstream'],
      ['319.5', 'uniswap_v3'],
      ['318', 'uniswap_v4'],
    ] as const) {
      await trade(opened, price, { kind })
      if (price === '322') makeBlock(devnet)
    }
    closeMinute(devnet)
    const bar = await waitForBar(listener, start)
    const parts = listener.messagesOf('trade').map(({ venue, tx, block, currency_amount, amount, basis_bps, ...trade }) => {
      const place = { block: block.number, logIndex: tx.log_index, pool: venue.pool as Hex }
      const amounts = { amount: amount ?? '', currencyAmount: currency_amount, basisBps: basis_bps }
      return partOfTrade({ ...trade, ...place, ...amounts })
    })
    const { symbol, ...fields } = contentOf(bar)
    const frame = { ...bar, staleAfterS: bar.nav.stale_after_s }
    const folded = barFieldsOf(parts.toReversed().reduce(addParts), poolsOf(devnet).toSorted(), frame)
    expect(fields).toEqual({ ...folded, venues: bar.venues })
    expect([bar.trades, bar.venues.length]).toEqual([4, 3])
  })

  it('count a trade whose price is null in their number and in their volumes alone', async () => {
    const opened = await openTradedMinutes()
    const { devnet, relay, listener } = opened
    const start = devnet.chain.pending.timestamp
    const { price } = await trade(opened, '320')
    devnet.emit(swapForNothing(devnet, 150_000_000n))
    devnet.makeFlashblock()
    expect(await listener.waitFor('trade', ({ amount }) => amount === '1.5')).toMatchObject({ price: null, side: 'sell' })
    closeMinute(devnet)
    const bar = await waitForBar(listener, start)
    expect(bar).toMatchObject({ trades: 2, open: price, close: price, high: price, low: price, basis_bps: null, basis: null })
    expect([contentOf(bar)]).toEqual(exactBarsOf(listener.messages).map((exact) => ({ ...exact, revision: 1, partial: null })))
    expect((await fetchBars(relay.url, '/AAPLc')).bars.map(contentOf)).toEqual([contentOf(bar)])
  })
})

/** The event of a sale in a pool of Uniswap v3 for which nothing was paid. */
function swapForNothing({ pools }: TradedMinutes['devnet'], raw: bigint): EmittedLog {
  const pool = pools.find(({ symbol, kind }) => symbol === 'AAPLc' && kind === 'uniswap_v3') ?? expect.unreachable()
  const amounts = isTokenFirst(pool) ? ([raw, 0n] as const) : ([0n, raw] as const)
  const words = [...amounts, 2n ** 96n, pool.liquidity, 0n].map((value) => toWord(value).slice(2))
  const trader = toWord(1n)
  const event = toEventSelector('Swap(address,address,int256,int256,uint160,uint128,int24)')
  return { address: pool.id, topics: [event, trader, trader], data: `0x${words.join('')}` }
}

describe('a reorg of a minute that is over', () => {
  /** Two trades of a minute, the second one in its last block, and the block that closes it. */
  async function openClosedMinute() {
    const opened = await openTradedMinutes()
    const { devnet, listener } = opened
    const start = devnet.chain.pending.timestamp
    const first = await trade(opened, '320')
    makeBlock(devnet)
    makeBlock(devnet)
    const second = await trade(opened, '325')
    closeMinute(devnet)
    await waitForBar(listener, start)
    return { ...opened, start, hashes: [first.tx.hash, second.tx.hash] as const }
  }

  it.each<[string, (hashes: readonly [Hex, Hex]) => readonly Hex[], trades: number]>([
    ['one of its trades publishes the bar of the other one', ([, second]) => [second], 1],
    ['all of its trades publishes a bar without trades', (hashes) => hashes, 0],
  ])('that removes %s, as the next revision', async (_, removedOf, trades) => {
    const opened = await openClosedMinute()
    const { devnet, relay, listener, start, hashes } = opened
    devnet.reorg(4, removedOf(hashes))
    const bar = await waitForBar(listener, start, 2)
    const [exact] = exactBarsOf(listener.messages)
    if (trades > 0) expect(contentOf(bar)).toEqual({ ...exact, revision: 2, partial: null })
    else {
      const none = { open: null, high: null, low: null, close: null, vwap: null, basis_bps: null, basis: null, blocks: null }
      const zero = { trades: 0, volume: '0', shares: '0', currency_volume: '0', buy_volume: '0', buy_currency_volume: '0' }
      expect(bar).toMatchObject({ ...none, ...zero, venues: [], nav: { price: null } })
    }
    expect(bar.prev).toBe(barsAt(listener, start)[0]?.id)
    expect((await fetchBars(relay.url, '/AAPLc')).bars.map(contentOf)).toEqual([contentOf(bar)])
  })

  it('that moves a trade into the next minute changes both bars', async () => {
    const opened = await openClosedMinute()
    const { devnet, relay, listener, start, hashes } = opened
    const [, moved] = hashes
    devnet.reorg(4, [], [moved])
    await waitForBar(listener, start, 2)
    closeMinute(devnet)
    const next = await waitForBar(listener, start + MINUTE_S)
    expect(next.trades).toBe(1)
    const { bars } = await fetchBars(relay.url, '/AAPLc')
    expect(bars.map(({ revision }) => revision)).toEqual([2, 1])
    expect(bars).toEqual(
      exactBarsOf(listener.messages).map((bar, at) => ({ ...bar, revision: 2 - at, partial: null, state: 'closed' })),
    )
  })

  it('that keeps its trades publishes no bar again', async () => {
    const opened = await openClosedMinute()
    const { devnet, listener, start } = opened
    devnet.reorg(4, [])
    await settle(opened, '402')
    closeMinute(devnet)
    await waitForBar(listener, start + MINUTE_S, 1, 'TSLAc')
    expect(barsAt(listener, start)).toHaveLength(1)
  })
})

describe('bars that are not over', () => {
  it('are in the answer with open=true alone, of pre-confirmed trades as well', async () => {
    const opened = await openTradedMinutes()
    const { devnet, relay, listener } = opened
    const start = devnet.chain.pending.timestamp
    await trade(opened, '320')
    makeBlock(devnet)
    const dropped = await trade(opened, '330')
    const read = (query = '') => fetchBars(relay.url, `/AAPLc${query}`)
    expect((await read()).bars).toEqual([])
    const openBars = () => exactBarsOf(listener.messages, { hasOpen: true })
    expect((await read('?open=true')).bars).toEqual(
      openBars().map((bar) => ({ ...bar, revision: 1, partial: null, state: 'open' })),
    )
    expect((await read('?open=true')).bars).toMatchObject([{ trades: 2 }])
    devnet.faults.drop(dropped.tx.hash)
    makeBlock(devnet)
    await listener.waitFor('retract', ({ key }) => key === dropped.key)
    expect((await read('?open=true')).bars).toMatchObject([{ trades: 1, state: 'open' }])
    closeMinute(devnet)
    await waitForBar(listener, start)
    // The next minute is open now, and it is the last of the answer.
    await trade(opened, '321')
    expect((await read('?open=true')).bars.map(({ state, trades }) => [state, trades])).toEqual([
      ['closed', 1],
      ['open', 1],
    ])
    expect((await read('?open=true&order=desc')).bars.map(({ state }) => state)).toEqual(['open', 'closed'])
  })

  it('of five minutes appear when their last minute is over, as the fold of their minutes', async () => {
    const opened = await openTradedMinutes()
    const { devnet, relay, listener } = opened
    const seconds = intervals['5m']
    while (devnet.chain.pending.timestamp % seconds !== 0) makeBlock(devnet)
    const start = devnet.chain.pending.timestamp
    const read = async (query = '') => (await fetchBars(relay.url, `/AAPLc?interval=5m${query}`)).bars
    await trade(opened, '320')
    closeMinute(devnet)
    await trade(opened, '322', { kind: 'uniswap_v4' })
    while (devnet.chain.pending.timestamp < start + seconds - MINUTE_S) makeBlock(devnet)
    await trade(opened, '318', { kind: 'slipstream' })
    await waitForBar(listener, start + MINUTE_S)
    expect(await read()).toEqual([])
    const [open] = exactBarsOf(listener.messages, { seconds, hasOpen: true })
    expect(open?.trades).toBe(3)
    expect(await read('&open=true')).toEqual([{ ...open, revision: 3, partial: null, state: 'open' }])
    closeMinute(devnet)
    await waitForBar(listener, start + seconds - MINUTE_S)
    const [closed] = exactBarsOf(listener.messages, { seconds })
    expect(await read()).toEqual([{ ...closed, revision: 3, partial: null, state: 'closed' }])
    // A day is the fold of all its minutes.
    for (const [interval, length] of Object.entries(intervals))
      expect(
        (await fetchBars(relay.url, `/AAPLc?interval=${interval}&open=true`)).bars.map(
          ({ revision, state, partial, ...bar }) => bar,
        ),
      ).toEqual(exactBarsOf(listener.messages, { seconds: length, hasOpen: true }))
  })
})
