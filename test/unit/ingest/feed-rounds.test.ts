import { describe, expect, it, onTestFinished } from 'vitest'
import type { Log } from '../../../src/chain/logs/log-schema.ts'
import type { Arrival } from '../../../src/ingest/reducer.ts'
import type { Hex } from '../../../src/protocol/fields.ts'
import { Update } from '../../../src/protocol/updates.ts'
import type { Entry } from '../../../src/tape/tape.ts'
import { blockHash } from '../chain/node-json.ts'
import { openEmbedded } from '../tape/test-tape.ts'
import { APPLE, apple, NOON, TESLA, tesla } from '../tokens/stock-records.ts'
import { hearing, listed, restore, sealedWith, status, transaction } from './reducer-fixture.ts'
import { answered, transfer } from './token-logs.ts'

const proxy: Hex = `0x${'f1'.repeat(20)}`
const aggregator: Hex = `0x${'a9'.repeat(20)}`
const next: Hex = `0x${'a8'.repeat(20)}`
const feeds = [{ token: 'AAPL', proxy, aggregator }]
const LISTED_AT = Date.parse('2026-11-20T11:30:03Z') / 1_000

/** A round of Apple's feed, so many seconds after the list's value. */
const round = (block: number, number: number, price: string, after: number, by: Hex = aggregator): Log =>
  answered({ block, index: number, address: by }, price, BigInt(number), LISTED_AT + after)
const answer = (over: Partial<Extract<Arrival, { type: 'feed' }>> = {}): Arrival => ({
  ...{ type: 'feed', proxy, aggregator, phase: 1, decimals: 8, round: null },
  ...over,
})
const asked = [APPLE as Hex, aggregator, next]

const begin = async (given = feeds) => {
  const embedded = await openEmbedded()
  onTestFinished(() => embedded.close())
  const house = await restore(embedded.tape, { now: NOON }, given)
  await house.tell(listed(apple()), hearing, status('pendingLogs'))
  const tell = async (...turn: Arrival[]) => (await house.tell(...turn)).map(short)
  return { embedded, ...house, tell }
}
const short = ({ update, text }: Entry): string => {
  expect(JSON.stringify(Update.parse(JSON.parse(text)))).toBe(text)
  if (update.type !== 'nav')
    return 'reference_value' in update ? `${update.type} ${update.reference_value}` : update.type
  return `nav ${update.nav.price ?? update.nav.state} by ${update.source}, was ${update.was?.price ?? update.was?.state}`
}

describe('a round of a feed', () => {
  it('is the NAV as soon as it is pre-confirmed, and no log of a token', async () => {
    const { tell, counted } = await begin()
    expect(await tell(transaction([round(5, 7, '330.5', 60)]))).toEqual(['nav 330.5 by log, was 324.3014'])
    expect(await tell(transaction([transfer({ block: 5, index: 9 }, 200_000_000n)]))).toEqual(['transfer 661.00'])
    expect(counted.foreign).toBe(0)
  })

  it('is told once, however often it is said', async () => {
    const { tell } = await begin()
    const said = round(5, 7, '330.5', 60)
    await tell(transaction([said]))
    expect(await tell(transaction([said]), sealedWith(5, [said], { asked }), transaction([said]))).toEqual([])
    expect(await tell(listed(apple({ nav_price: 330.5, nav_price_updated_at: '2026-11-20T11:31:03Z' })))).toEqual([])
  })

  it('that is not sealed gives way to the value before it', async () => {
    const { tell } = await begin()
    await tell(transaction([round(5, 7, '330.5', 60)]))
    expect(await tell(sealedWith(5, [], { asked }))).toEqual(['nav 324.3014 by list, was 330.5'])
    expect(await tell(transaction([round(5, 7, '330.5', 60)]))).toEqual([])
  })

  it('that a reorganisation takes away gives way to the one before it', async () => {
    const { tell } = await begin()
    await tell(sealedWith(4, [round(4, 6, '329', 30)], { asked }), sealedWith(5, [round(5, 7, '330.5', 60)], { asked }))
    expect(await tell(sealedWith(5, [], { asked, hash: blockHash(99) }))).toEqual(['nav 329 by log, was 330.5'])
  })

  it('is found with its block where it was lost', async () => {
    const { tell } = await begin()
    expect(await tell(sealedWith(5, [round(5, 7, '330.5', 60)], { asked }))).toEqual(['nav 330.5 by log, was 324.3014'])
  })

  it('that is caught up late does not displace a newer one', async () => {
    const { tell } = await begin()
    await tell(sealedWith(500, [round(500, 9, '340', 90)], { asked }))
    const beneath = { asked, via: 'backfill', newest: 500, cursor: 5 } as const
    expect(await tell(sealedWith(5, [round(5, 7, '330.5', 60)], beneath))).toEqual([])
  })

  it.each(['0', '-1'])('of %s is invalid, and no price', async (price) => {
    const { tell, embedded } = await begin()
    expect(await tell(transaction([round(5, 7, price, 60)]))).toEqual(['nav invalid by log, was 324.3014'])
    const [nav] = (await embedded.tape.since(embedded.tape.end() - 1, 1)).map(({ update }) => update)
    expect(nav).toMatchObject({ nav: { price: null, state: 'invalid' } })
  })

  it('that says no time is invalid, and no price, until the next one', async () => {
    const { tell, embedded } = await begin()
    expect(await tell(transaction([round(5, 7, '330.5', -LISTED_AT)]))).toEqual(['nav invalid by log, was 324.3014'])
    const [nav] = (await embedded.tape.since(embedded.tape.end() - 1, 1)).map(({ update }) => update)
    expect(nav).toMatchObject({ nav: { price: null, updated_at: null, state: 'invalid' } })
    expect(await tell(transaction([round(5, 8, '331', 60)]))).toEqual(['nav 331 by log, was invalid'])
  })

  it('that the list knows of and the feed did not bring is held from the list', async () => {
    const { tell } = await begin()
    await tell(transaction([round(5, 7, '330.5', 60)]))
    expect(await tell(listed(apple({ nav_price: 331, nav_price_updated_at: '2026-11-20T11:40:00Z' })))).toEqual([
      'nav 331 by list, was 330.5',
    ])
  })

  it('outlives a restart', async () => {
    const { tell, embedded } = await begin()
    await tell(transaction([round(5, 7, '330.5', 60)]))
    const again = await restore(embedded.tape, { now: NOON }, feeds)
    expect((await again.tell(listed(apple()))).map(short)).toEqual([])
    expect(again.teller.owed.at(5)).toMatchObject([{ address: aggregator }])
    expect((await again.tell(sealedWith(5, [], { asked }))).map(short)).toEqual(['nav 324.3014 by list, was 330.5'])
  })
})

describe('a feed', () => {
  it('that answers says its newest round at once', async () => {
    const { tell } = await begin()
    const newest = { answer: 33_050_000_000n, round: 7n, updatedAt: BigInt(LISTED_AT + 60) }
    expect(await tell(answer({ round: newest }))).toEqual(['nav 330.5 by log, was 324.3014'])
    expect(await tell(answer({ round: newest }), transaction([round(5, 7, '330.5', 60)]))).toEqual([])
  })

  it('is heard at another aggregator once it says so, which counts its rounds anew', async () => {
    const { tell } = await begin()
    await tell(answer(), transaction([round(5, 900, '330.5', 60)]))
    expect(await tell(transaction([round(6, 1, '331', 90, next)]))).toEqual([])
    expect(await tell(answer({ aggregator: next, phase: 2 }), transaction([round(6, 2, '332', 120, next)]))).toEqual([
      'nav 332 by log, was 330.5',
    ])
    expect(await tell(transaction([round(7, 901, '300', 150)]))).toEqual([])
  })

  it('is heard at the aggregator that it last said, also after a restart, before it is asked again', async () => {
    const { tell, embedded } = await begin()
    await tell(answer({ aggregator: next, phase: 2 }))
    const again = await restore(embedded.tape, { now: NOON }, feeds)
    expect(again.teller.feeds).toMatchObject([{ aggregators: [{ address: next, phase: 2, decimals: 8 }] }])
    expect((await again.tell(transaction([round(6, 1, '331', 90, next)]))).map(short)).toEqual([
      'nav 331 by log, was 324.3014',
    ])
    const other = await restore(embedded.tape, { now: NOON }, [{ token: 'TSLAc', proxy, aggregator }])
    expect(other.teller.feeds).toMatchObject([{ token: 'TSLAc', aggregators: [{ address: aggregator }] }])
  })

  it('says nothing new when the rounds of its new aggregator are sealed', async () => {
    const { tell } = await begin()
    const newest = { answer: 35_000_000_000n, round: 1n, updatedAt: BigInt(LISTED_AT + 90) }
    await tell(answer(), transaction([round(5, 900, '330.5', 60)]))
    await tell(answer({ aggregator: next, phase: 2, round: newest }), transaction([round(6, 2, '360', 120, next)]))
    expect(await tell(sealedWith(6, [round(6, 2, '360', 120, next)], { asked }))).toEqual([])
  })

  it('is its own aggregator as long as nobody says another', async () => {
    const { tell } = await begin([{ token: APPLE, proxy, aggregator: proxy }])
    expect(await tell(transaction([round(5, 7, '330.5', 60, proxy)]))).toEqual(['nav 330.5 by log, was 324.3014'])
  })

  it('of a token that is not listed yet waits for it', async () => {
    const { tell } = await begin([{ token: 'TSLAc', proxy, aggregator }])
    expect(await tell(transaction([round(5, 7, '330.5', 60)]))).toEqual([])
    await tell(listed(apple(), tesla({ nav_price: undefined, nav_price_updated_at: undefined })))
    expect(await tell(transaction([round(5, 8, '331', 90)]))).toEqual([])
    expect(await tell({ type: 'hearing', addresses: [TESLA as Hex] })).toEqual([
      'token',
      'nav 331 by log, was undefined',
    ])
  })
})
