import { BehaviorSubject, type Observable, Subject, VirtualTimeScheduler } from 'rxjs'
import { describe, expect, it, onTestFinished } from 'vitest'
import { type Heard, source } from '../../src/chain/source.ts'
import { river } from '../../src/ingest/river.ts'
import type { Hex } from '../../src/protocol/parts.ts'
import type { Reading } from '../../src/stocks/stocks.ts'
import type { Tape } from '../../src/tape/tape.ts'
import { FakeChain } from '../chain/chain.ts'
import type { Signal } from '../chain/node.ts'
import { keyOf, pendingLog, sealedLog } from '../chain/wire.ts'
import { APPLE, apple, listOf, TESLA, tesla } from '../stocks/records.ts'
import { openEmbedded } from '../tape/embedded.ts'
import { keysOf, logHeard, restore, updatesOf } from './house.ts'

const address = APPLE as Hex
const HEAD = 1_000

/** Waits until the tape holds what is waited for. */
const until = (tape: Tape, holds: () => boolean | Promise<boolean>): Promise<void> =>
  new Promise((resolve, reject) => {
    const look = async () => {
      if (!(await holds())) return
      stop()
      resolve()
    }
    const stop = tape.follow(() => void look().catch(reject))
    void look().catch(reject)
  })

const place = async () => {
  const opened = await openEmbedded()
  onTestFinished(() => opened.close())
  return opened
}

/** An answer that leaves nothing out. */
const whole = (tokens: Reading['tokens']): Reading => ({ tokens, partial: false })

/** A river whose two springs are the test's. */
const flow = async (tape: Tape) => {
  const { teller, counted } = await restore(tape)
  const lists = new Subject<Reading | null>()
  const heard = new Subject<Heard>()
  const wanted: (readonly Hex[])[] = []
  const turns: number[] = []
  let failure: unknown = null
  const running = river({
    lists,
    source: (addresses) => {
      addresses.subscribe((list) => wanted.push(list))
      return heard
    },
    teller,
    tape,
  }).subscribe({
    next: (entries) => turns.push(entries.length),
    error: (error) => {
      failure = error
    },
  })
  onTestFinished(() => running.unsubscribe())
  return { lists, heard, wanted, turns, counted, failure: () => failure, stop: () => running.unsubscribe() }
}

describe('a turn', () => {
  it('of several logs is one append', async () => {
    const { tape } = await place()
    const { lists, heard, turns } = await flow(tape)
    lists.next(whole(listOf(apple())))
    heard.next({ type: 'hearing', addresses: [address] })
    for (let index = 0; index < 5; index += 1) heard.next(logHeard({ block: 5, index, address }))
    await until(tape, () => tape.end() > 0)
    expect(turns).toEqual([7])
    expect((await updatesOf(tape)).map(({ type }) => type)).toEqual(['token', 'nav', ...Array(5).fill('transfer')])
  })

  it('that comes to nothing is not written', async () => {
    const { tape } = await place()
    const { lists, heard, turns } = await flow(tape)
    lists.next(whole(listOf(apple())))
    heard.next({ type: 'hearing', addresses: [address] })
    await until(tape, () => tape.end() > 0)
    heard.next({ type: 'unreadable', count: 1 })
    await new Promise(setImmediate)
    heard.next(logHeard({ block: 5, address }))
    await until(tape, async () => (await keysOf(tape)).length === 1)
    expect(turns).toEqual([2, 1])
  })

  it('holds lists and logs in the order in which they came', async () => {
    const { tape } = await place()
    const { lists, heard } = await flow(tape)
    lists.next(whole(listOf(apple())))
    heard.next({ type: 'hearing', addresses: [address] })
    heard.next(logHeard({ block: 5, index: 0, address }))
    lists.next(whole(listOf(apple({ symbol: 'B' }))))
    heard.next(logHeard({ block: 5, index: 1, address }))
    lists.next(whole(listOf(apple({ symbol: 'C' }))))
    heard.next(logHeard({ block: 5, index: 2, address }))
    await until(tape, async () => (await keysOf(tape)).length === 3)
    expect((await updatesOf(tape)).map(({ type, symbol }) => `${type} ${symbol}`)).toEqual([
      'token AAPLc',
      'nav AAPLc',
      'transfer AAPLc',
      'token B',
      'transfer B',
      'token C',
      'transfer C',
    ])
  })

  it('waits for the one before it to be written', async () => {
    const { tape } = await place()
    const { lists, heard } = await flow(tape)
    const appended: string[] = []
    const { append } = tape
    tape.append = async (drafts, notes) => {
      appended.push('begun')
      await new Promise(setImmediate)
      const entries = await append.call(tape, drafts, notes)
      appended.push('done')
      return entries
    }
    lists.next(whole(listOf(apple())))
    heard.next({ type: 'hearing', addresses: [address] })
    for (let index = 0; index < 3; index += 1) {
      heard.next(logHeard({ block: 5, index, address }))
      await new Promise(setImmediate)
    }
    await until(tape, async () => (await keysOf(tape)).length === 3)
    await new Promise(setImmediate)
    expect(appended.length).toBeGreaterThan(2)
    expect(appended).toEqual(appended.map((_, index) => (index % 2 === 0 ? 'begun' : 'done')))
  })
})

describe('the river', () => {
  it('asks for the tokens of each list that differs, and for none without one', async () => {
    const { tape } = await place()
    const { lists, wanted } = await flow(tape)
    expect(wanted).toEqual([])
    lists.next(null)
    lists.next(whole([]))
    lists.next(whole(listOf(tesla(), apple())))
    lists.next(whole(listOf(apple({ symbol: 'APPL' }), tesla())))
    lists.next(null)
    lists.next(whole(listOf(apple())))
    expect(wanted).toEqual([[TESLA, APPLE], [APPLE]])
  })

  it('asks for the same tokens anew after a list that was empty', async () => {
    const { tape } = await place()
    const { lists, wanted } = await flow(tape)
    for (const list of [listOf(apple()), [], listOf(apple())]) lists.next(whole(list))
    expect(wanted).toEqual([[APPLE], [APPLE]])
  })

  it('goes on asking for what a list may only have left out', async () => {
    const { tape } = await place()
    const { lists, wanted } = await flow(tape)
    lists.next(whole(listOf(apple())))
    lists.next({ tokens: listOf(tesla()), partial: true })
    expect(wanted).toEqual([[APPLE], [TESLA, APPLE]])
  })

  it('asks after a restart for what the board knew, before any list', async () => {
    const { tape, reopen } = await place()
    const { lists, heard, stop } = await flow(tape)
    lists.next(whole(listOf(apple(), tesla())))
    heard.next({ type: 'hearing', addresses: [address] })
    await until(tape, () => tape.end() > 0)
    lists.next(whole(listOf(apple())))
    await until(tape, async () => (await updatesOf(tape)).length === 2)
    await new Promise(setImmediate)
    stop()
    expect((await flow(await reopen())).wanted).toEqual([[APPLE]])
  })

  it('ends with the failure of its tape', async () => {
    const { tape } = await place()
    const { lists, heard, failure } = await flow(tape)
    tape.append = () => Promise.reject(new Error('disk is full'))
    lists.next(whole(listOf(apple())))
    heard.next({ type: 'hearing', addresses: [address] })
    await new Promise(setImmediate)
    expect(failure()).toMatchObject({ message: 'disk is full' })
  })

  it('tells nothing once it is left', async () => {
    const { tape } = await place()
    const { lists, heard, stop } = await flow(tape)
    lists.next(whole(listOf(apple())))
    stop()
    heard.next({ type: 'hearing', addresses: [address] })
    await new Promise(setImmediate)
    expect(tape.end()).toBe(0)
  })
})

/** The whole river from a chain and a link down to the tape, in virtual time. */
const spring = async (tape: Tape, chain: FakeChain) => {
  const { teller, counted } = await restore(tape)
  const clock = new VirtualTimeScheduler(undefined, 0)
  const signals = new Subject<Signal>()
  const lists = new BehaviorSubject<Reading | null>(whole(listOf(apple(), tesla())))
  const running = river({
    lists,
    source: (addresses: Observable<readonly Hex[]>) =>
      source({
        ask: chain.ask,
        link: () => signals,
        addresses,
        cursor: teller.cursor,
        pendingPollMs: 200,
        silenceMs: 3_000,
        backfillBoundMs: 3_600_000,
        clock,
        say: () => {},
      }),
    teller,
    tape,
  }).subscribe()
  onTestFinished(() => running.unsubscribe())
  return {
    counted,
    stop: () => running.unsubscribe(),
    poll: () => {
      clock.maxFrames += 200
      clock.flush()
      clock.frame = clock.maxFrames
    },
    live: () => signals.next({ type: 'live', of: 'pendingLogs', addresses: [TESLA as Hex, address] }),
    down: () => signals.next({ type: 'down', reason: 'closed with 1000' }),
    push: (log: unknown) => signals.next({ type: 'log', of: 'pendingLogs', log, receivedAt: 0 }),
  }
}

describe('from the chain to the tape', () => {
  it('a log that is polled, pushed alone, pushed with others, found again and sealed is told once', async () => {
    const { tape } = await place()
    const chain = new FakeChain(HEAD)
    const { counted, poll, live, down, push } = await spring(tape, chain)
    const log = chain.put(HEAD + 1, address)
    const other = { block: HEAD + 1, index: 1 }
    poll()
    live()
    push(pendingLog({ ...log, address }))
    push([pendingLog({ ...log, address }), pendingLog({ ...other, address })])
    await until(tape, async () => (await keysOf(tape)).length === 2)
    push([pendingLog({ ...log, address }), pendingLog({ ...other, address })])
    chain.put(HEAD + 1, address)
    down()
    chain.head = HEAD + 1
    poll()
    push(sealedLog({ ...log, address }))
    const last = chain.put(HEAD + 2, address)
    poll()
    await until(tape, async () => (await keysOf(tape)).includes(keyOf(last)))
    expect(await keysOf(tape)).toEqual([keyOf(log), keyOf(other), keyOf(last)])
    expect(counted.repeated).toBeGreaterThanOrEqual(5)
    expect(counted.foreign).toBe(0)
  })

  it('a restart tells nothing twice and what was missed once, as late', async () => {
    const opened = await place()
    const chain = new FakeChain(HEAD)
    const before = await spring(opened.tape, chain)
    const told = [chain.put(HEAD + 1, address), chain.put(HEAD + 1, address)]
    before.poll()
    await until(opened.tape, async () => (await keysOf(opened.tape)).length === 2)
    chain.head = HEAD + 1
    before.poll()
    const pending = chain.put(HEAD + 2, address)
    before.poll()
    await until(opened.tape, async () => (await keysOf(opened.tape)).length === 3)
    before.stop()
    const missed = chain.put(HEAD + 3, TESLA as Hex)
    chain.head = HEAD + 50
    const tape = await opened.crash()
    const after = await spring(tape, chain)
    after.poll()
    await until(tape, async () => (await keysOf(tape)).length === 4)
    after.live()
    after.push([pendingLog({ ...told[0], block: HEAD + 1, address })])
    const last = chain.put(HEAD + 51, address)
    after.push(pendingLog({ ...last, address }))
    await until(tape, async () => (await keysOf(tape)).length >= 5)
    expect(await keysOf(tape)).toEqual([...told, pending, missed, last].map(keyOf))
    const updates = await updatesOf(tape)
    expect(updates.find((update) => 'key' in update && update.key === keyOf(missed))).toMatchObject({
      late: true,
      stage: 'sealed',
      ingest: { source: 'backfill' },
    })
    expect(updates.filter(({ type }) => type === 'token')).toHaveLength(2)
    expect(updates.filter(({ type }) => type === 'hole')).toEqual([])
  })
})
