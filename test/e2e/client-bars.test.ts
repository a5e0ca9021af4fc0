import { isDeepStrictEqual } from 'node:util'
import { expect, it, onTestFinished } from 'vitest'
import type { Devnet } from '../../src/devnet/devnet.ts'
import { type Bar, type BarInterval, type BarsPage, connect } from '../../src/sdk/client/index.ts'
import { listenToAll, openDevnet, openRelayFor } from '../support/test-stack.ts'

const BLOCK_S = 20
const MINUTE_S = 60

/** A relay that follows the pools of a devnet whose next block begins the third minute of five. */
async function openMarket() {
  const devnet = await openDevnet({ pace: 'manual', calls: true, blockMs: BLOCK_S * 1_000, safeDepth: 3 })
  const { poolsText, quoteTokens } = devnet
  const pools = poolsText.split(',').filter((pool) => pool.startsWith('AAPLc'))
  const relay = await openRelayFor(devnet, { POOLS: pools.join(','), QUOTE_TOKENS: quoteTokens })
  const listener = await listenToAll({ relay }, 'start')
  await listener.until(() => listener.messagesOf('venue').length === pools.length, 'each pool to be followed')
  const timeOf = () => devnet.chain.pending.timestamp
  const makeBlock = () => {
    devnet.makeFlashblock()
    devnet.seal()
  }
  while (timeOf() % (5 * MINUTE_S) !== 2 * MINUTE_S) makeBlock()
  return { devnet, relay, listener, makeBlock, endMinute: () => endMinute(devnet, makeBlock) }
}

/** Makes blocks up to the first one of the next minute, which ends this one. */
function endMinute(devnet: Devnet, makeBlock: () => void): void {
  do makeBlock()
  while (devnet.chain.pending.timestamp % MINUTE_S !== 0)
  makeBlock()
}

/** Reads bars as long as the test runs. */
function readBars(url: string, interval: BarInterval) {
  const bars: Bar[] = []
  const end = new AbortController()
  onTestFinished(() => end.abort())
  let wake = () => {}
  const failed = (async () => {
    for await (const bar of connect(url).bars('AAPLc', { interval, signal: end.signal })) {
      bars.push(bar)
      wake()
    }
  })()
  const until = async (isReached: (bar: Bar) => boolean, from = 0): Promise<Bar> => {
    for (;;) {
      const found = bars.slice(from).find(isReached)
      if (found) return found
      await Promise.race([failed, new Promise<void>((resolve) => (wake = resolve))])
    }
  }
  return { bars, until }
}

async function storedBars(url: string, query: string): Promise<readonly Bar[]> {
  const { bars } = (await (await fetch(`${url}/v1/bars/AAPLc?${query}`)).json()) as BarsPage
  return bars
}

/** Resolves once a client has the bar that the relay answers with. */
async function expectStored({ until }: ReturnType<typeof readBars>, url: string, query: string): Promise<void> {
  const [stored] = await storedBars(url, query)
  expect(await until((bar) => isDeepStrictEqual(bar, stored))).toEqual(stored)
}

it('the last open bar of a client is the bar that the relay closes, at its first revision', async () => {
  const { devnet, relay, listener, makeBlock, endMinute } = await openMarket()
  const swap = async (price: string, kind: 'uniswap_v3' | 'uniswap_v4' = 'uniswap_v3') => {
    const hash = devnet.swap('AAPLc', { price, kind })
    devnet.makeFlashblock()
    await listener.waitFor('trade', ({ tx }) => tx.hash === hash)
    return hash
  }
  // One trade is stored before the client asks, and one is gone again.
  await swap('330')
  const [minutes, fives] = [readBars(relay.url, '1m'), readBars(relay.url, '5m')]
  for (const { until } of [minutes, fives]) await until(({ trades, state }) => trades === 1 && state === 'open')
  makeBlock()
  await swap('340', 'uniswap_v4')
  const gone = await swap('500')
  for (const { until } of [minutes, fives]) await until(({ trades }) => trades === 3)
  devnet.faults.drop(gone)
  endMinute()
  const closed = await minutes.until(({ state }) => state === 'closed')
  const lastOpen = minutes.bars.findLast(({ start, state }) => start === closed.start && state === 'open')
  expect(lastOpen).toEqual({ ...closed, state: 'open' })
  expect(closed).toMatchObject({ revision: 1, trades: 2, partial: null })
  expect(closed.venues).toHaveLength(2)
  expect(await storedBars(relay.url, 'interval=1m')).toEqual([closed])
  await expectStored(fives, relay.url, 'interval=5m&open=true')

  // In the next minute the five minutes are a fold of one minute and of trades, and then the relay's.
  const before = fives.bars.length
  await swap('350')
  const open = await fives.until(({ trades }) => trades === 3, before)
  expect(open).toMatchObject({ open: closed.open, revision: 2, blocks: { first: closed.blocks?.first } })
  await expectStored(fives, relay.url, 'interval=5m&open=true')
  endMinute()
  // The bar of the last minute ends the five.
  await swap('360')
  endMinute()
  const five = await fives.until(({ state }) => state !== 'open')
  expect(await storedBars(relay.url, 'interval=5m')).toEqual([five])
  expect(five).toMatchObject({ trades: 4, revision: 3 })
})
