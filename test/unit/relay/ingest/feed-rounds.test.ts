import { describe, expect, it } from 'vitest'
import type { Hex } from '../../../../src/lib/hex.ts'
import type { Update } from '../../../../src/protocol/updates.ts'
import type { Log } from '../../../../src/relay/chain/logs/log-parser.ts'
import type { IngestEvent } from '../../../../src/relay/ingest/fold-batch.ts'
import { openRoundsAt } from '../../../../src/relay/ingest/nav-rounds.ts'
import { APPLE, apple, TESLA, tesla } from '../tokens/stock-records.ts'
import { listEvent, openIngest, partial, play, type Step, sealedEventOfLogs, transactionEvent } from './reducer-fixture.ts'
import { answerUpdated, transfer } from './token-logs.ts'

const proxy: Hex = `0x${'f1'.repeat(20)}`
const aggregator: Hex = `0x${'a9'.repeat(20)}`
const nextAggregator: Hex = `0x${'a8'.repeat(20)}`
const LISTED_AT = Date.parse('2026-11-20T11:30:03Z') / 1_000

/** A round of Apple's feed, `after` seconds later than the list's value. */
const round = (block: number, number: number, price: string, after: number, feed: Hex = aggregator): Log =>
  answerUpdated({ block, index: number, address: feed }, price, BigInt(number), LISTED_AT + after)
const feedAnswer = (overrides: Partial<Extract<IngestEvent, { type: 'feed' }>> = {}): IngestEvent => ({
  ...{ type: 'feed', proxy, aggregator, phase: 1, decimals: 8, round: null },
  ...overrides,
})
const newAggregator = { aggregator: nextAggregator, phase: 2 } as const
const push = (...logs: readonly Log[]) => transactionEvent(logs)
const sealed = (...[block, logs, options]: Parameters<typeof sealedEventOfLogs>) =>
  sealedEventOfLogs(block, logs, { addresses: [APPLE as Hex, aggregator, nextAggregator], ...options })

const tell = (update: Update): string => {
  if (update.type !== 'nav') return 'reference_value' in update ? `${update.type} ${update.reference_value}` : update.type
  return `nav ${update.nav.price ?? update.nav.state} by ${update.source}, was ${update.before?.price ?? update.before?.state}`
}
const openListed = (feeds = [{ token: 'AAPL', proxy, aggregator }]) => openIngest(tell, { feeds })

describe('a feed round', () => {
  const seventh = round(5, 7, '330.5', 60)
  const pushed: Step = [push(seventh), 'nav 330.5 by log, was 324.3014']

  it('is the NAV as soon as it is pre-confirmed, and is not published as a log', async () => {
    const ingest = await openListed()
    await play(ingest, [pushed, [push(transfer({ block: 5, index: 9 }, 200_000_000n)), 'transfer 661.00']])
    expect(ingest.counts.unlisted).toBe(0)
  })

  it.each<[string, ...Step[]]>([
    [
      'is published once, however often it arrives',
      pushed,
      [[push(seventh), sealed(5, [seventh]), push(seventh)], ''],
      [listEvent(apple({ nav_price: 330.5, nav_price_updated_at: '2026-11-20T11:31:03Z' })), ''],
    ],
    [
      'gives way to the value before it if it is not sealed',
      pushed,
      [sealed(5, []), 'nav 324.3014 by list, was 330.5'],
      [push(seventh), ''],
    ],
    [
      'stays if its block has logs that cannot be read',
      pushed,
      [partial(sealed(5, [])), ''],
      [sealed(5, []), 'nav 324.3014 by list, was 330.5'],
    ],
    [
      'with an older time than the one before does not take the NAV back, pre-confirmed or sealed',
      pushed,
      [[push(round(6, 8, '329', 30)), sealed(6, [round(6, 8, '329', 30)])], ''],
      [push(round(7, 9, '331', 90)), 'nav 331 by log, was 330.5'],
    ],
  ])('%s', async (_, ...steps) => {
    await play(await openListed(), steps)
  })

  it('survives a restart, and its block can still settle it', async () => {
    const ingest = await openListed()
    await play(ingest, [pushed])
    const again = await ingest.restart()
    expect(await again.publish(listEvent(apple()))).toEqual([])
    expect(openRoundsAt(again.state, 5)).toMatchObject([{ address: aggregator }])
    expect(await again.publish(sealed(5, []))).toEqual(['nav 324.3014 by list, was 330.5'])
  })
})

describe('a price feed', () => {
  it.each<[string, ...Step[]]>([
    [
      'publishes the newest round of its answer at once',
      [
        feedAnswer({ round: { answer: 33_050_000_000n, round: 7n, updatedAt: BigInt(LISTED_AT + 60) } }),
        'nav 330.5 by log, was 324.3014',
      ],
      [push(round(5, 7, '330.5', 60)), ''],
    ],
    [
      'moves to a new aggregator, which counts its rounds from one',
      [[feedAnswer(), push(round(5, 900, '330.5', 60))], 'nav 330.5 by log, was 324.3014'],
      [push(round(6, 1, '331', 90, nextAggregator)), ''],
      [[feedAnswer(newAggregator), push(round(6, 2, '332', 120, nextAggregator))], 'nav 332 by log, was 330.5'],
      [push(round(7, 901, '300', 150)), ''],
    ],
    [
      'publishes nothing when the rounds of its new aggregator are sealed',
      [[feedAnswer(), push(round(5, 900, '330.5', 60))], 'nav 330.5 by log, was 324.3014'],
      [
        [
          feedAnswer({ ...newAggregator, round: { answer: 35_000_000_000n, round: 1n, updatedAt: BigInt(LISTED_AT + 90) } }),
          push(round(6, 2, '360', 120, nextAggregator)),
        ],
        'nav 350 by log, was 330.5, nav 360 by log, was 350',
      ],
      [sealed(6, [round(6, 2, '360', 120, nextAggregator)]), ''],
    ],
  ])('%s', async (_, ...steps) => {
    await play(await openListed(), steps)
  })

  it('keeps its last aggregator over a restart, before it answers again', async () => {
    const { publish, restart } = await openListed()
    await publish(feedAnswer(newAggregator))
    const again = await restart()
    expect(again.state.feeds).toMatchObject([{ aggregators: [{ address: nextAggregator, phase: 2, decimals: 8 }] }])
    expect(await again.publish(push(round(6, 1, '331', 90, nextAggregator)))).toEqual(['nav 331 by log, was 324.3014'])
    const other = await restart({ feeds: [{ token: 'TSLAc', proxy, aggregator }] })
    expect(other.state.feeds).toMatchObject([{ token: 'TSLAc', aggregators: [{ address: aggregator }] }])
  })

  it('without an aggregator setting counts as its own aggregator', async () => {
    const { publish } = await openListed([{ token: APPLE, proxy, aggregator: proxy }])
    expect(await publish(push(round(5, 7, '330.5', 60, proxy)))).toEqual(['nav 330.5 by log, was 324.3014'])
  })

  it('of a token that is not listed yet waits for the listing', async () => {
    const { publish } = await openListed([{ token: 'TSLAc', proxy, aggregator }])
    expect(await publish(push(round(5, 7, '330.5', 60)))).toEqual([])
    await publish(listEvent(apple(), tesla({ nav_price: undefined, nav_price_updated_at: undefined })))
    expect(await publish(push(round(5, 8, '331', 90)))).toEqual([])
    expect(await publish({ type: 'subscribed', filters: [{ addresses: [TESLA as Hex] }] })).toEqual([
      ...['token', 'multiplier', 'nav 331 by log, was undefined'],
    ])
  })
})
