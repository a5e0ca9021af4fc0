import { asapScheduler, NEVER, Subject } from 'rxjs'
import { describe, expect, it, onTestFinished } from 'vitest'
import type { Heard } from '../../../src/chain/source/source.ts'
import { river } from '../../../src/ingest/pipeline.ts'
import type { Hex } from '../../../src/protocol/fields.ts'
import type { Tape } from '../../../src/tape/tape.ts'
import type { Reading } from '../../../src/tokens/list-poller.ts'
import { openEmbedded } from '../tape/test-tape.ts'
import { APPLE, apple, listOf, TESLA, tesla } from '../tokens/stock-records.ts'
import { keysOf, logSent, restore, updatesOf } from './reducer-fixture.ts'

const address = APPLE as Hex

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
    answers: () => NEVER,
    clock: asapScheduler,
    turn: asapScheduler,
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
    for (let index = 0; index < 5; index += 1) heard.next(logSent({ block: 5, index, address }))
    await until(tape, async () => (await keysOf(tape)).length === 5)
    // The last waits for what may belong to it.
    expect(turns).toEqual([6, 1])
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
    heard.next(logSent({ block: 5, address }))
    await until(tape, async () => (await keysOf(tape)).length === 1)
    expect(turns).toEqual([2, 1])
  })

  it('holds lists and logs in the order in which they came', async () => {
    const { tape } = await place()
    const { lists, heard } = await flow(tape)
    lists.next(whole(listOf(apple())))
    heard.next({ type: 'hearing', addresses: [address] })
    heard.next(logSent({ block: 5, index: 0, address }))
    lists.next(whole(listOf(apple({ symbol: 'B' }))))
    heard.next(logSent({ block: 5, index: 1, address }))
    lists.next(whole(listOf(apple({ symbol: 'C' }))))
    heard.next(logSent({ block: 5, index: 2, address }))
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
      heard.next(logSent({ block: 5, index, address }))
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
