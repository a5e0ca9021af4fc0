import { asyncScheduler, NEVER, Subject } from 'rxjs'
import { describe, expect, it, onTestFinished, vi } from 'vitest'
import type { Hex } from '../../../../src/lib/hex.ts'
import { LogMemory } from '../../../../src/relay/chain/logs/log-memory.ts'
import type { Log } from '../../../../src/relay/chain/logs/log-parser.ts'
import type { ChainEvent } from '../../../../src/relay/chain/source/source.ts'
import { connectPipeline } from '../../../../src/relay/ingest/open-ingest.ts'
import type { LogCounts } from '../../../../src/relay/ingest/reduce.ts'
import { listOrderNote, statusNote } from '../../../../src/relay/notes/published-notes.ts'
import type { PolledList } from '../../../../src/relay/tokens/list/list-poller.ts'
import type { TestTape } from '../../../support/local-tape.ts'
import { txHash } from '../chain/node-json.ts'
import { openTestTape } from '../tape/test-tape.ts'
import { APPLE, apple, parsedList, polledList, TESLA, tesla } from '../tokens/stock-records.ts'
import {
  logAt,
  openReducer,
  pendingLogEvent,
  publishedKeys,
  push,
  readUpdates,
  sealedEventOfLogs,
  transactionEvent,
} from './reducer-fixture.ts'
import { memo } from './token-logs.ts'

const address = APPLE as Hex

const waitUntil = (tape: TestTape, condition: () => boolean | Promise<boolean>): Promise<void> =>
  new Promise((resolve, reject) => {
    const check = async () => {
      if (!(await condition())) return
      stop()
      resolve()
    }
    const stop = tape.follow(() => void check().catch(reject))
    void check().catch(reject)
  })

const openTape = async () => {
  const openedTape = await openTestTape()
  onTestFinished(() => openedTape.close())
  return openedTape
}

/** 1,200 logs of block 5. */
const logsOf = (raw: bigint): readonly Log[] =>
  Array.from({ length: 1_200 }, (_, index) => logAt({ block: 5, index, tx: txHash(5, 0), address, raw }))

/** Runs a pipeline whose lists and chain events the test sends. */
const runPipeline = async (tape: TestTape) => {
  const { state } = await openReducer(tape)
  const lists = new Subject<PolledList | null>()
  const events = new Subject<ChainEvent>()
  const requestedAddresses: (readonly Hex[])[] = []
  const batchSizes: number[] = []
  let failure: unknown = null
  const counted: LogCounts[] = []
  const subscription = connectPipeline({
    lists,
    chainEvents: (followed) => {
      followed.subscribe(({ filters }) => requestedAddresses.push(filters[0]?.addresses ?? []))
      return events
    },
    memory: new LogMemory(),
    state,
    writer: tape.writer,
    contractReads: NEVER,
    poolReads: NEVER,
    clock: asyncScheduler,
    wallTime: () => asyncScheduler.now(),
    tick: () => Promise.resolve(),
    count: (counts) => counted.push(counts),
  }).subscribe({
    next: (entries) => batchSizes.push(entries.length),
    error: (error) => {
      failure = error
    },
  })
  onTestFinished(() => subscription.unsubscribe())
  return { lists, events, requestedAddresses, batchSizes, counted, failure: () => failure, stop: () => subscription.unsubscribe() }
}

/** A pipeline on a tape of its own, with a listed token whose logs it receives. */
const runListed = async () => {
  const { tape } = await openTape()
  const pipeline = await runPipeline(tape)
  pipeline.lists.next(polledList(parsedList(apple())))
  pipeline.events.next({ type: 'subscribed', filters: [{ addresses: [address] }] })
  await waitUntil(tape, () => tape.end() > 0)
  return {
    tape,
    ...pipeline,
    untilPublished: (count: number) => waitUntil(tape, async () => (await publishedKeys(tape)).length === count),
  }
}

describe('a batch', () => {
  it.each([
    ['one message of one transaction', (logs: readonly Log[]) => [transactionEvent(logs)]],
    ['one message for each log', (logs: readonly Log[]) => logs.map((log) => push(log))],
  ])('of 3,000 logs in %s is written in parts of 500, and folds as one', async (_, eventsOf) => {
    const { tape, events, batchSizes, untilPublished } = await runListed()
    const at = (index: number) => ({ block: 5, index, tx: txHash(5, 0), address })
    const logs = Array.from({ length: 2_499 }, (_, index) => logAt(at(index)))
    const others = Array.from({ length: 500 }, (_, index) => logAt({ ...at(index + 2_500), tx: txHash(5, 1) }))
    for (const event of eventsOf([...logs, memo(at(2_499), txHash(7)), ...others])) events.next(event)
    await untilPublished(2_999)
    expect(batchSizes.slice(1)).toEqual([500, 500, 500, 500, 499, 500])
    const updates = (await readUpdates(tape)).filter((update) => update.type === 'transfer')
    expect(updates.map(({ tx }) => tx.log_index)).toEqual([...logs, ...others].map(({ logIndex }) => logIndex))
    expect(updates[2_498]?.memo).toBe(txHash(7))
  })

  it.each([
    ['logs that were not announced', [], logsOf(1n), 'transfer'],
    ['logs that replace others', logsOf(2n), logsOf(1n), 'amend'],
    ['retracted logs', logsOf(1n), [], 'retract'],
  ])('with a sealed block of 1,200 %s is written in parts of 500, with the seal and what came meanwhile last', async (...row) => {
    const [, announced, sealed, type] = row
    const { tape, events, batchSizes } = await runListed()
    events.next({ type: 'status', source: 'pendingLogs', reason: 'ok' })
    if (announced.length > 0) events.next(transactionEvent(announced))
    await waitUntil(tape, () => tape.end() >= 4 + announced.length)
    const [{ length: batchesBefore }, end] = [batchSizes, tape.end()]
    events.next(sealedEventOfLogs(5, sealed))
    setImmediate(() => events.next({ type: 'status', source: 'poll', reason: 'silent' }))
    await waitUntil(tape, () => tape.end() > end && tape.notes.note(statusNote)?.source === 'poll')
    const updates = (await tape.readAfter(end, 2_000)).map(({ update }) => update)
    const types = [...Array(1_200).fill(type), ...(sealed.length > 0 ? ['seal'] : []), 'status']
    expect(updates.map((update) => update.type)).toEqual(types)
    expect(Math.max(...batchSizes.slice(batchesBefore))).toBe(500)
    const indexes = updates.flatMap((update) => ('key' in update ? [Number(update.key?.split('-')[2])] : []))
    expect(indexes).toEqual(Array.from({ length: 1_200 }, (_, index) => index))
  })

  it('of many memos without transfers looks up each transaction once', async () => {
    const { tape } = await openTape()
    const { state, publish } = await openReducer(tape)
    await publish(
      { type: 'list', list: polledList(parsedList(apple())) },
      { type: 'subscribed', filters: [{ addresses: [address] }] },
    )
    const lookUps = vi.spyOn(state.ledger, 'hasOtherKeys')
    const logs = Array.from({ length: 5 }, (_, index) => memo({ block: 5, index, tx: txHash(5, 0), address }, txHash(7)))
    const written = await publish(transactionEvent(logs))
    expect(written).toHaveLength(5)
    expect(lookUps).toHaveBeenCalledTimes(1)
  })

  it('without updates or notes is not written', async () => {
    const { events, batchSizes, untilPublished } = await runListed()
    events.next({ type: 'head', sealed: null, pending: null, timestamp: null })
    await new Promise(setImmediate)
    events.next(pendingLogEvent({ block: 5, address }))
    await untilPublished(1)
    expect(batchSizes).toEqual([3, 1])
  })

  it('keeps lists and logs in the order of arrival', async () => {
    const { tape, lists, events, untilPublished } = await runListed()
    for (const [index, symbol] of ['B', 'C'].entries()) {
      events.next(pendingLogEvent({ block: 5, index, address }))
      lists.next(polledList(parsedList(apple({ symbol }))))
    }
    events.next(pendingLogEvent({ block: 5, index: 2, address }))
    await untilPublished(3)
    expect((await readUpdates(tape)).map(({ type, symbol }) => `${type} ${symbol}`)).toEqual([
      ...['token AAPLc', 'multiplier AAPLc', 'nav AAPLc', 'transfer AAPLc'],
      ...['token B', 'transfer B', 'token C', 'transfer C'],
    ])
  })

  it('waits until the one before it is written', async () => {
    const { tape, events, untilPublished } = await runListed()
    const appended: string[] = []
    const append = tape.writer.append.bind(tape.writer)
    tape.writer.append = async (batch) => {
      appended.push('start')
      await new Promise(setImmediate)
      const entries = await append(batch)
      appended.push('done')
      return entries
    }
    for (let index = 0; index < 3; index += 1) {
      events.next(pendingLogEvent({ block: 5, index, address }))
      await new Promise(setImmediate)
    }
    await untilPublished(3)
    await new Promise(setImmediate)
    expect(appended.length).toBeGreaterThan(2)
    expect(appended).toEqual(appended.map((_, index) => (index % 2 === 0 ? 'start' : 'done')))
  })
})

describe('the pipeline', () => {
  const both = polledList(parsedList(tesla(), apple()))
  const one = polledList(parsedList(apple()))
  const renamed = polledList(parsedList(apple({ symbol: 'APPL' }), tesla()))

  it.each<[string, readonly (PolledList | null)[], readonly (readonly string[])[]]>([
    ['to the tokens of each list that differs', [null, both, renamed, null, one], [[TESLA, APPLE], [APPLE]]],
    [
      'never to an empty list, and again to the same tokens after it',
      [polledList([]), one, polledList([]), one],
      [[APPLE], [APPLE]],
    ],
    ['still to tokens that a partial list omits', [one, polledList(parsedList(tesla()), true)], [[APPLE], [TESLA, APPLE]]],
  ])('subscribes %s', async (_, readings, requested) => {
    const { lists, requestedAddresses } = await runPipeline((await openTape()).tape)
    for (const reading of readings) {
      lists.next(reading)
      await new Promise(setImmediate)
    }
    expect(requestedAddresses).toEqual(requested)
  })

  it('takes a long list in parts, and subscribes and delists after the last one', async () => {
    const { tape } = await openTape()
    const { lists, events, requestedAddresses } = await runPipeline(tape)
    const tokenCount = async () => (await readUpdates(tape)).filter(({ type }) => type === 'token').length
    const [first, second, third] = parsedList(apple(), tesla(), apple({ contract_address: `0x${'1'.repeat(40)}`, symbol: 'C' }))
    if (!first || !second || !third) throw new Error('three tokens are needed')
    lists.next({ tokens: [first], partial: false, order: null })
    await new Promise(setImmediate)
    expect(requestedAddresses).toEqual([])
    const orderOf = (...tokens: PolledList['tokens']) => tokens.map((token) => token.address)
    lists.next({ tokens: [second, third], partial: false, order: orderOf(first, second, third) })
    await new Promise(setImmediate)
    expect(requestedAddresses).toEqual([[first, second, third].map((token) => token.address).sort()])
    events.next({ type: 'subscribed', filters: [{ addresses: [first.address, second.address, third.address] }] })
    await waitUntil(tape, async () => (await tokenCount()) === 3)
    lists.next({ tokens: [third], partial: false, order: null })
    lists.next({ tokens: [first], partial: false, order: orderOf(third, first) })
    await waitUntil(tape, async () => (await tokenCount()) === 4)
    expect((await readUpdates(tape)).at(-1)).toMatchObject({ type: 'token', change: 'delisted', address: second.address })
    expect(tape.notes.note(listOrderNote)).toEqual([third.address, first.address])
  })

  it('subscribes after a restart to the listed tokens before any list', async () => {
    const { tape, reopen } = await openTape()
    const { lists, events, stop } = await runPipeline(tape)
    lists.next(polledList(parsedList(apple(), tesla())))
    events.next({ type: 'subscribed', filters: [{ addresses: [address] }] })
    await waitUntil(tape, () => tape.end() > 0)
    lists.next(polledList(parsedList(apple())))
    await waitUntil(tape, async () => (await readUpdates(tape)).length === 3)
    await new Promise(setImmediate)
    stop()
    expect((await runPipeline(await reopen())).requestedAddresses).toEqual([[APPLE]])
  })

  it('fails when its tape fails', async () => {
    const { tape } = await openTape()
    const { lists, events, failure } = await runPipeline(tape)
    tape.writer.append = () => Promise.reject(new Error('disk is full'))
    lists.next(polledList(parsedList(apple())))
    events.next({ type: 'subscribed', filters: [{ addresses: [address] }] })
    await new Promise(setImmediate)
    expect(failure()).toMatchObject({ message: 'disk is full' })
  })
})
