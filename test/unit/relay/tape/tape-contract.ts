import fc from 'fast-check'
import { describe, expect, it, onTestFinished, vi } from 'vitest'
import type { Hex } from '../../../../src/lib/hex.ts'
import { type Draft, type DraftOf, Update, type UpdateType } from '../../../../src/protocol/updates.ts'
import { type BarRange, type BarRow, editionOf } from '../../../../src/relay/tape/bars/bar-row.ts'
import { defineNote, defineNotes, Notes } from '../../../../src/relay/tape/notes.ts'
import { LOST_BOUND, skippedByTime } from '../../../../src/relay/tape/runs.ts'
import type { Entry, HistoryFilter, SeqRange } from '../../../../src/relay/tape/tape.ts'
import type { TestTape } from '../../../support/local-tape.ts'
import { assertValidMessage } from '../../../support/message-validator.ts'
import {
  amend,
  apple,
  approval,
  navChange,
  oneOfEach,
  otherLog,
  pause,
  retract,
  seal,
  status,
  tesla,
  token,
  transfer,
} from './update-drafts.ts'

type TapeBounds = {
  readonly tapeRetentionMs?: number
  readonly tapeMaxMessages?: number
  readonly openGrowth?: number
  readonly barsRetentionMs?: number
}

/** A tape in a folder that can be reopened and crashed. */
type TapeFixture = {
  readonly tape: TestTape
  /** The clock of the tape. */
  readonly clock: { now: number }
  /** Closes the tape and opens it again. */
  reopen(): Promise<TestTape>
  /** Leaves the tape as a killed process does, and opens what is on disk. */
  crash(): Promise<TestTape>
  close(): Promise<void>
}

export type OpenTapeFixture = (bounds?: TapeBounds) => Promise<TapeFixture>

const head = defineNote<unknown>('test-head')
const mark = defineNote<unknown>('mark')
const items = defineNotes<unknown>('item/')

const NOON = Date.parse('2026-11-20T12:00:00Z')
const HOUR_MS = 3_600_000

/** The contract of every implementation of the tape. */
export function tapeContract(name: string, openFixture: OpenTapeFixture): void {
  const open = async (bounds: TapeBounds = {}) => {
    const fixture = await openFixture(bounds)
    onTestFinished(() => fixture.close())
    fixture.clock.now = NOON
    return fixture
  }
  const all = async (tape: TestTape): Promise<readonly Entry[]> => tape.readAfter(0, 10_000)
  const seqs = (entries: readonly Entry[]) => entries.map(({ seq }) => seq)
  const at = NOON
  /** Appends transfers in batches of 500. */
  const appendTransfers = async (tape: TestTape, count: number) => {
    for (let nth = 0; nth < count; nth += 500)
      await tape.append(Array.from({ length: 500 }, (_, index) => transfer({ at, nth: nth + index })))
  }

  describe(`${name}: an appended batch`, () => {
    it('keeps its order when appends overlap', async () => {
      const { tape } = await open()
      const batches = await Promise.all([1, 2, 3, 4, 5].map((nth) => tape.append([transfer({ at, nth })])))
      const blocks = (await all(tape)).map(({ update }) => (update.type === 'transfer' ? update.block.number : null))
      expect(blocks).toEqual([1, 2, 3, 4, 5])
      expect(seqs(batches.flat())).toEqual(seqs(await all(tape)))
    })

    it('has its position as id, and its fields in the order of the contract', async () => {
      const { tape } = await open()
      const entries = await tape.append(oneOfEach({ at }))
      for (const { seq, text, update } of entries) {
        expect(update.id).toBe(`${tape.epoch}.${seq}`)
        const fields = Object.keys(JSON.parse(text))
        expect(fields.slice(0, 6)).toEqual(['type', 'id', 'prev', 'symbol', 'address', 'time'])
        const schema = Update.options.find((option) => option.shape.type.value === update.type)
        expect(fields).toEqual(Object.keys(schema?.shape ?? {}).filter((field) => fields.includes(field)))
        expect(Update.parse(assertValidMessage(JSON.parse(text)))).toEqual(update)
      }
    })
  })

  describe(`${name}: a follower`, () => {
    it('receives a batch once it is written, with its notes', async () => {
      const { tape } = await open()
      const received: unknown[] = []
      tape.follow((batch, notes) => {
        received.push({ batch, notes, end: tape.end(), note: tape.notes.note(head), stored: tape.readAfter(0, 10) })
      })
      const batch = await tape.append([transfer({ at }), status({ at })], new Notes().set(head, 7))
      const [{ stored, ...rest }] = received as [{ stored: unknown }]
      expect(received).toHaveLength(1)
      expect(rest).toEqual({ batch, notes: new Notes().set(head, 7), end: batch.at(-1)?.seq, note: 7 })
      expect(await stored).toEqual(batch)
    })

    it('does not affect other followers', async () => {
      const { tape } = await open()
      const received: string[] = []
      const stop = tape.follow(() => {
        received.push('first')
        stop()
      })
      tape.follow(() => received.push('second'))
      await tape.append([transfer({ at })])
      await tape.append([transfer({ at })])
      expect(received).toEqual(['first', 'second', 'second'])
    })
  })

  describe(`${name}: history`, () => {
    /** All that a reader finds in a range, and the number of pages that it took. */
    const readAll = async (tape: TestTape, filter: HistoryFilter, range: SeqRange) => {
      const found: Entry[] = []
      let { after, before } = range
      for (let pages = 1; ; pages += 1) {
        const { entries, reached } = tape.read(filter, { ...range, after, before })
        expect(entries.length).toBeLessThanOrEqual(range.limit)
        found.push(...entries)
        if (reached === null) return { found, pages }
        if (range.order === 'asc') after = reached
        else before = reached
      }
    }
    const whole = (tape: TestTape) => ({ after: 0, before: tape.end() + 1, limit: 100 })

    it('matches the filter, in both orders, between any two numbers', async () => {
      const fixture = await open()
      for (let nth = 0; nth < 3_000; nth += 300) {
        const kinds = Array.from({ length: 300 }, (_, index) => {
          const about = { at, nth: nth + index, address: index % 3 === 0 ? tesla : apple }
          return index % 100 === 0 ? pause(about) : index % 50 === 0 ? status({ at }) : transfer(about)
        })
        await fixture.tape.append(kinds)
        if (nth === 1_500) await fixture.crash()
      }
      const { tape } = fixture
      const entries = await tape.readAfter(0, 10_000)
      expect(entries).toHaveLength(3_000)
      const type = fc.constantFrom<UpdateType>('transfer', 'pause', 'status', 'seal')
      const number = fc.nat({ max: entries.length - 1 }).map((index) => entries[index]?.seq ?? 0)
      const query = fc.record({
        tokens: fc.constantFrom<readonly Hex[] | null>(null, [apple], [tesla], [apple, tesla], []),
        types: fc.uniqueArray(type, { minLength: 1 }),
        after: fc.oneof(fc.constant(0), number),
        before: fc.oneof(fc.constant(tape.end() + 1), number),
        order: fc.constantFrom('asc' as const, 'desc' as const),
        limit: fc.constantFrom(1, 7, 100, 5_000),
      })
      await fc.assert(
        fc.asyncProperty(query, async ({ tokens, types, after, before, order, limit }) => {
          const filter = { tokens: tokens && new Set(tokens), types: new Set(types) }
          const expected = entries.filter(
            ({ seq, update: { type, address } }) =>
              seq > after && seq < before && types.includes(type) && (!tokens || address === null || tokens.includes(address)),
          )
          const { found } = await readAll(tape, filter, { after, before, order, limit: Math.max(limit, 50) })
          expect(seqs(found)).toEqual(seqs(order === 'asc' ? expected : expected.toReversed()))
          const [first] = (await readAll(tape, filter, { after, before: Math.min(before, after + 20), order, limit })).found
          const near = expected.filter(({ seq }) => seq < after + 20)
          expect(first).toEqual(order === 'asc' ? near[0] : near.at(-1))
        }),
        { numRuns: 100 },
      )
    })

    it('with followers finds every follower of a matching key, and few others', async () => {
      const { tape } = await open()
      const [, , paused, sealedPause, sealedBoth] = await tape.append([
        transfer({ at, nth: 1 }),
        seal({ at, nth: 1, types: ['transfer'] }),
        pause({ at, nth: 2 }),
        seal({ at, nth: 2, types: ['pause', 'part'] }),
        {
          ...seal({ at, nth: 3, types: ['pause', 'transfer'] }),
          keys: [pause({ at, nth: 2 }), transfer({ at })].map(({ key = '' }) => key),
        },
        transfer({ at, nth: 4 }),
      ])
      // The key has another type from here on, and its seal matches the new type too.
      const { time: _, ...content } = transfer({ at, nth: 4 })
      const turned: DraftOf<'amend'> = { ...amend({ at, nth: 4 }), update: { ...content, type: 'seize' } }
      const [amended, sealedAmended, gone] = await tape.append([
        turned,
        seal({ at, nth: 4, types: ['seize'] }),
        retract({ at, nth: 4 }),
      ])
      // These keys have no kept publication, so any type may match.
      const [lostSeal, lostRetract] = await tape.append([seal({ at, nth: 4, types: ['transfer'] }), retract({ at, nth: 9 })])
      await tape.append([transfer({ at, nth: 6, address: tesla }), seal({ at, nth: 6, address: tesla, types: ['transfer'] })])
      const found = async (type: UpdateType, tokens: readonly Hex[] | null = [apple]) => {
        const filter = { tokens: tokens && new Set(tokens), types: new Set([type]), followersOf: new Set([type]) }
        return (await readAll(tape, filter, { ...whole(tape), order: 'asc' })).found
      }
      const lost = [lostSeal, lostRetract]
      expect(await found('pause')).toEqual([paused, sealedPause, sealedBoth, ...lost])
      expect(await found('seize')).toEqual([amended, sealedAmended, gone, ...lost])
      expect(await found('nav')).toEqual(lost)
      expect(await found('nav', null)).toEqual(lost)
      expect((await found('transfer')).map(({ update }) => update.type)).toEqual([
        ...['transfer', 'seal', 'seal', 'transfer', 'amend', 'seal', 'retract', 'seal', 'retract'],
      ])
    })

    it('of one token is found without reading the other tokens', async () => {
      const { tape } = await open()
      const [rare] = await tape.append([pause({ at, address: tesla })])
      await appendTransfers(tape, 20_000)
      const [newest] = await tape.append([transfer({ at, address: tesla })])
      const filter = { tokens: new Set([tesla]), types: new Set<UpdateType>(['pause', 'transfer', 'seal']) }
      for (const order of ['asc', 'desc'] as const) {
        const { found, pages } = await readAll(tape, filter, { ...whole(tape), order })
        expect(found.toSorted((a, b) => a.seq - b.seq)).toEqual([rare, newest])
        expect(pages).toBeLessThan(5)
      }
    })

    it('is estimated without reading, until the limit', async () => {
      const { tape } = await open()
      await appendTransfers(tape, 3_000)
      await tape.append([pause({ at, nth: 1 }), seal({ at, nth: 1, types: ['pause'] }), transfer({ at, address: tesla })])
      const estimate = (type: UpdateType, after = 0, countLimit = 10_000) => {
        const types = new Set([type])
        return tape.count({ tokens: new Set([apple]), types, followersOf: types }, after, countLimit)
      }
      expect(await estimate('transfer')).toEqual({ least: 3_000, most: 3_001 })
      expect(await estimate('transfer', 2_000)).toEqual({ least: 1_000, most: 1_001 })
      expect(await estimate('pause')).toEqual({ least: 1, most: 2 })
      expect(await estimate('nav')).toEqual({ least: 0, most: 0 })
      expect((await estimate('transfer', 0, 100)).least).toBeGreaterThan(100)
    })

    it('continues over a gap in the numbers', async () => {
      const fixture = await open()
      const [before] = await fixture.tape.append([pause({ at, nth: 1 })])
      await fixture.crash()
      await fixture.crash()
      const tape = await fixture.crash()
      const [after] = await tape.append([pause({ at, nth: 2 })])
      const filter = { tokens: null, types: new Set<UpdateType>(['pause']) }
      for (const order of ['asc', 'desc'] as const) {
        const { found, pages } = await readAll(tape, filter, { ...whole(tape), order })
        expect(found.toSorted((a, b) => a.seq - b.seq)).toEqual([before, after])
        expect(pages).toBe(1)
      }
    })

    it('ends a page early if updates are long', async () => {
      const { tape } = await open()
      const long = { ...otherLog({ at }), data: `0x${'00'.repeat(400_000)}` as const }
      await tape.append([long, long, long, long])
      for (const tokens of [null, new Set([apple])]) {
        const filter = { tokens, types: new Set<UpdateType>(['log', 'transfer']) }
        const { found, pages } = await readAll(tape, filter, { ...whole(tape), order: 'asc' })
        expect(found).toHaveLength(4)
        expect(pages).toBeGreaterThan(2)
      }
    })
  })

  describe(`${name}: the updates of a key`, () => {
    const { key } = transfer({ at, nth: 4 })

    it('are found while their batch is delivered', async () => {
      const { tape } = await open()
      const found: number[] = []
      tape.follow(() => found.push(tape.find({ key: key }).length))
      await tape.append([transfer({ at, nth: 4 })])
      await tape.append([amend({ at, nth: 4 }), retract({ at, nth: 4 })])
      expect(found).toEqual([1, 3])
    })

    it('are not those of a similar key', async () => {
      const { tape } = await open()
      const similar = ['4-0x01-0', '4-0x02-0', '4-0x01-1048576', '4294967300-0x01-0']
      const entries = await tape.append(similar.map((other) => ({ ...transfer({ at, nth: 4 }), key: other })))
      for (const [index, other] of similar.entries()) expect(tape.find({ key: other })).toEqual([entries[index]])
    })

    it('are none for an unpublished key', async () => {
      const { tape } = await open()
      await tape.append([navChange({ at }), token({ at }), seal({ at, nth: 4, types: ['transfer'] })])
      expect(tape.find({ key: key })).toEqual([])
      for (const none of ['', '4', 'NAV', '4-0x-', '-1', `9e99-0x01-1`, '4-0x01-9e99']) expect(tape.find({ key: none })).toEqual([])
    })
  })

  describe(`${name}: the seals of a block`, () => {
    it('are kept apart from those of a token with a similar address', async () => {
      const { tape } = await open()
      const similar: Hex = `0x${'7e'.repeat(10)}${apple.slice(-20)}`
      const [one, other] = await tape.append([
        seal({ at, nth: 4 }),
        seal({ at, nth: 4, address: similar }),
        seal({ at, nth: 2 ** 32 + 4 }),
      ])
      expect(tape.find({ sealsOf: 4, address: apple })).toEqual([one])
      expect(tape.find({ sealsOf: 4, address: similar })).toEqual([other])
      expect(tape.find({ sealsOf: 4 })).toEqual([one, other])
    })
  })

  describe(`${name}: a restart`, () => {
    it('continues beyond every number that may be lost, where the clock says less', async () => {
      const fixture = await open()
      const [last] = await fixture.tape.append([transfer({ at })])
      const tape = await fixture.reopen()
      expect(tape.end()).toBe(last?.seq)
      const [next] = await tape.append([transfer({ at })])
      expect(next?.seq).toBe((last?.seq ?? 0) + 1 + LOST_BOUND + skippedByTime(at))
    })
  })

  describe(`${name}: retention`, () => {
    it('keeps a large tape within one percent of its bound, also when batches are larger than what one append clears', async () => {
      const fixture = await open({ tapeMaxMessages: 4_000 })
      for (let nth = 0; nth < 30_000; nth += 3_000) {
        await fixture.tape.append(Array.from({ length: 3_000 }, (_, index) => transfer({ at, nth: nth + index })))
        const length = (await all(fixture.tape)).length
        expect(length).toBeLessThanOrEqual(4_040)
        expect(length).toBeGreaterThanOrEqual(Math.min(4_000, nth + 3_000))
      }
    })

    it('evicts nothing that is open, however many updates more than its bound that is', async () => {
      const { tape } = await open({ tapeMaxMessages: 39 })
      const open200 = Array.from({ length: 200 }, (_, index) => transfer({ at, nth: index + 1 }))
      await tape.append([navChange({ at })])
      const keepAfter = tape.end()
      for (const draft of open200) await tape.append([draft], new Notes(), keepAfter)
      expect((await all(tape)).filter(({ update }) => update.type === 'transfer')).toHaveLength(200)
    })

    it('spares what comes after keepAfter, by count and by age, until that is more than may be kept for it', async () => {
      const fixture = await open({ tapeMaxMessages: 8, openGrowth: 2, tapeRetentionMs: HOUR_MS })
      const { tape, clock } = fixture
      const [needed] = await tape.append([1, 2, 3, 4, 5, 6, 7, 8].map((nth) => transfer({ at, nth }))).then(seqs)
      const first = needed ?? 0
      await tape.append([transfer({ at, nth: 9 })], new Notes(), first + 1)
      expect(seqs(await all(tape))).toEqual([1, 2, 3, 4, 5, 6, 7, 8].map((nth) => first + nth))
      clock.now = NOON + HOUR_MS + 1
      await tape.append([navChange({ at: clock.now })], new Notes(), first + 1)
      expect(seqs(await all(tape))[0]).toBe(first + 2)
      await tape.append(
        [1, 2].map((nth) => transfer({ at: clock.now, nth })),
        new Notes(),
        first + 1,
      )
      expect(seqs(await all(tape))).toEqual([2, 3, 4, 5, 6, 7, 8, 9, 10, 11].map((nth) => first + nth))
      await tape.append([transfer({ at: clock.now, nth: 3 })], new Notes(), first + 1)
      expect(seqs(await all(tape))).toEqual([3, 4, 5, 6, 7, 8, 9, 10, 11, 12].map((nth) => first + nth))
      await tape.append([], new Notes(), first + 7)
      expect(seqs(await all(tape))).toEqual([8, 9, 10, 11, 12].map((nth) => first + nth))
      expect(tape.oldest()).toBe(first + 7)
      expect(tape.find({ key: transfer({ at, nth: 8 }).key })).toEqual([])
    })
  })

  describe(`${name}: an append that fails`, () => {
    // A bigint has no JSON, so no implementation can store it.
    const unwritable = new Notes().set(head, 2).set(mark, 1n)

    it('leaves no update, number or note, and delivers nothing', async () => {
      const fixture = await open()
      const { tape } = fixture
      const [first] = await tape.append([transfer({ at })], new Notes().set(head, 1))
      const received: number[] = []
      tape.follow((batch) => received.push(...seqs(batch)))
      await expect(tape.append([transfer({ at }), navChange({ at })], unwritable)).rejects.toThrow()
      expect(received).toEqual([])
      expect(tape.end()).toBe(first?.seq)
      expect(tape.notes.note(head)).toBe(1)
      expect(tape.notes.note(mark)).toBeUndefined()
      expect(await all(tape)).toHaveLength(1)
      const [second, third] = await tape.append([transfer({ at }), navChange({ at })])
      expect(second?.update.prev).toBe(first?.update.id)
      expect(third?.update.prev).toBeNull()
      expect(second?.seq).toBe((first?.seq ?? 0) + 1)
      const after = await fixture.crash()
      expect(await all(after)).toHaveLength(3)
      expect(after.notes.note(head)).toBe(1)
    })
  })

  describe(`${name}: bars`, () => {
    const minute = (start: number, edition = 1): BarRow => [apple, start * 60, JSON.stringify([edition, 0, null, 0, []])]
    const write = (tape: TestTape, ...bars: readonly BarRow[]) =>
      tape.writer.append({ first: tape.next, updates: [], notes: new Notes(), bars, keepAfter: 0 })
    const read = (tape: TestTape, range: Partial<BarRange> = {}) =>
      tape.readBars(apple, { since: 0, until: 1_000_000, ...range }).map(([, start, text]) => `${start / 60} r${editionOf(text)}`)

    it('are read in a range in both orders, as last written, and by the next run too', async () => {
      const fixture = await open()
      await write(fixture.tape, minute(1), minute(2), [tesla, 60, minute(1, 7)[2]])
      await write(fixture.tape, minute(3), minute(2, 2))
      for (const next of [async () => fixture.tape, () => fixture.crash()]) {
        const tape = await next()
        // A new file reads them while it is in use.
        await vi.waitFor(() => expect(read(tape)).toEqual(['1 r1', '2 r2', '3 r1']))
        expect(read(tape, { order: 'desc', limit: 2 })).toEqual(['3 r1', '2 r2'])
        expect(read(tape, { since: 61, until: 180 })).toEqual(['2 r2'])
      }
    })

    it('are summed up in hours and days, whatever comes late or changes', async () => {
      const { tape } = await open()
      const hours = () => read(tape, { seconds: 3_600 })
      const days = () => read(tape, { seconds: 86_400 })
      await write(tape, minute(1), minute(2), minute(61), [tesla, 60, minute(1, 7)[2]])
      await write(tape, minute(119), minute(1_441))
      expect([hours(), days()]).toEqual([
        ['0 r2', '60 r2', '1440 r1'],
        ['0 r4', '1440 r1'],
      ])
      await write(tape, minute(2, 5), minute(0), minute(1_442), minute(1_442, 3), minute(1_439))
      expect([hours(), days()]).toEqual([
        ['0 r7', '60 r2', '1380 r1', '1440 r4'],
        ['0 r10', '1440 r4'],
      ])
    })

    it('are those of another copy where these are newer', async () => {
      const { tape } = await open()
      await write(tape, minute(1, 2), minute(2, 2))
      tape.mergeBars([minute(1, 1), minute(2, 10), minute(3, 1)])
      expect(read(tape)).toEqual(['1 r2', '2 r10', '3 r1'])
      expect(read(tape, { seconds: 3_600 })).toEqual(['0 r13'])
    })

    it('are deleted once they are older than their retention', async () => {
      const { tape } = await open({ barsRetentionMs: 120_000 })
      await write(tape, minute(1), minute(2), minute(3))
      expect(read(tape)).toEqual(['1 r1', '2 r1', '3 r1'])
      await write(tape, minute(4))
      expect(read(tape)).toEqual(['2 r1', '3 r1', '4 r1'])
      expect(read(tape, { seconds: 3_600 })).toEqual(['0 r4'])
      await write(tape, minute(62))
      expect(read(tape, { seconds: 3_600 })).toEqual(['60 r1'])
    })
  })

  describe(`${name}: a batch that begins at another number than the next`, () => {
    it('is refused, and leaves no update and no note', async () => {
      const { tape } = await open()
      const [last] = await tape.append([transfer({ at })])
      const { next } = tape
      expect(next).toBe((last?.seq ?? 0) + 1)
      for (const first of [next - 1, next + 1, 0]) {
        const batch = { first, updates: [transfer({ at, nth: 2 })], notes: new Notes().set(head, first), keepAfter: 0 }
        await expect(tape.writer.append(batch)).rejects.toThrow(`begins at ${first}, and the tape continues at ${next}`)
      }
      expect([tape.end(), tape.next, tape.notes.note(head)]).toEqual([next - 1, next, undefined])
      expect(await all(tape)).toEqual([last])
    })
  })

  it(`${name} is what its contract says after any appends, evictions, restarts and crashes`, async () => {
    await fc.assert(
      fc.asyncProperty(Bounds, fc.array(Step, { maxLength: 10, size: 'max' }), async (bounds, steps) => {
        const fixture = await openFixture(bounds)
        try {
          fixture.clock.now = NOON
          const expected = new ExpectedTape(fixture.tape, bounds)
          for (const { end, afterMs, drafts, note } of steps) {
            fixture.clock.now += afterMs
            if (end === 'clean') await fixture.reopen()
            if (end === 'unclean') await fixture.crash()
            const { tape } = fixture
            const delivered: unknown[] = []
            const stop = tape.follow((...given) => delivered.push(given.slice(0, 2)))
            const batch = drafts.map(({ make, ...about }) => make({ ...about, at: fixture.clock.now }))
            const notes = note === undefined ? new Notes() : new Notes().set(items.at('a'), note)
            const entries = await tape.append(batch, notes)
            stop()
            expect(delivered).toEqual([[entries, notes]])
            expected.append(batch, entries, note, fixture.clock.now)
            await expected.check(tape)
          }
        } finally {
          await fixture.close()
        }
      }),
      { numRuns: 25 },
    )
  })
}

/** Not both: a tape that is read again from NATS evicts by age what first made it evict others by count. */
const Bounds = fc.constantFrom<TapeBounds>({}, { tapeMaxMessages: 4 }, { tapeMaxMessages: 6 }, { tapeRetentionMs: HOUR_MS })
const Step = fc.record({
  end: fc.constantFrom('none', 'none', 'none', 'clean', 'unclean'),
  afterMs: fc.constantFrom(0, 0, 1, HOUR_MS / 2, HOUR_MS),
  drafts: fc.array(
    fc.record({
      make: fc.constantFrom<((about: { address: Hex; at: number; nth: number }) => Draft)[]>(
        ...[transfer, approval, otherLog, navChange, token, status, pause, retract, amend],
        (about) => seal({ ...about, types: ['transfer', 'part'] }),
        (about) => seal({ ...about, types: ['part', 'pause'] }),
      ),
      address: fc.constantFrom(apple, tesla),
      nth: fc.integer({ min: 1, max: 2 }),
    }),
    { maxLength: 4, size: 'max' },
  ),
  note: fc.constantFrom(undefined, null, 1, { paused: [] }),
})

/** What a tape holds by its contract, in plain lists. */
class ExpectedTape {
  readonly #bounds: TapeBounds
  readonly #epoch: string
  readonly #lastIds = new Map<string, string>()
  #kept: readonly Entry[] = []
  #note: unknown = null
  #oldest: number
  #end: number

  constructor(tape: TestTape, bounds: TapeBounds) {
    this.#bounds = bounds
    this.#epoch = tape.epoch
    this.#oldest = tape.oldest()
    this.#end = tape.end()
  }

  append(batch: readonly Draft[], entries: readonly Entry[], note: unknown, now: number): void {
    expect(entries.map(({ update: { id: _, prev: __, ...draft } }) => draft)).toEqual(batch)
    for (const { seq, update } of entries) {
      const channel = `${update.address} ${update.type}`
      expect([update.id, update.prev]).toEqual([`${this.#epoch}.${seq}`, this.#lastIds.get(channel) ?? null])
      expect(seq).toBeGreaterThan(this.#end)
      this.#lastIds.set(channel, update.id)
      this.#end = seq
    }
    if (note !== undefined) this.#note = note
    this.#evict([...this.#kept, ...entries], now)
  }

  /** By age, oldest first, and then by count, of what eviction by count does not spare. */
  #evict(entries: readonly Entry[], now: number): void {
    const { tapeRetentionMs = Number.POSITIVE_INFINITY, tapeMaxMessages = Number.POSITIVE_INFINITY } = this.#bounds
    const young = entries.filter(({ update }) => Date.parse(update.time) >= now - tapeRetentionMs)
    const evictable = young.filter(({ update }) =>
      update.type === 'seal' ? !update.types.includes('pause') : ['transfer', 'approval', 'log'].includes(update.type),
    )
    const excess = new Set(evictable.slice(0, Math.max(0, young.length - tapeMaxMessages)))
    this.#kept = young.filter((entry) => !excess.has(entry))
    for (const entry of entries) if (!this.#kept.includes(entry)) this.#oldest = Math.max(this.#oldest, entry.seq)
  }

  async check(tape: TestTape): Promise<void> {
    const kept = this.#kept
    const read: Entry[] = []
    for (let page = await tape.readAfter(0, 2); page.length > 0; page = await tape.readAfter(page.at(-1)?.seq ?? 0, 2))
      read.push(...page)
    expect(read).toEqual(kept)
    expect([tape.epoch, tape.oldest(), tape.end()]).toEqual([this.#epoch, this.#oldest, this.#end])
    expect(tape.notes.note(items.at('a')) ?? null).toEqual(this.#note)
    expect([...tape.notes.notes(items).values()]).toEqual(this.#note === null ? [] : [this.#note])
    for (const nth of [1, 2]) {
      const { key } = transfer({ at: NOON, nth })
      expect(tape.find({ key: key })).toEqual(kept.filter(({ update }) => 'key' in update && update.key === key))
      const seals = kept.filter(({ update }) => update.type === 'seal' && update.block.number === nth)
      expect(tape.find({ sealsOf: nth })).toEqual(seals)
      for (const token of [apple, tesla])
        expect(tape.find({ sealsOf: nth, address: token })).toEqual(seals.filter(({ update }) => update.address === token))
    }
    for (const time of kept.flatMap(({ update }) => [Date.parse(update.time), Date.parse(update.time) + 1])) {
      const next = kept.find(({ update }) => Date.parse(update.time) >= time)
      expect(await tape.seqBefore(time)).toBe(next ? next.seq - 1 : this.#end)
    }
  }
}
