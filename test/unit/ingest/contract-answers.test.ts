import { describe, expect, it, onTestFinished } from 'vitest'
import type { Arrival } from '../../../src/ingest/reducer.ts'
import type { Hex } from '../../../src/protocol/fields.ts'
import { Update } from '../../../src/protocol/updates.ts'
import type { Entry } from '../../../src/tape/tape.ts'
import { secondOf } from '../chain/node-json.ts'
import { openEmbedded } from '../tape/test-tape.ts'
import { APPLE, apple } from '../tokens/stock-records.ts'
import { hearing, listed, restore, status, transaction } from './reducer-fixture.ts'
import { multiplied, paused, transfer, wad } from './token-logs.ts'

const address = APPLE as Hex
const EXACT = '1.000537939576369481'
const answer = (
  block: number,
  multiplier: string,
  more: Partial<Extract<Arrival, { type: 'token' }>> = {},
): Arrival => ({
  ...{ type: 'token', address, block, multiplier: wad(multiplier), scheduled: null, paused: [] },
  ...more,
})
const moved = (block: number) => transaction([transfer({ block, index: 0 }, 10n ** 18n)])

const begin = async (record = apple({ multiplier: Number(EXACT) })) => {
  const embedded = await openEmbedded()
  onTestFinished(() => embedded.close())
  const house = await restore(embedded.tape)
  await house.tell(listed(record), hearing, status('pendingLogs'))
  const tell = async (...turn: Arrival[]) => (await house.tell(...turn)).map(short)
  return { embedded, ...house, tell }
}
const short = ({ update, text }: Entry): string => {
  expect(JSON.stringify(Update.parse(JSON.parse(text)))).toBe(text)
  switch (update.type) {
    case 'transfer':
      return `transfer x ${update.multiplier}`
    case 'amend':
      return `amend x ${'multiplier' in update.update ? update.update.multiplier : ''}`
    case 'multiplier':
      return `${update.phase} ${update.from} to ${update.to} by ${update.source}`
    case 'pause':
      return `${update.paused ? 'paused' : 'unpaused'} ${update.raw.join()} now ${update.now.join()}`
    default:
      return update.type
  }
}

describe('what a contract answers', () => {
  it('adds the digits that the list has lost, also to what was told before', async () => {
    const { tell, teller } = await begin()
    expect(await tell(moved(5))).toEqual([`transfer x ${Number(EXACT)}`])
    expect(await tell(answer(4, EXACT))).toEqual([`amend x ${EXACT}`])
    expect(await tell(moved(6))).toEqual([`transfer x ${EXACT}`])
    expect(teller.board.get(address)).toMatchObject({ multiplier: EXACT, multiplierSource: 'call' })
    expect(await tell(listed(apple({ multiplier: Number(EXACT) })))).toEqual([])
  })

  it('that is what a log said already is no news', async () => {
    const { tell, teller } = await begin(apple())
    await tell(transaction([multiplied({ block: 5, index: 0 }, '1', '2', secondOf(5))]))
    expect(await tell(answer(6, '2'))).toEqual([])
    expect(teller.board.get(address)?.multiplierSource).toBe('log')
  })

  it('as of a block before a log does not displace the log', async () => {
    const { tell } = await begin(apple())
    await tell(transaction([multiplied({ block: 5, index: 0 }, '1', '2', secondOf(5))]))
    expect(await tell(answer(4, '1'), moved(6))).toEqual(['transfer x 2'])
  })

  it('that shows a change of which no log was heard is told', async () => {
    const { tell } = await begin(apple())
    expect(await tell(answer(8, '4', { paused: [1] }))).toEqual(['effective 1 to 4 by clock', 'paused 1 now 1'])
    expect(await tell(moved(8), moved(9))).toEqual(['transfer x 1', 'transfer x 4'])
  })

  it('that knows of a schedule arms it', async () => {
    const { tell, teller } = await begin(apple())
    const scheduled = { to: wad('2'), effectiveAt: BigInt(secondOf(20)) }
    expect(await tell(answer(8, '1', { scheduled }))).toEqual([])
    expect(teller.board.get(address)?.scheduled).toEqual({ to: '2', effectiveAt: secondOf(20) })
    expect(await tell(moved(19), moved(20))).toEqual(['transfer x 1', 'effective 1 to 2 by clock', 'transfer x 2'])
  })

  it('that knows of no schedule any more disarms it where a log may have been missed', async () => {
    const { tell, teller } = await begin(apple())
    await tell(transaction([multiplied({ block: 5, index: 0 }, '1', '2', secondOf(20))]))
    await tell(
      { type: 'hole', blocks: { from: 6, to: 7 }, reason: 'backfill_bound', cursor: { number: 7, hash: null } },
      answer(8, '1'),
    )
    expect(teller.board.get(address)?.scheduled).toBeNull()
    expect(await tell(moved(20))).toEqual(['transfer x 1'])
  })

  it('against what logs said since every block was read displaces none of it, whatever block it is asked about', async () => {
    const { tell, teller } = await begin(apple())
    await tell(transaction([multiplied({ block: 5, index: 0 }, '1', '2', secondOf(20))]))
    await tell(transaction([paused({ block: 6, index: 0 }, [0])]))
    expect(await tell(answer(8, '1', { paused: [] }))).toEqual([])
    expect(teller.board.get(address)).toMatchObject({ scheduled: { to: '2' }, paused: [0] })
    expect(await tell(moved(20))).toEqual(['effective 1 to 2 by clock', 'transfer x 2'])
  })

  it('of what no log named is news beside what logs said', async () => {
    const { tell, teller } = await begin(apple())
    await tell(transaction([paused({ block: 6, index: 0 }, [0])]))
    expect(await tell(answer(8, '1', { paused: [3] }))).toEqual(['paused 3 now 0,3'])
    expect(teller.board.get(address)?.paused).toEqual([0, 3])
  })

  it('with nothing is worth nothing', async () => {
    const { tell } = await begin(apple())
    expect(await tell(answer(8, '0', { multiplier: null, paused: null }), moved(9))).toEqual(['transfer x 1'])
  })
})
