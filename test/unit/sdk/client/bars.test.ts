import { describe, expect, it, onTestFinished, vi } from 'vitest'
import type { BarsOptions } from '../../../../src/sdk/client/bars.ts'
import { examples } from '../../../../src/sdk/generated/examples.ts'
import type { Bar } from '../../../../src/sdk/generated/messages.ts'
import type { GivenFields } from '../../../../src/sdk/testing/scripted-tape.ts'
import { TestRelay } from '../../../../src/sdk/testing/test-relay.ts'

const at = (minute: number, second = 0) => new Date(Date.UTC(2026, 10, 20, 14, minute, second)).toISOString()

/** Publishes trades and bars of the minutes of one hour. */
class Market {
  readonly relay = new TestRelay()
  #block = 1_000

  trade(minute: number, price: string, fields: GivenFields<'trade'> = {}) {
    this.#block += 1
    const block = { number: this.#block, hash: null, timestamp: at(minute, 30) }
    const key = `${this.#block}-0x1-0`
    return this.relay.publish('trade', {
      block,
      key,
      price,
      amount: '2',
      shares: '2',
      currency_amount: `${2 * Number(price)}`,
      side: 'buy',
      ...fields,
    })
  }

  bar(minute: number, close: string, fields: GivenFields<'bar'> = {}) {
    const [first, last] = [minute, minute]
    return this.relay.publish('bar', {
      start: at(minute),
      end: at(minute + 1),
      revision: 1,
      open: close,
      high: close,
      low: close,
      close,
      blocks: { first, last },
      ...fields,
    })
  }
}

/** Reads bars as long as the test runs. */
async function follow({ relay }: Market, options: BarsOptions = {}) {
  const bars: Bar[] = []
  const end = new AbortController()
  onTestFinished(() => end.abort())
  const done = (async () => {
    for await (const bar of relay.connect({ retry: { maxDelay: 1 } }).bars('AAPLc', { signal: end.signal, ...options }))
      bars.push(bar)
  })()
  await relay.connected()
  const texts = () => bars.map(({ start, close, revision, state }) => `${start.slice(14, 16)} ${close} ${revision} ${state}`)
  const expectBars = (...expected: readonly string[]) => vi.waitFor(() => expect(texts()).toEqual(expected))
  return { bars, done, end, expectBars }
}

describe('bars of a token', () => {
  it('are those that are stored, the open one of its trades, and the published ones', async () => {
    const market = new Market()
    market.bar(5, '10')
    market.bar(6, '11')
    const stored = market.trade(7, '12')
    const { bars, expectBars } = await follow(market)
    await expectBars('05 10 1 closed', '06 11 1 closed', '07 12 1 open')
    market.trade(7, '13')
    market.relay.retract(stored)
    market.bar(7, '13')
    market.bar(6, '10.5', { revision: 2 })
    market.trade(8, '14')
    await expectBars(
      '05 10 1 closed',
      '06 11 1 closed',
      '07 12 1 open',
      '07 13 1 open',
      '07 13 1 open',
      '07 13 1 closed',
      '06 10.5 2 closed',
      '08 14 1 open',
    )
    expect(bars[3]).toMatchObject({
      open: '12',
      high: '13',
      low: '12',
      trades: 2,
      volume: '4',
      currency_volume: '50',
      vwap: '12.5',
      venues: [examples.trade.venue.pool],
    })
    expect(bars[4]).toMatchObject({ open: '13', trades: 1, volume: '2', buy_volume: '2', blocks: { first: 1_002, last: 1_002 } })
  })

  it('of a longer interval are folds of the minutes that are over, and of the trades after them', async () => {
    const market = new Market()
    market.bar(4, '9')
    market.bar(5, '10', { volume: '1', currency_volume: '10', trades: 1 })
    market.trade(6, '12')
    const { bars, expectBars } = await follow(market, { interval: '5m' })
    await expectBars('00 9 1 closed', '05 12 2 open')
    expect(bars[1]).toMatchObject({
      start: at(5),
      end: at(10),
      open: '10',
      high: '12',
      low: '10',
      trades: 2,
      volume: '3',
      currency_volume: '34',
    })
    market.bar(6, '12.5')
    market.trade(8, '13')
    market.bar(9, '14')
    await expectBars('00 9 1 closed', '05 12 2 open', '05 12.5 2 open', '05 13 3 open', '05 14 3 closed')
    // A minute of a bar that is over changes.
    market.bar(6, '20', { revision: 2, high: '20' })
    await vi.waitFor(() => expect(bars.at(-1)).toMatchObject({ start: at(5), revision: 4, high: '20', state: 'closed' }))
  })

  it('of a longer interval are over when a later one begins', async () => {
    const market = new Market()
    const { expectBars } = await follow(market, { interval: '5m' })
    market.trade(6, '12')
    await expectBars('05 12 1 open')
    market.bar(6, '12')
    market.bar(11, '13')
    await expectBars('05 12 1 open', '05 12 1 open', '05 12 1 closed', '10 13 1 open')
  })

  it('count an amended trade as it is now, and a sealed one in the minute of its block', async () => {
    const market = new Market()
    const { bars, expectBars } = await follow(market)
    const trade = market.trade(5, '10', { block: { number: 7, hash: null, timestamp: null }, key: '7-0x1-0' })
    market.relay.seal({ ...trade, block: { ...trade.block, timestamp: at(6) } })
    await expectBars('06 10 1 open')
    market.relay.amend(trade, { price: '11', block: { ...trade.block, timestamp: at(6) } })
    await expectBars('06 10 1 open', '06 11 1 open')
    market.relay.retract(trade)
    await expectBars('06 10 1 open', '06 11 1 open', '06 null 1 open')
    expect(bars[2]).toMatchObject({ trades: 0, volume: '0', venues: [], blocks: null })
  })

  it('are right although a trade is lost on the way, and read again after its retract', async () => {
    const market = new Market()
    const { bars } = await follow(market)
    market.trade(5, '10')
    const lost = market.relay.lose('trade', { block: { number: 7, hash: null, timestamp: at(5) }, key: '7-0x1-0', price: '12' })
    market.relay.retract(lost)
    market.trade(5, '11')
    await vi.waitFor(() => expect(bars.at(-1)).toMatchObject({ trades: 2, high: '11', close: '11' }))
  })

  it('of the pools of a request count their trades alone', async () => {
    const market = new Market()
    const pool = `0x${'ab'.repeat(20)}`
    const venue = { ...examples.trade.venue, pool }
    const { expectBars } = await follow(market, { pools: [pool.toUpperCase()] })
    market.trade(5, '10')
    market.trade(5, '11', { venue })
    await expectBars('05 11 1 open')
    // No message has the bar of these pools, so it is read once the minute is over.
    market.bar(5, '10.5', { venues: [pool] })
    await expectBars('05 11 1 open', '05 10.5 1 closed')
    const late = market.trade(5, '12', { venue, late: true })
    market.bar(5, '12', { venues: [pool], revision: 2 })
    market.relay.publish('finality', { block: { ...late.block, timestamp: at(7) } })
    await expectBars('05 11 1 open', '05 10.5 1 closed', '05 12 2 closed')
  })

  it('do not count the trades of a pool that the relay does not count', async () => {
    const market = new Market()
    market.bar(4, '9')
    const other = {
      ...examples.trade.venue,
      pool: `0x${'ab'.repeat(20)}`,
      currency: { symbol: 'X', address: `0x${'cd'.repeat(20)}` },
    }
    const { expectBars } = await follow(market)
    market.trade(5, '10')
    market.trade(5, '11', { venue: other })
    market.trade(5, '12')
    await expectBars('04 9 1 closed', '05 10 1 open', '05 12 1 open')
  })

  it('begin with the newest, or with a time, as the program wants', async () => {
    const market = new Market()
    for (const minute of [1, 2, 3, 4]) market.bar(minute, `${minute}`)
    const [newest, since] = [await follow(market, { limit: 2 }), await follow(market, { since: at(2) })]
    await newest.expectBars('03 3 1 closed', '04 4 1 closed')
    await since.expectBars('02 2 1 closed', '03 3 1 closed', '04 4 1 closed')
  })
})

describe('bars of a relay that cannot be reached for a while', () => {
  it('go on without a loss after the connection is back', async () => {
    const market = new Market()
    market.bar(4, '9')
    const { expectBars } = await follow(market)
    market.trade(5, '10')
    await expectBars('04 9 1 closed', '05 10 1 open')
    market.relay.disconnect()
    market.bar(5, '11')
    await expectBars('04 9 1 closed', '05 10 1 open', '05 11 1 closed')
  })

  it('are read again if their messages are no longer stored', async () => {
    const market = new Market()
    const { expectBars } = await follow(market)
    market.bar(4, '9')
    await expectBars('04 9 1 closed')
    market.relay.stop()
    market.bar(4, '10', { revision: 2 })
    market.relay.deleteHistory()
    market.relay.start()
    await expectBars('04 9 1 closed', '04 10 2 closed')
  })

  it('end without an error when the program wants it, and with one if the relay refuses them', async () => {
    const market = new Market()
    const { done, end } = await follow(market)
    end.abort()
    await expect(done).resolves.toBeUndefined()
    const bars = market.relay.connect().bars('NONEc')
    await expect(bars.next()).rejects.toMatchObject({ code: 404, reason: 'unknown_symbol' })
    const unknown = market.relay.connect().bars('AAPLc', { interval: '2m' as '1m' })
    await expect(unknown.next()).rejects.toThrow('interval must be one of 1m, 5m, 15m, 1h, 4h, 1d')
  })
})
