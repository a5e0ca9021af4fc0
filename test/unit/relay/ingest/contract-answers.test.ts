import { describe, expect, it, onTestFinished } from 'vitest'
import type { Hex } from '../../../../src/lib/hex.ts'
import { Update } from '../../../../src/protocol/updates.ts'
import type { IngestEvent } from '../../../../src/relay/ingest/fold-batch.ts'
import type { Entry } from '../../../../src/relay/tape/tape.ts'
import { timestampOf } from '../chain/node-json.ts'
import { openTestTape } from '../tape/test-tape.ts'
import { APPLE, apple } from '../tokens/stock-records.ts'
import { headEvent } from './multiplier-fixture.ts'
import {
  holeEvent,
  listEvent,
  openReducer,
  sealedEvent,
  sealedEventOfLogs,
  statusEvent,
  subscribedEvent,
  transactionEvent,
} from './reducer-fixture.ts'
import { paused, transfer, uiMultiplierUpdated, wad } from './token-logs.ts'

const address = APPLE as Hex
const EXACT = '1.000537939576369481'
const callAnswer = (
  block: number,
  multiplier: string,
  overrides: Partial<Extract<IngestEvent, { type: 'token' }>> = {},
): IngestEvent => ({ ...{ type: 'token', address, block, multiplier: wad(multiplier), scheduled: null, paused: [] }, ...overrides })
const transferEvent = (block: number) => transactionEvent([transfer({ block, index: 0 }, 10n ** 18n)])

const openListed = async (record = apple({ multiplier: Number(EXACT) })) => {
  const openedTape = await openTestTape()
  onTestFinished(() => openedTape.close())
  const fixture = await openReducer(openedTape.tape)
  await fixture.publish(listEvent(record), subscribedEvent, statusEvent('pendingLogs'))
  const publish = async (...batch: IngestEvent[]) => (await fixture.publish(...batch)).map(summarise)
  return { openedTape, ...fixture, publish }
}
const summarise = ({ update, text }: Entry): string => {
  expect(JSON.stringify(Update.parse(JSON.parse(text)))).toBe(text)
  switch (update.type) {
    case 'transfer':
      return `transfer x ${update.multiplier}`
    case 'amend':
      return `amend x ${'shares' in update.update ? update.update.multiplier : ''}`
    case 'multiplier':
      return `${update.phase} ${update.previous} to ${update.multiplier} by ${update.source}`
    case 'pause':
      return `${update.change} ${update.feature_ids.join()} now ${update.paused.join()}`
    default:
      return update.type
  }
}

describe('the answer of a token contract', () => {
  it('restores the digits that the list lost, also in published updates', async () => {
    const { publish, state } = await openListed()
    expect(await publish(transferEvent(5))).toEqual([`transfer x ${Number(EXACT)}`])
    expect(await publish(callAnswer(4, EXACT))).toEqual([`amend x ${EXACT}`])
    expect(await publish(transferEvent(6))).toEqual([`transfer x ${EXACT}`])
    expect(state.tokens.get(address)).toMatchObject({ multiplier: EXACT, multiplierSource: 'call' })
    expect(await publish(listEvent(apple({ multiplier: Number(EXACT) })))).toEqual([])
  })

  it('publishes nothing if it repeats a log', async () => {
    const { publish, state } = await openListed(apple())
    await publish(transactionEvent([uiMultiplierUpdated({ block: 5, index: 0 }, '1', '2', timestampOf(5))]))
    expect(await publish(callAnswer(6, '2'))).toEqual([])
    expect(state.tokens.get(address)?.multiplierSource).toBe('log')
  })

  it('does not replace a log of a later block', async () => {
    const { publish } = await openListed(apple())
    await publish(transactionEvent([uiMultiplierUpdated({ block: 5, index: 0 }, '1', '2', timestampOf(5))]))
    expect(await publish(callAnswer(4, '1'), transferEvent(6))).toEqual(['transfer x 2'])
  })

  it('is published if it shows a change without a log', async () => {
    const { publish } = await openListed(apple())
    expect(await publish(callAnswer(8, '4', { paused: [1] }))).toEqual(['effective 1 to 4 by clock', 'paused 1 now MINT'])
    expect(await publish(transferEvent(8), transferEvent(9))).toEqual(['transfer x 1', 'transfer x 4'])
  })

  it('adds a schedule', async () => {
    const { publish, state } = await openListed(apple())
    const scheduled = { to: wad('2'), effectiveAt: BigInt(timestampOf(20)) }
    expect(await publish(callAnswer(8, '1', { scheduled }))).toEqual([])
    expect(state.tokens.get(address)?.scheduled).toEqual({ to: '2', effectiveAt: timestampOf(20) })
    expect(await publish(transferEvent(19), headEvent(20), transferEvent(20))).toEqual([
      'transfer x 1',
      'effective 1 to 2 by clock',
      'transfer x 2',
    ])
  })

  it('behind a hole, from before a schedule took effect, does not take the multiplier back', async () => {
    const { publish } = await openListed(apple())
    const at = timestampOf(50)
    await publish(sealedEventOfLogs(5, [uiMultiplierUpdated({ block: 5, index: 0 }, '1', '2', at)]))
    expect(await publish(holeEvent(40, 40))).toEqual(['hole'])
    expect(await publish(sealedEvent(50, []))).toEqual(['effective 1 to 2 by clock'])
    const scheduled = { to: wad('2'), effectiveAt: BigInt(at) }
    expect(await publish(callAnswer(45, '1', { scheduled }))).toEqual([])
    expect(await publish(callAnswer(51, '2', { scheduled: null }), transferEvent(52))).toEqual(['transfer x 2'])
  })

  it('from before a schedule took effect does not take the multiplier back where it has changed again since', async () => {
    const { publish } = await openListed(apple())
    const at = timestampOf(20)
    await publish(sealedEventOfLogs(5, [uiMultiplierUpdated({ block: 5, index: 0 }, '1', '2', at)]), sealedEvent(20, []))
    await publish(sealedEventOfLogs(30, [uiMultiplierUpdated({ block: 30, index: 0 }, '2', '4', timestampOf(30))]))
    await publish(holeEvent(10, 40))
    const scheduled = { to: wad('2'), effectiveAt: BigInt(at) }
    expect(await publish(callAnswer(15, '1', { scheduled }), sealedEvent(50, []))).toEqual([])
    expect(await publish(transferEvent(51))).toEqual(['transfer x 4'])
  })

  it('removes a schedule if a hole may contain the cancellation', async () => {
    const { publish, state } = await openListed(apple())
    await publish(transactionEvent([uiMultiplierUpdated({ block: 5, index: 0 }, '1', '2', timestampOf(20))]))
    await publish(holeEvent(6, 7), callAnswer(8, '1'))
    expect(state.tokens.get(address)?.scheduled).toBeNull()
    expect(await publish(headEvent(20), transferEvent(20))).toEqual(['transfer x 1'])
  })

  it('does not override logs if every block was read', async () => {
    const { publish, state } = await openListed(apple())
    await publish(transactionEvent([uiMultiplierUpdated({ block: 5, index: 0 }, '1', '2', timestampOf(20))]))
    await publish(transactionEvent([paused({ block: 6, index: 0 }, [0])]))
    expect(await publish(callAnswer(8, '1', { paused: [] }))).toEqual([])
    expect(state.tokens.get(address)).toMatchObject({ scheduled: { to: '2' }, paused: [0] })
    expect(await publish(headEvent(20), transferEvent(20))).toEqual(['effective 1 to 2 by clock', 'transfer x 2'])
  })

  it('adds a paused feature that no log named', async () => {
    const { publish, state } = await openListed(apple())
    await publish(transactionEvent([paused({ block: 6, index: 0 }, [0])]))
    expect(await publish(callAnswer(8, '1', { paused: [3] }))).toEqual(['paused 3 now TRANSFER,SEIZE'])
    expect(state.tokens.get(address)?.paused).toEqual([0, 3])
  })

  it('is older than the logs of a block that replaces the one it was read at', async () => {
    const { publish, state } = await openListed(apple())
    await publish(sealedEvent(8, []), callAnswer(8, '2', { paused: [1] }), { type: 'reorg', from: 5 })
    const logs = [paused({ block: 6, index: 0 }, [3]), uiMultiplierUpdated({ block: 6, index: 1 }, '2', '4', timestampOf(6))]
    await publish(sealedEventOfLogs(6, logs))
    expect(state.tokens.get(address)).toMatchObject({ multiplier: '4', paused: [1, 3] })
    expect(await publish(transferEvent(9))).toEqual(['transfer x 4'])
  })

  it.each([
    ['at the end of the hole', 20],
    ['after newer blocks', 22],
  ])('behind a hole, %s, does not count before the hole when a reorganisation replaces both', async (_name, block) => {
    const { publish } = await openListed(apple())
    await publish(holeEvent(11, 20), sealedEvent(22, []), callAnswer(block, '2'))
    expect(await publish({ type: 'reorg', from: 10 })).toEqual([])
    const before = sealedEventOfLogs(10, [transfer({ block: 10, index: 0 }, 10n ** 18n)])
    expect(await publish(before, transferEvent(23))).toEqual(['transfer x 1', 'seal', 'transfer x 2'])
    const next = uiMultiplierUpdated({ block: 24, index: 0 }, '1', '4', timestampOf(24))
    expect(await publish(transactionEvent([next]))).toEqual(['effective 1 to 4 by log', 'amend x 1'])
  })

  it('behind a hole ends with the log that told the same, when a reorganisation removes it', async () => {
    const { publish } = await openListed(apple())
    const change = uiMultiplierUpdated({ block: 22, index: 0 }, '2', '4', timestampOf(22))
    await publish(holeEvent(11, 20), sealedEventOfLogs(22, [change]), callAnswer(20, '2'), { type: 'reorg', from: 10 })
    expect(await publish(sealedEvent(22, []), transferEvent(23))).toEqual(['retract', 'transfer x 1'])
  })

  it('changes nothing if it is empty', async () => {
    const { publish } = await openListed(apple())
    expect(await publish(callAnswer(8, '0', { multiplier: null, paused: null }), transferEvent(9))).toEqual(['transfer x 1'])
  })
})
