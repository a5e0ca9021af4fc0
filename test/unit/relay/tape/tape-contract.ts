import fc from 'fast-check'
import { describe, expect, it, onTestFinished } from 'vitest'
import type { Hex } from '../../../../src/lib/hex.ts'
import { parsePosition } from '../../../../src/protocol/position.ts'
import { type Draft, type DraftOf, Update, type UpdateType } from '../../../../src/protocol/updates.ts'
import { defineNote, defineNotes, Notes } from '../../../../src/relay/tape/notes.ts'
import { LOST_BOUND } from '../../../../src/relay/tape/runs.ts'
import type { Entry, HistoryFilter, SearchableTape, SeqRange } from '../../../../src/relay/tape/tape.ts'
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

type TapeBounds = { readonly tapeRetentionMs?: number; readonly tapeMaxMessages?: number; readonly openGrowth?: number }

/** A tape in a folder that can be reopened and crashed. */
type TapeFixture = {
  readonly tape: SearchableTape
  /** The clock of the tape. */
  readonly clock: { now: number }
  /** Closes the tape and opens it again. */
  reopen(): Promise<SearchableTape>
  /** Leaves the tape as a killed process does, and opens what is on disk. */
  crash(): Promise<SearchableTape>
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
  const all = async (tape: SearchableTape): Promise<readonly Entry[]> => tape.readAfter(0, 10_000)
  const seqs = (entries: readonly Entry[]) => entries.map(({ seq }) => seq)
  const at = NOON

  describe(`${name}: an empty tape`, () => {
    it('ends at its oldest position', async () => {
      const { tape } = await open()
      expect(tape.end()).toBe(tape.oldest())
      expect(await all(tape)).toEqual([])
      expect(await tape.seqBefore(0)).toBe(tape.end())
    })

    it('has an epoch that fits into a position', async () => {
      const { tape } = await open()
      expect(parsePosition(`${tape.epoch}.0`)).toEqual({ epoch: tape.epoch, seq: 0, n: null })
    })
  })

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

    it('survives a restart and a crash as the same text', async () => {
      const fixture = await open()
      const entries = await fixture.tape.append(oneOfEach({ at }))
      expect(await all(await fixture.reopen())).toEqual(entries)
      expect(await all(await fixture.crash())).toEqual(entries)
    })
  })

  describe(`${name}: prev`, () => {
    const prevs = (entries: readonly Entry[]) => entries.map(({ update }) => update.prev)

    it('continues after a crash of a long tape', async () => {
      const fixture = await open()
      const [rare] = await fixture.tape.append([navChange({ at })])
      let last: Entry | undefined
      for (let nth = 0; nth < 10_000; nth += 500) {
        const entries = await fixture.tape.append(Array.from({ length: 500 }, (_, index) => transfer({ at, nth: nth + index })))
        expect(entries[0]?.update.prev).toBe(last?.update.id ?? null)
        last = entries.at(-1)
      }
      const tape = await fixture.crash()
      expect(prevs(await tape.append([navChange({ at }), transfer({ at })]))).toEqual([rare?.update.id, last?.update.id])
    })

    it('may name an evicted update', async () => {
      const fixture = await open({ tapeRetentionMs: HOUR_MS })
      const [first] = await fixture.tape.append([transfer({ at })])
      fixture.clock.now = NOON + 2 * HOUR_MS
      await fixture.tape.append([status({ at: fixture.clock.now })])
      expect((await all(fixture.tape)).map(({ update }) => update.type)).toEqual(['status'])
      const [second] = await (await fixture.reopen()).append([transfer({ at: fixture.clock.now })])
      expect(second?.update.prev).toBe(first?.update.id)
    })
  })

  describe(`${name}: a follower`, () => {
    it('receives a batch once it is written, with its notes', async () => {
      const { tape } = await open()
      const received: unknown[] = []
      tape.follow((batch, notes) => {
        received.push({ batch, notes, end: tape.end(), note: tape.note(head), stored: tape.readAfter(0, 10) })
      })
      const batch = await tape.append([transfer({ at }), status({ at })], new Notes().set(head, 7))
      const [{ stored, ...rest }] = received as [{ stored: unknown }]
      expect(received).toHaveLength(1)
      expect(rest).toEqual({ batch, notes: new Notes().set(head, 7), end: batch.at(-1)?.seq, note: 7 })
      expect(await stored).toEqual(batch)
    })

    it('receives notes without updates', async () => {
      const { tape } = await open()
      const received: unknown[] = []
      tape.follow((batch, notes) => received.push([batch, [...notes]]))
      await tape.append([], new Notes().set(head, 1))
      expect(received).toEqual([[[], [[head.name, 1]]]])
    })

    it('receives every batch in order from its start to its end', async () => {
      const { tape } = await open()
      await tape.append([transfer({ at })])
      const received: number[] = []
      const stop = tape.follow((batch) => received.push(...seqs(batch)))
      const entries = [...(await tape.append([transfer({ at })])), ...(await tape.append([transfer({ at }), transfer({ at })]))]
      stop()
      await tape.append([transfer({ at })])
      expect(received).toEqual(seqs(entries))
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

  describe(`${name}: reading`, () => {
    it('goes page by page', async () => {
      const { tape } = await open()
      const entries = await tape.append([1, 2, 3, 4, 5].map((nth) => transfer({ at, nth })))
      const pages: (readonly Entry[])[] = []
      for (let seq = 0; ; ) {
        const page = await tape.readAfter(seq, 2)
        if (page.length === 0) break
        pages.push(page)
        seq = page.at(-1)?.seq ?? seq
      }
      expect(pages.map((page) => page.length)).toEqual([2, 2, 1])
      expect(pages.flat()).toEqual(entries)
    })

    it('finds nothing after the end', async () => {
      const { tape } = await open()
      await tape.append([transfer({ at })])
      expect(await tape.readAfter(tape.end(), 10)).toEqual([])
      expect(await tape.readAfter(tape.end() + 1_000, 10)).toEqual([])
    })

    it('finds the number before a time', async () => {
      const { tape } = await open()
      const entries = await tape.append([at, at + 1_000, at + 1_000, at + 3_000].map((time) => transfer({ at: time })))
      const [first = 0, second = 0, , fourth = 0] = seqs(entries)
      expect(await tape.seqBefore(at - 1)).toBe(first - 1)
      expect(await tape.seqBefore(at)).toBe(first - 1)
      expect(await tape.seqBefore(at + 1)).toBe(second - 1)
      expect(await tape.seqBefore(at + 1_000)).toBe(second - 1)
      expect(await tape.seqBefore(at + 2_000)).toBe(fourth - 1)
      expect(await tape.seqBefore(at + 3_001)).toBe(tape.end())
    })
  })

  describe(`${name}: history`, () => {
    /** All that a reader finds in a range, and the number of pages that it took. */
    const readAll = async (tape: SearchableTape, filter: HistoryFilter, range: SeqRange) => {
      const read = tape.openReader(filter)
      const found: Entry[] = []
      let { after, before } = range
      for (let pages = 1; ; pages += 1) {
        const { entries, reached } = await read({ ...range, after, before })
        expect(entries.length).toBeLessThanOrEqual(range.limit)
        found.push(...entries)
        if (reached === null) return { found, pages }
        if (range.order === 'asc') after = reached
        else before = reached
      }
    }
    const whole = (tape: SearchableTape) => ({ after: 0, before: tape.end() + 1, limit: 100 })

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
      for (let nth = 0; nth < 40; nth += 1) {
        await tape.append(Array.from({ length: 500 }, (_, index) => transfer({ at, nth: nth * 500 + index })))
      }
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
      for (let nth = 0; nth < 6; nth += 1) {
        await tape.append(Array.from({ length: 500 }, (_, index) => transfer({ at, nth: nth * 500 + index })))
      }
      await tape.append([pause({ at, nth: 1 }), seal({ at, nth: 1, types: ['pause'] }), transfer({ at, address: tesla })])
      const estimate = (type: UpdateType, after = 0, countLimit = 10_000) => {
        const types = new Set([type])
        return tape.estimateCount({ tokens: new Set([apple]), types, followersOf: types }, after, countLimit)
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

    it('are its publication, amendments and retraction, oldest first', async () => {
      const { tape } = await open()
      const [published, , amended] = await tape.append([
        transfer({ at, nth: 4 }),
        transfer({ at, nth: 5 }),
        amend({ at, nth: 4 }),
        seal({ at, nth: 4, types: ['transfer'] }),
        navChange({ at }),
      ])
      const [ended, again] = await tape.append([retract({ at, nth: 4 }), transfer({ at, nth: 4 })])
      expect(tape.readKey(key)).toEqual([published, amended, ended, again])
    })

    it('are found while their batch is delivered', async () => {
      const { tape } = await open()
      const found: number[] = []
      tape.follow(() => found.push(tape.readKey(key).length))
      await tape.append([transfer({ at, nth: 4 })])
      await tape.append([amend({ at, nth: 4 }), retract({ at, nth: 4 })])
      expect(found).toEqual([1, 3])
    })

    it('are not those of a similar key', async () => {
      const { tape } = await open()
      const similar = ['4-0x01-0', '4-0x02-0', '4-0x01-1048576', '4294967300-0x01-0']
      const entries = await tape.append(similar.map((other) => ({ ...transfer({ at, nth: 4 }), key: other })))
      for (const [index, other] of similar.entries()) expect(tape.readKey(other)).toEqual([entries[index]])
    })

    it('are none for an unpublished key', async () => {
      const { tape } = await open()
      await tape.append([navChange({ at }), token({ at }), seal({ at, nth: 4, types: ['transfer'] })])
      expect(tape.readKey(key)).toEqual([])
      for (const none of ['', '4', 'NAV', '4-0x-', '-1', `9e99-0x01-1`, '4-0x01-9e99']) expect(tape.readKey(none)).toEqual([])
    })

    it('are the same after a restart and a crash', async () => {
      const fixture = await open()
      const published = await fixture.tape.append([transfer({ at, nth: 4 }), amend({ at, nth: 4 })])
      expect((await fixture.reopen()).readKey(key)).toEqual(published)
      expect((await fixture.crash()).readKey(key)).toEqual(published)
    })

    it('are gone once evicted', async () => {
      const fixture = await open({ tapeMaxMessages: 2 })
      const [, amended] = await fixture.tape.append([transfer({ at, nth: 4 }), amend({ at, nth: 4 })])
      await fixture.tape.append([transfer({ at, nth: 5 })])
      expect(fixture.tape.readKey(key)).toEqual([amended])
    })
  })

  describe(`${name}: the seals of a block`, () => {
    it('are found by token and block, oldest first', async () => {
      const { tape } = await open()
      const [first] = await tape.append([
        seal({ at, nth: 4, types: ['transfer'] }),
        seal({ at, nth: 4, address: tesla }),
        seal({ at, nth: 5 }),
        retract({ at, nth: 4 }),
      ])
      const [second] = await tape.append([seal({ at, nth: 4 })])
      expect(tape.sealsOfToken(apple, 4)).toEqual([first, second])
      expect(tape.sealsOfToken(apple, 6)).toEqual([])
    })

    it('are found by block, of all tokens', async () => {
      const { tape } = await open()
      const [first, other, , , more] = await tape.append([
        seal({ at, nth: 4, types: ['transfer'] }),
        seal({ at, nth: 4, address: tesla }),
        seal({ at, nth: 40 }),
        transfer({ at, nth: 4 }),
        seal({ at, nth: 4 }),
      ])
      expect(tape.sealsOfBlock(4)).toEqual([first, other, more])
      expect(tape.sealsOfBlock(5)).toEqual([])
    })

    it('are kept apart from those of a token with a similar address', async () => {
      const { tape } = await open()
      const similar: Hex = `0x${'7e'.repeat(10)}${apple.slice(-20)}`
      const [one, other] = await tape.append([
        seal({ at, nth: 4 }),
        seal({ at, nth: 4, address: similar }),
        seal({ at, nth: 2 ** 32 + 4 }),
      ])
      expect(tape.sealsOfToken(apple, 4)).toEqual([one])
      expect(tape.sealsOfToken(similar, 4)).toEqual([other])
      expect(tape.sealsOfBlock(4)).toEqual([one, other])
    })

    it('stay as long as a publication that they list', async () => {
      const fixture = await open({ tapeMaxMessages: 2 })
      const kept = await fixture.tape.append([pause({ at, nth: 4 }), seal({ at, nth: 4, types: ['part', 'pause'] })])
      await fixture.tape.append([transfer({ at, nth: 5 }), seal({ at, nth: 5, types: ['transfer', 'part'] })])
      await fixture.tape.append([status({ at }), status({ at })])
      expect((await all(fixture.tape)).slice(0, 2)).toEqual(kept)
      expect(fixture.tape.sealsOfToken(apple, 5)).toEqual([])
    })
  })

  describe(`${name}: a note`, () => {
    it('is written, replaced, removed by null, and survives a restart and a crash', async () => {
      const fixture = await open()
      await fixture.tape.append([transfer({ at })], new Notes().set(items.at('a'), { symbol: 'A', paused: [] }))
      await fixture.tape.append([], new Notes().set(items.at('b'), 1).set(head, { sealed: 3 }))
      await fixture.tape.append([], new Notes().set(items.at('b'), null).set(head, { sealed: 4 }))
      for (const tape of [fixture.tape, await fixture.reopen(), await fixture.crash()]) {
        expect(tape.note(items.at('a'))).toEqual({ symbol: 'A', paused: [] })
        expect(tape.note(items.at('b'))).toBeUndefined()
        expect(tape.note(head)).toEqual({ sealed: 4 })
        expect(tape.notes(items)).toEqual(new Map([['a', { symbol: 'A', paused: [] }]]))
      }
    })

    it('survives the eviction of its updates', async () => {
      const fixture = await open({ tapeRetentionMs: HOUR_MS })
      await fixture.tape.append([transfer({ at })], new Notes().set(mark, 5))
      fixture.clock.now = NOON + 2 * HOUR_MS
      await fixture.tape.append([status({ at: fixture.clock.now })])
      expect(fixture.tape.note(mark)).toBe(5)
      expect((await fixture.reopen()).note(mark)).toBe(5)
    })
  })

  describe(`${name}: a restart`, () => {
    it('keeps the epoch, also after a crash', async () => {
      const fixture = await open()
      const { epoch } = fixture.tape
      expect((await fixture.reopen()).epoch).toBe(epoch)
      expect((await fixture.crash()).epoch).toBe(epoch)
      expect((await fixture.reopen()).epoch).toBe(epoch)
    })

    it('continues beyond every number that may be lost, where the clock says less', async () => {
      const fixture = await open()
      const [last] = await fixture.tape.append([transfer({ at })])
      const tape = await fixture.reopen()
      expect(tape.end()).toBe(last?.seq)
      const [next] = await tape.append([transfer({ at })])
      expect(next?.seq).toBe((last?.seq ?? 0) + 1 + LOST_BOUND)
    })

    it('keeps the oldest position', async () => {
      const fixture = await open({ tapeRetentionMs: HOUR_MS })
      await fixture.tape.append([transfer({ at })])
      fixture.clock.now = NOON + 2 * HOUR_MS
      await fixture.tape.append([status({ at: fixture.clock.now })])
      const oldest = fixture.tape.oldest()
      expect((await fixture.reopen()).oldest()).toBe(oldest)
      expect((await fixture.crash()).oldest()).toBe(oldest)
    })

    it('continues above the last number if everything was evicted', async () => {
      const fixture = await open({ tapeRetentionMs: HOUR_MS })
      const [first] = await fixture.tape.append([transfer({ at: NOON - 2 * HOUR_MS })])
      const tape = await fixture.reopen()
      const [second] = await tape.append([transfer({ at })])
      expect(second?.seq).toBeGreaterThan(first?.seq ?? 0)
    })
  })

  describe(`${name}: retention`, () => {
    it('evicts every type by age, and moves oldest to the last evicted number', async () => {
      const fixture = await open({ tapeRetentionMs: HOUR_MS })
      const old = await fixture.tape.append(oneOfEach({ at }))
      expect(fixture.tape.oldest()).toBe(0)
      fixture.clock.now = NOON + HOUR_MS + 1
      const kept = await fixture.tape.append(oneOfEach({ at: fixture.clock.now }))
      expect(await all(fixture.tape)).toEqual(kept)
      expect(fixture.tape.oldest()).toBe(old.at(-1)?.seq)
    })

    it('evicts also when only a note is appended', async () => {
      const fixture = await open({ tapeRetentionMs: HOUR_MS })
      const old = await fixture.tape.append(oneOfEach({ at }))
      fixture.clock.now = NOON + HOUR_MS + 1
      await fixture.tape.append([], new Notes().set(head, { sealed: 1 }))
      expect(await all(fixture.tape)).toEqual([])
      expect(fixture.tape.oldest()).toBe(old.at(-1)?.seq)
      expect(fixture.tape.end()).toBe(old.at(-1)?.seq)
    })

    it('keeps an update that is exactly as old as the bound', async () => {
      const fixture = await open({ tapeRetentionMs: HOUR_MS })
      await fixture.tape.append([transfer({ at })])
      fixture.clock.now = NOON + HOUR_MS
      await fixture.tape.append([transfer({ at: fixture.clock.now })])
      expect(await all(fixture.tape)).toHaveLength(2)
      expect(fixture.tape.oldest()).toBe(0)
    })

    it('evicts only movements, approvals, logs and seals by count, oldest first', async () => {
      const fixture = await open({ tapeMaxMessages: 7 })
      const spared: Draft[] = [navChange({ at }), token({ at }), status({ at })]
      const entries = await fixture.tape.append([...spared, transfer({ at }), approval({ at }), otherLog({ at }), seal({ at })])
      expect(await all(fixture.tape)).toEqual(entries)
      expect(fixture.tape.oldest()).toBe(0)
      await fixture.tape.append([navChange({ at })])
      expect((await all(fixture.tape)).map(({ update }) => update.type)).toEqual([
        'nav',
        'token',
        'status',
        'approval',
        'log',
        'seal',
        'nav',
      ])
      expect(fixture.tape.oldest()).toBe(entries[3]?.seq)
      await fixture.tape.append([navChange({ at }), navChange({ at })])
      expect((await all(fixture.tape)).map(({ update }) => update.type)).toEqual([
        'nav',
        'token',
        'status',
        'seal',
        'nav',
        'nav',
        'nav',
      ])
      expect(fixture.tape.oldest()).toBe(entries[5]?.seq)
    })

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
      expect(tape.readKey(transfer({ at, nth: 8 }).key)).toEqual([])
    })

    it('evicts the same after a crash as without one', async () => {
      const evicted = async (isCrashing: boolean) => {
        const fixture = await open({ tapeMaxMessages: 500 })
        for (let nth = 0; nth < 6_000; nth += 250) {
          const facts = Array.from({ length: 250 }, (_, index) => transfer({ at, nth: nth + index }))
          await fixture.tape.append([pause({ at, nth }), ...facts])
          if (isCrashing && nth % 1_000 === 0) await fixture.crash()
        }
        return (await all(fixture.tape)).map(({ update }) => (update.type === 'transfer' ? update.key : update.type))
      }
      expect(await evicted(true)).toEqual(await evicted(false))
    })

    it('keeps its count across a restart', async () => {
      const fixture = await open({ tapeMaxMessages: 3 })
      await fixture.tape.append([1, 2, 3].map((nth) => transfer({ at, nth })))
      const tape = await fixture.reopen()
      await tape.append([transfer({ at, nth: 4 })])
      expect(await all(tape)).toHaveLength(3)
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
      expect(tape.note(head)).toBe(1)
      expect(tape.note(mark)).toBeUndefined()
      expect(await all(tape)).toHaveLength(1)
      const [second, third] = await tape.append([transfer({ at }), navChange({ at })])
      expect(second?.update.prev).toBe(first?.update.id)
      expect(third?.update.prev).toBeNull()
      expect(second?.seq).toBe((first?.seq ?? 0) + 1)
      const after = await fixture.crash()
      expect(await all(after)).toHaveLength(3)
      expect(after.note(head)).toBe(1)
    })
  })

  it(`${name} is the chain of appended updates after any restarts and crashes`, async () => {
    const kinds = [transfer, approval, navChange, seal, status] as const
    const Run = fc.record({
      end: fc.constantFrom('none', 'none', 'none', 'clean', 'unclean'),
      drafts: fc.array(fc.tuple(fc.nat(kinds.length - 1), fc.constantFrom(apple, tesla)), { maxLength: 4 }),
    })
    await fc.assert(
      fc.asyncProperty(fc.array(Run, { maxLength: 8 }), async (runs) => {
        const fixture = await openFixture()
        try {
          fixture.clock.now = NOON
          let tape = fixture.tape
          const appended: Entry[] = []
          for (const { end, drafts } of runs) {
            if (end === 'clean') tape = await fixture.reopen()
            if (end === 'unclean') tape = await fixture.crash()
            const batch = drafts.map(([kind, address]) => (kinds[kind] ?? transfer)({ at, address }))
            const entries = await tape.append(batch)
            expect(entries.map(({ update }) => update.type)).toEqual(batch.map(({ type }) => type))
            expect(tape.end()).toBeGreaterThanOrEqual(entries.at(-1)?.seq ?? 0)
            appended.push(...entries)
          }
          expect(await all(tape)).toEqual(appended)
          const lastIds = new Map<string, string>()
          let last = 0
          for (const { seq, update } of appended) {
            const channel = `${update.address} ${update.type}`
            expect(update.prev).toBe(lastIds.get(channel) ?? null)
            expect(seq).toBeGreaterThan(last)
            lastIds.set(channel, update.id)
            last = seq
          }
          expect(tape.end()).toBeGreaterThanOrEqual(last)
        } finally {
          await fixture.close()
        }
      }),
      { numRuns: 25 },
    )
  })
}
