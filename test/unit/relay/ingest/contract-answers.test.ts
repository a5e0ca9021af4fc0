import { describe, expect, it } from 'vitest'
import type { Hex } from '../../../../src/lib/hex.ts'
import type { IngestEvent } from '../../../../src/relay/ingest/fold-batch.ts'
import { timestampOf } from '../chain/node-json.ts'
import { APPLE, apple, TESLA } from '../tokens/stock-records.ts'
import { changed, moved, openListed } from './multiplier-fixture.ts'
import {
  holeEvent,
  listEvent,
  play,
  type Step,
  sealedEventOfLogs as sealed,
  sealedEvent,
  subscribedEvent,
  transactionEvent,
} from './reducer-fixture.ts'
import { paused, wad } from './token-logs.ts'

const address = APPLE as Hex
const EXACT = '1.000537939576369481'
const answer = (
  block: number,
  multiplier: string,
  overrides: Partial<Extract<IngestEvent, { type: 'token' }>> = {},
): IngestEvent => ({ ...{ type: 'token', address, block, multiplier: wad(multiplier), scheduled: null, paused: [] }, ...overrides })
const push = (...logs: Parameters<typeof transactionEvent>[0]) => transactionEvent(logs)
const dueIn = (block: number) => ({ scheduled: { to: wad('2'), effectiveAt: BigInt(timestampOf(block)) } })
const moving = (block: number, multiplier: string): Step => [push(moved(block)), `preconfirmed ${block}/0 x ${multiplier}`]
const doubled: Step = [push(changed(5, '1', '2')), 'effective 1 to 2 by log']
const scheduled: Step = [push(changed(5, '1', '2', { due: 20 })), 'scheduled 1 to 2 by log']

describe('the answer of a token contract', () => {
  it('restores the digits that the list lost, also in published updates', async () => {
    const rounded = apple({ multiplier: Number(EXACT) })
    const ingest = await openListed('pendingLogs', rounded)
    await play(ingest, [
      [push(moved(5)), `preconfirmed 5/0 x ${Number(EXACT)} = 1.00053793`],
      [answer(4, EXACT), `amend 5/0 preconfirmed x ${EXACT} = 1.00053793`],
      [push(moved(6)), `preconfirmed 6/0 x ${EXACT} = 1.00053793`],
    ])
    expect(ingest.state.tokens.get(address)).toMatchObject({ multiplier: EXACT, multiplierSource: 'call' })
    await play(ingest, [[listEvent(rounded), '']])
  })

  it.each<[string, object, ...Step[]]>([
    ['publishes nothing if it repeats a log', { multiplierSource: 'log' }, doubled, [answer(6, '2'), '']],
    ['adds a schedule', { scheduled: { to: '2', effectiveAt: timestampOf(20) } }, [answer(8, '1', dueIn(20)), ''], moving(19, '1')],
    [
      'removes a schedule if a hole may contain the cancellation',
      { scheduled: null },
      scheduled,
      [[holeEvent(6, 7), answer(8, '1')], 'hole'],
    ],
    [
      'does not override logs if every block was read',
      { scheduled: { to: '2' }, paused: [0] },
      scheduled,
      [push(paused({ block: 6, index: 0 }, [0])), 'paused 0, now TRANSFER'],
      [answer(8, '1', { paused: [] }), ''],
    ],
    [
      'adds a paused feature that no log named',
      { paused: [0, 3] },
      [push(paused({ block: 6, index: 0 }, [0])), 'paused 0, now TRANSFER'],
      [answer(8, '1', { paused: [3] }), 'paused 3, now TRANSFER,SEIZE'],
    ],
  ])('%s', async (_, token, ...steps) => {
    const ingest = await openListed()
    await play(ingest, steps)
    expect(ingest.state.tokens.get(address)).toMatchObject(token)
  })

  it.each<[string, ...Step[]]>([
    ['does not replace a log of a later block', doubled, [answer(4, '1'), ''], moving(6, '2')],
    [
      'is published if it shows a change without a log',
      [answer(8, '4', { paused: [1] }), 'effective 1 to 4 by clock, paused 1, now MINT'],
      moving(8, '1'),
      moving(9, '4'),
    ],
    [
      'behind a hole, from before a schedule took effect, does not take the multiplier back',
      [[sealed(5, [changed(5, '1', '2', { due: 50 })]), holeEvent(40, 40)], 'scheduled 1 to 2 by log late, seal 5/0, hole'],
      [sealedEvent(50, []), 'effective 1 to 2 by clock'],
      [[answer(45, '1', dueIn(50)), answer(51, '2')], ''],
      moving(52, '2'),
    ],
    ['changes nothing if it is empty', [answer(8, '0', { multiplier: null, paused: null }), ''], moving(9, '1')],
  ])('%s', async (_, ...steps) => {
    await play(await openListed(), steps)
  })

  it.each<[string, IngestEvent, string, IngestEvent, string]>([
    ['features', push(paused({ block: 5, index: 0 }, [0])), 'paused 0, now TRANSFER', answer(12, '1'), ''],
    ['multiplier', push(changed(5, '1', '2')), 'effective 1 to 2 by log', answer(12, '4'), 'effective 2 to 4 by clock'],
  ])(
    'counts for the %s of a token that was delisted meanwhile, because its logs were not read',
    async (_, log, told, event, news) => {
      const ingest = await openListed()
      expect((await ingest.publish(log, listEvent(apple({ paused_features: [0] })))).join(', ')).toContain(told)
      await ingest.publish(listEvent())
      await ingest.publish(sealedEvent(9, [], { addresses: [TESLA as Hex] }))
      await ingest.publish(listEvent(apple({ multiplier: null })), subscribedEvent)
      expect((await ingest.publish(event)).join(', ')).toBe(news)
    },
  )

  it('outlasts lists that delist its token, and then omit its multiplier', async () => {
    const ingest = await openListed('pendingLogs', apple({ multiplier: Number(EXACT) }))
    await ingest.publish(answer(4, EXACT), listEvent(), sealedEvent(9, [], { addresses: [TESLA as Hex] }))
    await ingest.publish(listEvent(apple({ multiplier: null })), subscribedEvent, answer(12, EXACT), sealedEvent(20, []))
    const omissions = Array.from({ length: 5 }, () => listEvent(apple({ multiplier: null })))
    expect(await ingest.publish(...omissions)).toEqual([])
    expect(ingest.state.tokens.get(address)).toMatchObject({ multiplier: EXACT, multiplierSource: 'call' })
  })

  it('agrees with the multiplier in the list that has its token again', async () => {
    const ingest = await openListed()
    await ingest.publish(push(changed(5, '1', '2')), listEvent(apple({ multiplier: 2 })), listEvent())
    await ingest.publish(sealedEvent(9, [], { addresses: [TESLA as Hex] }))
    const told = await ingest.publish(listEvent(apple({ multiplier: 1 })), subscribedEvent)
    expect(told).toContain('effective null to 1 by list')
    expect(await ingest.publish(answer(12, '1'))).toEqual([])
  })

  it.each([
    ['at the end of the hole', 20],
    ['after newer blocks', 22],
  ])('behind a hole, %s, does not count before the hole when a reorganisation replaces both', async (_name, block) => {
    await play(await openListed(), [
      [[holeEvent(11, 20), sealedEvent(22, []), answer(block, '2')], 'hole, effective 1 to 2 by clock'],
      [{ type: 'reorg', from: 10 }, ''],
      [sealed(10, [moved(10)]), 'sealed 10/0 x 1 late, seal 10/0'],
      moving(23, '2'),
      [push(changed(24, '1', '4')), 'effective 1 to 4 by log, amend 23/0 preconfirmed x 1'],
    ])
  })
})
