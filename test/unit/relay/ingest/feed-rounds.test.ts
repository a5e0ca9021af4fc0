import { describe, expect, it, onTestFinished } from 'vitest'
import type { Hex } from '../../../../src/lib/hex.ts'
import { Update } from '../../../../src/protocol/updates.ts'
import type { Log } from '../../../../src/relay/chain/logs/log-parser.ts'
import type { IngestEvent } from '../../../../src/relay/ingest/fold-batch.ts'
import { openRoundsAt } from '../../../../src/relay/ingest/nav-rounds.ts'
import type { Entry } from '../../../../src/relay/tape/tape.ts'
import { blockHash } from '../chain/node-json.ts'
import { openTestTape } from '../tape/test-tape.ts'
import { APPLE, apple, NOON, TESLA, tesla } from '../tokens/stock-records.ts'
import { listEvent, openReducer, sealedEventOfLogs, statusEvent, subscribedEvent, transactionEvent } from './reducer-fixture.ts'
import { answerUpdated, transfer } from './token-logs.ts'

const proxy: Hex = `0x${'f1'.repeat(20)}`
const aggregator: Hex = `0x${'a9'.repeat(20)}`
const nextAggregator: Hex = `0x${'a8'.repeat(20)}`
const feeds = [{ token: 'AAPL', proxy, aggregator }]
const LISTED_AT = Date.parse('2026-11-20T11:30:03Z') / 1_000

/** A round of Apple's feed, `after` seconds later than the list's value. */
const round = (block: number, number: number, price: string, after: number, feed: Hex = aggregator): Log =>
  answerUpdated({ block, index: number, address: feed }, price, BigInt(number), LISTED_AT + after)
const feedAnswer = (overrides: Partial<Extract<IngestEvent, { type: 'feed' }>> = {}): IngestEvent => ({
  ...{ type: 'feed', proxy, aggregator, phase: 1, decimals: 8, round: null },
  ...overrides,
})
const addresses = [APPLE as Hex, aggregator, nextAggregator]

const openListed = async (feedSettings = feeds) => {
  const openedTape = await openTestTape()
  onTestFinished(() => openedTape.close())
  const fixture = await openReducer(openedTape.tape, { now: NOON }, feedSettings)
  await fixture.publish(listEvent(apple()), subscribedEvent, statusEvent('pendingLogs'))
  const publish = async (...batch: IngestEvent[]) => (await fixture.publish(...batch)).map(summarise)
  return { openedTape, ...fixture, publish }
}
const summarise = ({ update, text }: Entry): string => {
  expect(JSON.stringify(Update.parse(JSON.parse(text)))).toBe(text)
  if (update.type !== 'nav') return 'reference_value' in update ? `${update.type} ${update.reference_value}` : update.type
  return `nav ${update.nav.price ?? update.nav.state} by ${update.source}, was ${update.before?.price ?? update.before?.state}`
}

describe('a feed round', () => {
  it('is the NAV as soon as it is pre-confirmed, and is not published as a log', async () => {
    const { publish, counts } = await openListed()
    expect(await publish(transactionEvent([round(5, 7, '330.5', 60)]))).toEqual(['nav 330.5 by log, was 324.3014'])
    expect(await publish(transactionEvent([transfer({ block: 5, index: 9 }, 200_000_000n)]))).toEqual(['transfer 661.00'])
    expect(counts.unlisted).toBe(0)
  })

  it('is published once, however often it arrives', async () => {
    const { publish } = await openListed()
    const log = round(5, 7, '330.5', 60)
    await publish(transactionEvent([log]))
    expect(await publish(transactionEvent([log]), sealedEventOfLogs(5, [log], { addresses }), transactionEvent([log]))).toEqual([])
    expect(await publish(listEvent(apple({ nav_price: 330.5, nav_price_updated_at: '2026-11-20T11:31:03Z' })))).toEqual([])
  })

  it('gives way to the value before it if it is not sealed', async () => {
    const { publish } = await openListed()
    await publish(transactionEvent([round(5, 7, '330.5', 60)]))
    expect(await publish(sealedEventOfLogs(5, [], { addresses }))).toEqual(['nav 324.3014 by list, was 330.5'])
    expect(await publish(transactionEvent([round(5, 7, '330.5', 60)]))).toEqual([])
  })

  it('stays if its block has logs that cannot be read', async () => {
    const { publish } = await openListed()
    await publish(transactionEvent([round(5, 7, '330.5', 60)]))
    const sealed = sealedEventOfLogs(5, [], { addresses })
    expect(await publish({ ...sealed, blocks: sealed.blocks.map((block) => ({ ...block, isPartial: true as const })) })).toEqual([])
    expect(await publish(sealed)).toEqual(['nav 324.3014 by list, was 330.5'])
  })

  it('gives way to the round before it after a reorganisation', async () => {
    const { publish } = await openListed()
    await publish(
      sealedEventOfLogs(4, [round(4, 6, '329', 30)], { addresses }),
      sealedEventOfLogs(5, [round(5, 7, '330.5', 60)], { addresses }),
    )
    expect(await publish(sealedEventOfLogs(5, [], { addresses, hash: blockHash(99) }))).toEqual(['nav 329 by log, was 330.5'])
  })

  it('is published with its sealed block if it was never pushed', async () => {
    const { publish } = await openListed()
    expect(await publish(sealedEventOfLogs(5, [round(5, 7, '330.5', 60)], { addresses }))).toEqual([
      'nav 330.5 by log, was 324.3014',
    ])
  })

  it('does not replace a newer round when it is backfilled', async () => {
    const { publish } = await openListed()
    await publish(sealedEventOfLogs(500, [round(500, 9, '340', 90)], { addresses }))
    const beneath = { addresses, via: 'backfill', newest: 500, cursor: 5 } as const
    expect(await publish(sealedEventOfLogs(5, [round(5, 7, '330.5', 60)], beneath))).toEqual([])
  })

  it('with an older time than the one before does not take the NAV back, pre-confirmed or sealed', async () => {
    const { publish } = await openListed()
    await publish(transactionEvent([round(5, 7, '330.5', 60)]))
    const older = round(6, 8, '329', 30)
    expect(await publish(transactionEvent([older]), sealedEventOfLogs(6, [older], { addresses }))).toEqual([])
    expect(await publish(transactionEvent([round(7, 9, '331', 90)]))).toEqual(['nav 331 by log, was 330.5'])
  })

  it.each(['0', '-1'])('of price %s is invalid and has no price', async (price) => {
    const { publish, openedTape } = await openListed()
    expect(await publish(transactionEvent([round(5, 7, price, 60)]))).toEqual(['nav invalid by log, was 324.3014'])
    const [nav] = (await openedTape.tape.readAfter(openedTape.tape.end() - 1, 1)).map(({ update }) => update)
    expect(nav).toMatchObject({ nav: { price: null, state: 'invalid' } })
  })

  it('without a time is invalid and has no price until the next round', async () => {
    const { publish, openedTape } = await openListed()
    expect(await publish(transactionEvent([round(5, 7, '330.5', -LISTED_AT)]))).toEqual(['nav invalid by log, was 324.3014'])
    const [nav] = (await openedTape.tape.readAfter(openedTape.tape.end() - 1, 1)).map(({ update }) => update)
    expect(nav).toMatchObject({ nav: { price: null, updated_at: null, state: 'invalid' } })
    expect(await publish(transactionEvent([round(5, 8, '331', 60)]))).toEqual(['nav 331 by log, was invalid'])
  })

  it('gives way to a newer value of the list', async () => {
    const { publish } = await openListed()
    await publish(transactionEvent([round(5, 7, '330.5', 60)]))
    expect(await publish(listEvent(apple({ nav_price: 331, nav_price_updated_at: '2026-11-20T11:40:00Z' })))).toEqual([
      'nav 331 by list, was 330.5',
    ])
  })

  it('survives a restart, and its block can still settle it', async () => {
    const { publish, openedTape } = await openListed()
    await publish(transactionEvent([round(5, 7, '330.5', 60)]))
    const again = await openReducer(openedTape.tape, { now: NOON }, feeds)
    expect((await again.publish(listEvent(apple()))).map(summarise)).toEqual([])
    expect(openRoundsAt(again.state, 5)).toMatchObject([{ address: aggregator }])
    expect((await again.publish(sealedEventOfLogs(5, [], { addresses }))).map(summarise)).toEqual([
      'nav 324.3014 by list, was 330.5',
    ])
  })
})

describe('a price feed', () => {
  it('publishes the newest round of its answer at once', async () => {
    const { publish } = await openListed()
    const newest = { answer: 33_050_000_000n, round: 7n, updatedAt: BigInt(LISTED_AT + 60) }
    expect(await publish(feedAnswer({ round: newest }))).toEqual(['nav 330.5 by log, was 324.3014'])
    expect(await publish(feedAnswer({ round: newest }), transactionEvent([round(5, 7, '330.5', 60)]))).toEqual([])
  })

  it('moves to a new aggregator, which counts its rounds from one', async () => {
    const { publish } = await openListed()
    await publish(feedAnswer(), transactionEvent([round(5, 900, '330.5', 60)]))
    expect(await publish(transactionEvent([round(6, 1, '331', 90, nextAggregator)]))).toEqual([])
    expect(
      await publish(
        feedAnswer({ aggregator: nextAggregator, phase: 2 }),
        transactionEvent([round(6, 2, '332', 120, nextAggregator)]),
      ),
    ).toEqual(['nav 332 by log, was 330.5'])
    expect(await publish(transactionEvent([round(7, 901, '300', 150)]))).toEqual([])
  })

  it('keeps its last aggregator over a restart, before it answers again', async () => {
    const { publish, openedTape } = await openListed()
    await publish(feedAnswer({ aggregator: nextAggregator, phase: 2 }))
    const again = await openReducer(openedTape.tape, { now: NOON }, feeds)
    expect(again.state.feeds).toMatchObject([{ aggregators: [{ address: nextAggregator, phase: 2, decimals: 8 }] }])
    expect((await again.publish(transactionEvent([round(6, 1, '331', 90, nextAggregator)]))).map(summarise)).toEqual([
      'nav 331 by log, was 324.3014',
    ])
    const other = await openReducer(openedTape.tape, { now: NOON }, [{ token: 'TSLAc', proxy, aggregator }])
    expect(other.state.feeds).toMatchObject([{ token: 'TSLAc', aggregators: [{ address: aggregator }] }])
  })

  it('publishes nothing when the rounds of its new aggregator are sealed', async () => {
    const { publish } = await openListed()
    const newest = { answer: 35_000_000_000n, round: 1n, updatedAt: BigInt(LISTED_AT + 90) }
    await publish(feedAnswer(), transactionEvent([round(5, 900, '330.5', 60)]))
    await publish(
      feedAnswer({ aggregator: nextAggregator, phase: 2, round: newest }),
      transactionEvent([round(6, 2, '360', 120, nextAggregator)]),
    )
    expect(await publish(sealedEventOfLogs(6, [round(6, 2, '360', 120, nextAggregator)], { addresses }))).toEqual([])
  })

  it('without an aggregator setting counts as its own aggregator', async () => {
    const { publish } = await openListed([{ token: APPLE, proxy, aggregator: proxy }])
    expect(await publish(transactionEvent([round(5, 7, '330.5', 60, proxy)]))).toEqual(['nav 330.5 by log, was 324.3014'])
  })

  it('of a token that is not listed yet waits for the listing', async () => {
    const { publish } = await openListed([{ token: 'TSLAc', proxy, aggregator }])
    expect(await publish(transactionEvent([round(5, 7, '330.5', 60)]))).toEqual([])
    await publish(listEvent(apple(), tesla({ nav_price: undefined, nav_price_updated_at: undefined })))
    expect(await publish(transactionEvent([round(5, 8, '331', 90)]))).toEqual([])
    expect(await publish({ type: 'subscribed', addresses: [TESLA as Hex] })).toEqual([
      'token',
      'multiplier',
      'nav 331 by log, was undefined',
    ])
  })
})
