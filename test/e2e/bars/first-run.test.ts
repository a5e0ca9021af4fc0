import { describe, expect, it } from 'vitest'
import { feeds } from '../../../src/devnet/tokens/feeds.ts'
import type { MessageOf } from '../../support/test-listener.ts'
import { openRelayFor, transfer } from '../../support/test-stack.ts'
import { openedOnce } from '../gateway/node-and-gateway.ts'
import {
  barsAt,
  closeMinute,
  contentOf,
  fetchBars,
  listenFromStart,
  makeBlock,
  openTradedMinutes,
  poolSettings,
  poolsOf,
  trade,
  waitForBar,
  waitForPools,
} from './traded-minutes.ts'

/** More than are settled one by one. */
const QUIET_BLOCKS = 120

/** The fields of a fact that do not depend on how it was received. */
const onChain = ({ key, type, raw, block }: MessageOf<'trade' | 'transfer'>) => ({ key, type, raw, block: block.number })

/** A bar without what the NAV adds: the blocks of the devnet are ahead of the clock, by which the relay that was there has valued them. */
function withoutNav(bar: Parameters<typeof contentOf>[0]) {
  const { nav: _nav, basis: _basis, basis_bps: _bps, ...content } = contentOf(bar)
  return content
}

const feed = feeds.find(({ token }) => token.symbol === 'AAPLc') ?? expect.unreachable()
const feedSetting = { FEEDS: `AAPLc=${feed.proxy}` }

/** A relay that was there from the start, and one that starts an hour later and reads the past. Meanwhile the multiplier doubles. */
const both = openedOnce(async (lifecycle) => {
  const opened = await openTradedMinutes({}, feedSetting, lifecycle)
  const { devnet, listener } = opened
  const start = devnet.chain.pending.timestamp
  devnet.publishRound({ symbol: 'AAPLc', price: '318.5' })
  await trade(opened, '320')
  closeMinute(devnet)
  transfer({ devnet })
  devnet.issuer.split({ symbol: 'AAPLc', to: '2' })
  await trade(opened, '321', { kind: 'uniswap_v4' })
  devnet.issuer.split({ symbol: 'TSLAc', to: '3', effectiveAt: devnet.chain.pending.timestamp + 30 })
  await trade(opened, '400', { symbol: 'TSLAc' })
  closeMinute(devnet)
  devnet.publishRound({ symbol: 'AAPLc', price: '319.5' })
  await trade(opened, '322')
  await trade(opened, '401', { symbol: 'TSLAc' })
  closeMinute(devnet)
  await waitForBar(listener, start + 120)
  for (let block = 0; block < QUIET_BLOCKS; block += 1) makeBlock(devnet)
  const late = await openRelayFor(devnet, { ...poolSettings(devnet), ...feedSetting, BACKFILL_FIRST: '1h' }, lifecycle)
  const lateListener = await listenFromStart(late.url, lifecycle)
  await waitForPools(lateListener, devnet)
  await lateListener.until(() => lateListener.messagesOf('trade').length === 5, 'all trades')
  makeBlock(devnet)
  await waitForBar(lateListener, start + 120)
  return { ...opened, start, late, lateListener }
})

describe('a relay that begins in the past', () => {
  it('publishes each fact as one that was there, with the values of its block', async () => {
    const { listener, lateListener } = both()
    for (const type of ['trade', 'transfer'] as const)
      expect(lateListener.messagesOf(type).map(onChain)).toEqual(listener.messagesOf(type).map(onChain))
    const values = lateListener.messagesOf('trade').map(({ symbol, multiplier, nav }) => [symbol, multiplier, nav.price])
    expect(values.filter(([symbol]) => symbol === 'AAPLc')).toEqual([
      ['AAPLc', '1', '318.5'],
      ['AAPLc', '2', '318.5'],
      ['AAPLc', '2', '319.5'],
    ])
    expect(values.filter(([symbol]) => symbol === 'TSLAc').map(([, multiplier]) => multiplier)).toEqual(['1', '3'])
    expect(new Set(lateListener.messagesOf('trade').map(({ late, ingest }) => `${late} ${ingest.source}`))).toEqual(
      new Set(['true backfill']),
    )
    expect(lateListener.messagesOf('amend')).toEqual([])
    expect(lateListener.messagesOf('hole')).toEqual([])
  })

  it('follows the pools from the block after which it begins', async () => {
    const { devnet, lateListener } = both()
    const [first = 0] = lateListener.messagesOf('venue').map(({ from_block }) => from_block)
    expect(new Set(lateListener.messagesOf('venue').map(({ from_block }) => from_block))).toEqual(new Set([first]))
    const { timestamp = 0 } = devnet.chain.block(first - 1) ?? {}
    expect(devnet.chain.head.timestamp - 3_600 - timestamp).toBeLessThan(60)
    expect(lateListener.messagesOf('venue')).toHaveLength(poolsOf(devnet).length + poolsOf(devnet, 'TSLAc').length)
  })

  it('has the bars of that time', async () => {
    const { start, listener, relay, late, lateListener } = both()
    for (const minute of [start, start + 60, start + 120])
      expect(barsAt(lateListener, minute).map(withoutNav)).toEqual(barsAt(listener, minute).map(withoutNav))
    expect((await fetchBars(late.url, '?interval=5m')).bars.map(withoutNav)).toEqual(
      (await fetchBars(relay.url, '?interval=5m')).bars.map(withoutNav),
    )
  })
})
