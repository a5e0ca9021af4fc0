import fc from 'fast-check'
import { describe, expect, it, vi } from 'vitest'
import { LongWorkQueue } from '../../../../../src/relay/edge/limits/long-work-queue.ts'
import type { TestTape } from '../../../../support/local-tape.ts'
import { tesla, token } from '../../tape/update-drafts.ts'
import {
  type ArbitrarySelection,
  batchesOf,
  listenRequestOf,
  ArbitrarySelection as Selections,
  TapeActions,
} from '../arbitrary-tape.ts'
import { type openEdge, openTestEdge, withEdge } from '../edge-fixture.ts'
import { approvalAt, at, sealOf, transferAt } from '../fact-drafts.ts'
import { idOf, openNamedEdge, parametersOf, type QueryParameters, queryAt, readPageOf, tokenNotes } from './history-fixture.ts'

/** More pages than any history of these tests has; a longer one means a loop. */
const PAGES_BOUND = 500

/** The page that a client gets for these URL parameters. */
const pageOf = async (tape: TestTape, parameters: QueryParameters) => readPageOf(tape, await queryAt(at, tape, parameters))

/** All pages as texts; `between` runs between two of them. */
async function pagesOf(tape: TestTape, parameters: QueryParameters, between: () => Promise<unknown> = async () => {}) {
  const pages: (readonly string[])[] = []
  const cursorParameter = parameters.order === 'desc' ? 'before' : 'after'
  for (let cursor: QueryParameters = {}; ; ) {
    const { texts, next } = await pageOf(tape, { ...parameters, ...cursor })
    pages.push(texts)
    if (next === null) return pages
    expect(pages.length).toBeLessThan(PAGES_BOUND)
    cursor = { [cursorParameter]: next }
    await between()
  }
}

/** The updates that a stream of this selection sends from the start. */
async function streamOf({ listen }: ReturnType<typeof openEdge>, selected: ArbitrarySelection): Promise<readonly string[]> {
  const { outlet, started, leave } = listen({ ...listenRequestOf(selected), since: { from: 'start' } })
  await started
  leave()
  return outlet.publishedLines
}

const Limits = fc.oneof(fc.integer({ min: 1, max: 7 }), fc.constant(1_000))

describe('pages of history', () => {
  it('form the stream together, for any limit, order, view and selection, while others are written', async () => {
    await fc.assert(
      fc.asyncProperty(TapeActions, Selections, Limits, fc.nat(), (actions, selected, limit, at) =>
        withEdge(async (edge) => {
          await edge.tape.append([], tokenNotes)
          const batches = [...batchesOf(actions)]
          // In one run of four nothing is written meanwhile.
          const early = batches.splice(0, at % 4 === 0 ? batches.length : at % (batches.length + 1))
          for (const batch of early) await edge.tape.append(batch)
          const before = await streamOf(edge, selected)
          const parameters = { ...parametersOf(selected), limit }
          const write = async () => edge.tape.append(batches.shift() ?? [])
          const ascending = await pagesOf(edge.tape, parameters, write)
          const known = await streamOf(edge, selected)
          expect(ascending.flat()).toEqual(known.slice(0, ascending.flat().length))
          expect(ascending.flat().length).toBeGreaterThanOrEqual(before.length)
          const descending = await pagesOf(edge.tape, { ...parameters, order: 'desc' }, write)
          expect(descending.flat()).toEqual(known.toReversed())
          for (const page of [...ascending, ...descending]) expect(page.length).toBeLessThanOrEqual(limit)
        }),
      ),
      { numRuns: 300 },
    )
  })

  it('hold the updates between two positions, both exclusive, in either order', async () => {
    await fc.assert(
      fc.asyncProperty(TapeActions, Selections, Limits, fc.nat(), fc.nat(), (actions, selected, limit, first, second) =>
        withEdge(async (edge) => {
          await edge.tape.append([], tokenNotes)
          for (const batch of batchesOf(actions)) await edge.tape.append(batch)
          const expected = await streamOf(edge, selected)
          if (expected.length === 0) return
          const [from, to] = [first % expected.length, second % expected.length]
          const [after, before] = [from, to].map((index) => idOf(expected[index] ?? ''))
          const parameters = { ...parametersOf(selected), limit, after: after ?? '', before: before ?? '' }
          const between = expected.slice(from + 1, Math.max(to, from + 1))
          expect((await pagesOf(edge.tape, parameters)).flat()).toEqual(between)
          expect((await pagesOf(edge.tape, { ...parameters, order: 'desc' })).flat()).toEqual(between.toReversed())
        }),
      ),
      { numRuns: 200 },
    )
  })
})

/** Appends transfers in batches of 500. */
async function appendTransfers(tape: TestTape, count: number): Promise<void> {
  for (let from = 0; from < count; from += 500)
    await tape.append(Array.from({ length: 500 }, (_, index) => transferAt({ index: from + index })))
}

describe('a page', () => {
  it('holds a hundred updates of all tokens, without approvals, by default', async () => {
    const { tape } = await openNamedEdge()
    await tape.append([approvalAt({ index: 0 }), transferAt({ index: 1, address: tesla })])
    await tape.append(Array.from({ length: 199 }, (_, index) => transferAt({ index: 2 + index })))
    const { texts, next } = await pageOf(tape, {})
    expect(texts.map(idOf)).toEqual(Array.from({ length: 100 }, (_, index) => `${tape.epoch}.${index + 2}`))
    expect(next).toBe(`${tape.epoch}.101`)
    const rest = await pageOf(tape, { after: next ?? '' })
    expect([rest.texts.length, rest.next]).toEqual([100, null])
  })

  it('ends at the end of the tape, or newest first at its start', async () => {
    const { tape } = await openNamedEdge()
    await tape.append([transferAt({ index: 1 }), transferAt({ index: 2 }), transferAt({ index: 3 })])
    const [first, second, third] = [1, 2, 3].map((seq) => `${tape.epoch}.${seq}`)
    expect(await pageOf(tape, { order: 'desc', limit: 2 })).toMatchObject({ next: second })
    expect(await pageOf(tape, { order: 'desc', limit: 2, before: second ?? '' })).toMatchObject({ next: null })
    expect(await pageOf(tape, { limit: 3 })).toMatchObject({ next: null })
    expect(await pageOf(tape, { after: third ?? '' })).toEqual({ texts: [], next: null })
    expect(await pageOf(tape, { after: `${tape.epoch}.99`, order: 'desc' })).toEqual({ texts: [], next: null })
    expect((await pageOf(tape, { before: `${tape.epoch}.99` })).texts.map(idOf)).toEqual([first, second, third])
  })

  it('is empty and has a cursor when a long scan found nothing, which other busy tokens and types do not lengthen', async () => {
    const { tape } = await openNamedEdge()
    const [first] = await tape.append([transferAt({ index: 0, address: tesla })])
    const [firstApproval] = await tape.append([approvalAt({ index: 0 })])
    await appendTransfers(tape, 25_000)
    const [found] = await tape.append([transferAt({ index: 0 }, { reference_value: '9000000.00' })])
    const [last] = await tape.append([transferAt({ index: 1, address: tesla })])
    const [lastApproval] = await tape.append([approvalAt({ index: 1 })])
    for (const order of ['asc', 'desc'] as const) {
      const pages = await pagesOf(tape, { min_value: 1_000_000, types: 'transfer', order })
      expect(pages.length).toBeGreaterThan(2)
      expect(pages.flat()).toEqual([found?.text])
    }
    expect(await pagesOf(tape, { symbols: 'TSLAc' })).toEqual([[first?.text, last?.text]])
    expect(await pagesOf(tape, { types: 'approval' })).toEqual([[firstApproval?.text, lastApproval?.text]])
  })

  it('stops when its text is large, and the next page continues', async () => {
    const { tape } = await openNamedEdge()
    const long = { ...token({ at }), token: { text: 'x'.repeat(1_000_000) } }
    const entries = await tape.append(Array.from({ length: 12 }, () => long))
    const pages = await pagesOf(tape, { limit: 1_000 })
    expect(pages.map((page) => page.length)).toEqual([5, 5, 2])
    expect(pages.flat()).toEqual(entries.map(({ text }) => text))
  })
})

describe('a request', () => {
  it('with unknown symbols is answered if some are known', async () => {
    const { tape } = await openNamedEdge()
    await expect(pageOf(tape, { symbols: 'TSLX' })).rejects.toMatchObject({ code: 404, details: { suggest: ['TSLAc'] } })
    const [, tesla1] = await tape.append([transferAt({ index: 1 }), transferAt({ index: 1, address: tesla })])
    expect((await pageOf(tape, { symbols: 'TSLX,tsla' })).texts).toEqual([tesla1?.text])
  })

  it('before the first list is refused', async () => {
    await expect(pageOf(openTestEdge().tape, {})).rejects.toMatchObject({ code: 503, reason: 'no_list' })
  })
})

describe('a long read', () => {
  /** Counts the turns of the event loop during the work. */
  async function turnsDuring(work: Promise<unknown>): Promise<number> {
    let turns = 0
    let over = false
    const count = () => {
      turns += 1
      if (!over) setImmediate(count)
    }
    setImmediate(count)
    await work
    over = true
    return turns
  }

  it('yields to the event loop again and again, with many reads at once too', async () => {
    const { tape } = await openNamedEdge()
    await appendTransfers(tape, 5_000)
    const workQueue = new LongWorkQueue()
    const query = await queryAt(at, tape, { min_value: 1_000_000, types: 'transfer' })
    const read = () => workQueue.run('here', () => readPageOf(tape, query, { pause: workQueue.nextSlice }))
    const alone = await turnsDuring(read())
    expect(alone).toBeGreaterThan(20)
    // One slice per turn: three reads take three times as many turns.
    expect(await turnsDuring(Promise.all([read(), read(), read()]))).toBeGreaterThan(2.5 * alone)
  })

  it('counts every key of a seal that it looks up as work, not the time, and pauses after each 200', async () => {
    const { tape } = await openNamedEdge()
    for (let block = 0; block < 25; block += 1) {
      const facts = Array.from({ length: 250 }, (_, index) => transferAt({ block, index }))
      await tape.append([...facts, sealOf(facts, block)])
    }
    const parameters = { types: 'transfer', min_value: 1_000_000 }
    // The updates alone would fit on two.
    expect(await pagesOf(tape, parameters)).toHaveLength(4)
    const facts = Array.from({ length: 3_000 }, (_, index) => transferAt({ block: 25, index }))
    const { seq } = (await tape.append([...facts, sealOf(facts, 25)])).at(-1) ?? { seq: 0 }
    const query = await queryAt(at, tape, { ...parameters, after: `${tape.epoch}.${seq - 1}` })
    const pause = vi.fn(async () => {})
    await readPageOf(tape, query, { pause })
    // After each 200 keys, and after the page.
    expect(pause).toHaveBeenCalledTimes(15 + 1)
  })

  it('ends at the end of the tape at the time of the request, not inside a later seal', async () => {
    const { tape } = await openNamedEdge()
    const fact = transferAt({ index: 1 })
    await tape.append([fact])
    const query = await queryAt(at, tape, { stage: 'sealed' })
    const [seal] = await tape.append([sealOf([fact])])
    expect(await readPageOf(tape, query)).toEqual({ texts: [], next: null })
    expect((await pageOf(tape, { stage: 'sealed' })).texts.map(idOf)).toEqual([`${seal?.update.id}.1`, seal?.update.id])
  })

  it('ends when its client is gone', async () => {
    const { tape } = await openNamedEdge()
    await tape.append(Array.from({ length: 2_000 }, (_, index) => transferAt({ index })))
    const query = await queryAt(at, tape, { limit: 1_000 })
    let checks = 0
    const { texts } = await readPageOf(tape, query, { isGone: () => ++checks > 3 })
    expect(texts.length).toBeLessThan(1_000)
  })

  it('is refused when too many run, and allowed again when they end', async () => {
    const workQueue = new LongWorkQueue()
    const ends: (() => void)[] = []
    const runAll = (client: string) =>
      Array.from({ length: 32 }, () => workQueue.run(client, () => new Promise<void>((end) => ends.push(end))))
    const works = runAll('here')
    // One client leaves room for another.
    await expect(workQueue.run('here', async () => {})).rejects.toMatchObject({ code: 503, reason: 'busy' })
    works.push(...runAll('there'))
    await expect(workQueue.run('elsewhere', async () => {})).rejects.toMatchObject({ code: 503, reason: 'busy' })
    while (ends.length < works.length) await workQueue.nextSlice()
    for (const end of ends) end()
    await Promise.all(works)
    expect(await workQueue.run('here', async () => 'done')).toBe('done')
  })
})
