import fc from 'fast-check'
import { describe, expect, it } from 'vitest'
import { readPage } from '../../../../src/edge/history/history-page.ts'
import { WorkQueue } from '../../../../src/edge/limits/work-queue.ts'
import { Refusal } from '../../../../src/protocol/refusal.ts'
import type { SearchableTape } from '../../../../src/tape/tape.ts'
import { tesla, token } from '../../tape/update-drafts.ts'
import {
  type ArbitrarySelection,
  batchesOf,
  listenRequestOf,
  ArbitrarySelection as Selections,
  TapeActions,
} from '../arbitrary-tape.ts'
import { openEdge, openTestEdge } from '../edge-fixture.ts'
import { approvalAt, at, pauseAt, sealOf, transferAt } from '../fact-drafts.ts'
import {
  historyReaderOf,
  idOf,
  openNamedEdge,
  parametersOf,
  type QueryParameters,
  queryAt,
  tokenNotes,
} from './history-fixture.ts'

/** No history of these tests has so many pages; a longer one goes round in a circle. */
const PAGES_BOUND = 500

/** One page, asked for as a client asks. */
const pageOf = async (tape: SearchableTape, parameters: QueryParameters) =>
  readPage(historyReaderOf(tape), await queryAt(at, tape, parameters))

/** Page after page until there is none; each as its texts. `between` happens between two of them. */
async function pagesOf(
  tape: SearchableTape,
  parameters: QueryParameters,
  between: () => Promise<unknown> = async () => {},
) {
  const pages: (readonly string[])[] = []
  const cursorParameter = parameters.order === 'desc' ? 'before' : 'after'
  for (let at: QueryParameters = {}; ; ) {
    const { texts, next } = await pageOf(tape, { ...parameters, ...at })
    pages.push(texts)
    if (next === null) return pages
    expect(pages.length).toBeLessThan(PAGES_BOUND)
    at = { [cursorParameter]: next }
    await between()
  }
}

/** What a stream gives to one who asks for all that there is. */
async function streamOf(
  { listen }: ReturnType<typeof openEdge>,
  selected: ArbitrarySelection,
): Promise<readonly string[]> {
  const { outlet, started, leave } = listen({ ...listenRequestOf(selected), since: { from: 'start' } })
  await started
  leave()
  return outlet.publishedLines
}

const Limits = fc.oneof(fc.integer({ min: 1, max: 7 }), fc.constant(1_000))

describe('pages of history', () => {
  it('one behind the other are the stream, whatever the limit, the order, the view and who asks', async () => {
    await fc.assert(
      fc.asyncProperty(TapeActions, Selections, Limits, async (deeds, selected, limit) => {
        const house = openEdge()
        try {
          await house.tape.append([], tokenNotes)
          for (const turn of batchesOf(deeds)) await house.tape.append(turn)
          const expected = await streamOf(house, selected)
          const asked = { ...parametersOf(selected), limit }
          const forth = await pagesOf(house.tape, asked)
          expect(forth.flat()).toEqual(expected)
          const back = await pagesOf(house.tape, { ...asked, order: 'desc' })
          expect(back.flat()).toEqual(expected.toReversed())
          for (const page of [...forth, ...back]) expect(page.length).toBeLessThanOrEqual(limit)
        } finally {
          await house.close()
        }
      }),
      { numRuns: 300 },
    )
  })

  it('give what stands between two places and neither of them, from either end', async () => {
    await fc.assert(
      fc.asyncProperty(
        TapeActions,
        Selections,
        Limits,
        fc.nat(),
        fc.nat(),
        async (deeds, selected, limit, one, other) => {
          const house = openEdge()
          try {
            await house.tape.append([], tokenNotes)
            for (const turn of batchesOf(deeds)) await house.tape.append(turn)
            const expected = await streamOf(house, selected)
            if (expected.length === 0) return
            const [from, to] = [one % expected.length, other % expected.length]
            const [after, before] = [from, to].map((index) => idOf(expected[index] ?? ''))
            const asked = { ...parametersOf(selected), limit, after: after ?? '', before: before ?? '' }
            const between = expected.slice(from + 1, Math.max(to, from + 1))
            expect((await pagesOf(house.tape, asked)).flat()).toEqual(between)
            expect((await pagesOf(house.tape, { ...asked, order: 'desc' })).flat()).toEqual(between.toReversed())
          } finally {
            await house.close()
          }
        },
      ),
      { numRuns: 200 },
    )
  })

  it('give each message exactly once while others are being written', async () => {
    await fc.assert(
      fc.asyncProperty(TapeActions, Selections, Limits, async (deeds, selected, limit) => {
        const house = openEdge()
        try {
          await house.tape.append([], tokenNotes)
          const turns = [...batchesOf(deeds)]
          const early = turns.splice(0, Math.ceil(turns.length / 2))
          for (const turn of early) await house.tape.append(turn)
          const before = await streamOf(house, selected)
          const write = async () => house.tape.append(turns.shift() ?? [])
          const forth = await pagesOf(house.tape, { ...parametersOf(selected), limit }, write)
          expect(forth.flat()).toEqual((await streamOf(house, selected)).slice(0, forth.flat().length))
          expect(forth.flat().length).toBeGreaterThanOrEqual(before.length)
          const known = await streamOf(house, selected)
          const back = await pagesOf(house.tape, { ...parametersOf(selected), limit, order: 'desc' }, write)
          expect(back.flat()).toEqual(known.toReversed())
        } finally {
          await house.close()
        }
      }),
      { numRuns: 150 },
    )
  })
})

/** Whether somebody is refused, and with which words. */
async function refusalOf(
  tape: SearchableTape,
  parameters: QueryParameters,
): Promise<Pick<Refusal, 'code' | 'message' | 'details'>> {
  const failure = await pageOf(tape, parameters).catch((given: unknown) => given)
  if (!(failure instanceof Refusal)) throw new Error('it was answered')
  return failure
}

describe('a page', () => {
  it('holds a hundred messages where nobody says how many, of all tokens, without approvals', async () => {
    const { tape } = await openNamedEdge()
    await tape.append([approvalAt({ index: 0 }), transferAt({ index: 1, address: tesla })])
    await tape.append(Array.from({ length: 199 }, (_, index) => transferAt({ index: 2 + index })))
    const { texts, next } = await pageOf(tape, {})
    expect(texts.map(idOf)).toEqual(Array.from({ length: 100 }, (_, index) => `${tape.epoch}.${index + 2}`))
    expect(next).toBe(`${tape.epoch}.101`)
    const rest = await pageOf(tape, { after: next ?? '' })
    expect([rest.texts.length, rest.next]).toEqual([100, null])
  })

  it('ends at the end of the tape, and newest first at its start', async () => {
    const { tape } = await openNamedEdge()
    await tape.append([transferAt({ index: 1 }), transferAt({ index: 2 }), transferAt({ index: 3 })])
    const [first, second, third] = [1, 2, 3].map((seq) => `${tape.epoch}.${seq}`)
    const idsOf = async (parameters: QueryParameters) => (await pageOf(tape, parameters)).texts.map(idOf)
    expect(await idsOf({ order: 'desc' })).toEqual([third, second, first])
    expect(await pageOf(tape, { order: 'desc', limit: 2 })).toMatchObject({ next: second })
    expect(await pageOf(tape, { order: 'desc', limit: 2, before: second ?? '' })).toMatchObject({ next: null })
    expect(await pageOf(tape, { limit: 3 })).toMatchObject({ next: null })
    expect(await pageOf(tape, { after: third ?? '' })).toEqual({ texts: [], next: null })
    expect(await pageOf(tape, { after: `${tape.epoch}.99`, order: 'desc' })).toEqual({ texts: [], next: null })
    expect(await idsOf({ before: `${tape.epoch}.99` })).toEqual([first, second, third])
    expect(await idsOf({ after: third ?? '', before: first ?? '' })).toEqual([])
  })

  it('gives what eviction spared before what is kept as a whole', async () => {
    const { tape } = await openNamedEdge({ bound: 3 })
    const [spared] = await tape.append([pauseAt({ index: 1 }), transferAt({ index: 2 })])
    const kept = await tape.append([transferAt({ index: 3 }), transferAt({ index: 4 })])
    expect(tape.oldest()).toBe(2)
    const { texts } = await pageOf(tape, { after: `${tape.epoch}.0` })
    expect(texts).toEqual([spared, ...kept].map((entry) => entry?.text))
  })

  it('that looked at much and found nothing is empty, and says where to go on', async () => {
    const { tape } = await openNamedEdge()
    for (let turn = 0; turn < 50; turn += 1) {
      await tape.append(Array.from({ length: 500 }, (_, index) => transferAt({ index: turn * 500 + index })))
    }
    const [found] = await tape.append([transferAt({ index: 0 }, { reference_value: '9000000.00' })])
    for (const order of ['asc', 'desc'] as const) {
      const pages = await pagesOf(tape, { min_value: 1_000_000, types: 'transfer', order })
      expect(pages.length).toBeGreaterThan(2)
      expect(pages.flat()).toEqual([found?.text])
    }
  })

  it('of one token is not full of pages that hold nothing, however much the others do', async () => {
    const { tape } = await openNamedEdge()
    const [first] = await tape.append([transferAt({ index: 0, address: tesla })])
    for (let turn = 0; turn < 50; turn += 1) {
      await tape.append(Array.from({ length: 500 }, (_, index) => transferAt({ index: turn * 500 + index })))
    }
    const [last] = await tape.append([transferAt({ index: 1, address: tesla })])
    expect(await pagesOf(tape, { symbols: 'TSLAc' })).toEqual([[first?.text, last?.text]])
  })

  it('stops where it has grown large, and goes on behind it', async () => {
    const { tape } = await openNamedEdge()
    const long = { ...token({ at }), token: { text: 'x'.repeat(1_000_000) } }
    const entries = await tape.append(Array.from({ length: 12 }, () => long))
    const pages = await pagesOf(tape, { limit: 1_000 })
    expect(pages.map((page) => page.length)).toEqual([5, 5, 2])
    expect(pages.flat()).toEqual(entries.map(({ text }) => text))
  })

  it('goes on inside a seal in the sealed view, in both directions', async () => {
    const { tape } = await openNamedEdge()
    const facts = [1, 2, 3].map((index) => transferAt({ index }))
    await tape.append([...facts, sealOf(facts)])
    const at = (place: string) => `${tape.epoch}.${place}`
    const asked = { stage: 'sealed', limit: 2 }
    expect((await pageOf(tape, asked)).next).toBe(at('4.2'))
    expect((await pageOf(tape, { ...asked, after: at('4.2') })).texts.map(idOf)).toEqual([at('4.3'), at('4')])
    const back = await pageOf(tape, { ...asked, order: 'desc' })
    expect(back.texts.map(idOf)).toEqual([at('4'), at('4.3')])
    expect(back.next).toBe(at('4.3'))
    const further = await pageOf(tape, { ...asked, order: 'desc', before: back.next ?? '' })
    expect(further.texts.map(idOf)).toEqual([at('4.2'), at('4.1')])
    // Outside of the sealed view such a place is just before the seal.
    expect((await pageOf(tape, { after: at('4.2') })).texts.map(idOf)).toEqual([at('4')])
    expect((await pageOf(tape, { before: at('4.2'), order: 'desc', limit: 1 })).texts.map(idOf)).toEqual([at('3')])
  })
})

describe('a request that cannot be answered', () => {
  it.each<[string, QueryParameters, number, string]>([
    ['a limit of none', { limit: 0 }, 400, 'limit'],
    ['a limit beyond a thousand', { limit: 1_001 }, 400, 'limit'],
    ['a limit that is no number', { limit: '1e2' }, 400, 'limit'],
    ['an order that there is not', { order: 'newest' }, 400, 'order'],
    ['a place that cannot be read', { after: 'yesterday' }, 400, 'after'],
    ['an end that cannot be read', { before: 'k.-1' }, 400, 'before'],
    ['no place at all', { after: '' }, 400, 'after'],
    ['no symbol at all', { symbols: ',' }, 400, 'symbols'],
    ['a type that there is not', { types: 'transfers' }, 400, 'types'],
    ['a place of another tape', { after: 'zzzzz9.7' }, 410, 'after'],
    ['an end of another tape, though it were far beyond', { before: 'zzzzz9.999' }, 410, 'before'],
  ])('%s is refused by name', async (_, parameters, code, parameter) => {
    const { tape } = await openNamedEdge()
    const refusal = await refusalOf(tape, parameters)
    expect(refusal).toMatchObject({ code, details: { parameter } })
    expect(refusal.message).toMatch(new RegExp(`^${parameter}: .*\\.$`))
  })

  it('is one that knows none of its symbols, and not one that knows some', async () => {
    const { tape } = await openNamedEdge()
    expect(await refusalOf(tape, { symbols: 'TSLX' })).toMatchObject({ code: 404, details: { suggest: ['TSLAc'] } })
    const [, tesla1] = await tape.append([transferAt({ index: 1 }), transferAt({ index: 1, address: tesla })])
    expect((await pageOf(tape, { symbols: 'TSLX,tsla' })).texts).toEqual([tesla1?.text])
  })

  it('comes before there is a list', async () => {
    const { tape } = openTestEdge()
    expect(await refusalOf(tape, {})).toMatchObject({ code: 503, reason: 'no_list' })
  })
})

describe('a long reading', () => {
  /** Counts the turns of the event loop that others get meanwhile. */
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

  it('gives way to everybody else again and again, also where many read at once', async () => {
    const { tape } = await openNamedEdge()
    for (let turn = 0; turn < 10; turn += 1) {
      await tape.append(Array.from({ length: 500 }, (_, index) => transferAt({ index: turn * 500 + index })))
    }
    const workQueue = new WorkQueue()
    const asked = await queryAt(at, tape, { min_value: 1_000_000, types: 'transfer' })
    const read = () => workQueue.run(() => readPage({ ...historyReaderOf(tape), workQueue }, asked))
    const alone = await turnsDuring(read())
    expect(alone).toBeGreaterThan(20)
    // No two slices in one turn: three readings take three times as many.
    expect(await turnsDuring(Promise.all([read(), read(), read()]))).toBeGreaterThan(2.5 * alone)
  })

  it('of seals gives way as often as they have keys to look up, and has its bound in them', async () => {
    const { tape } = await openNamedEdge()
    for (let block = 0; block < 25; block += 1) {
      const facts = Array.from({ length: 250 }, (_, index) => transferAt({ block, index }))
      await tape.append([...facts, sealOf(facts, block)])
    }
    const asked = { types: 'transfer', min_value: 1_000_000 }
    // The messages alone would stand on two.
    expect(await pagesOf(tape, asked)).toHaveLength(4)
    expect(await turnsDuring(pageOf(tape, asked))).toBeGreaterThan(30)
  })

  it('ends where the tape ended when it was asked for, and not within a seal that came later', async () => {
    const { tape } = await openNamedEdge()
    const fact = transferAt({ index: 1 })
    await tape.append([fact])
    const asked = await queryAt(at, tape, { stage: 'sealed' })
    const [seal] = await tape.append([sealOf([fact])])
    expect(await readPage(historyReaderOf(tape), asked)).toEqual({ texts: [], next: null })
    expect((await pageOf(tape, { stage: 'sealed' })).texts.map(idOf)).toEqual([`${seal?.update.id}.1`, seal?.update.id])
  })

  it('ends when nobody waits for it any more', async () => {
    const { tape } = await openNamedEdge()
    await tape.append(Array.from({ length: 2_000 }, (_, index) => transferAt({ index })))
    const asked = await queryAt(at, tape, { limit: 1_000 })
    let looks = 0
    const { texts } = await readPage({ ...historyReaderOf(tape), isGone: () => ++looks > 3 }, asked)
    expect(texts.length).toBeLessThan(1_000)
  })

  it('is refused where too many are under way, and possible again when one is through', async () => {
    const workQueue = new WorkQueue()
    const ends: (() => void)[] = []
    const works = Array.from({ length: 64 }, () => workQueue.run(() => new Promise<void>((end) => ends.push(end))))
    await expect(workQueue.run(async () => {})).rejects.toMatchObject({ code: 503, reason: 'busy' })
    while (ends.length < works.length) await workQueue.nextSlice()
    for (const end of ends) end()
    await Promise.all(works)
    expect(await workQueue.run(async () => 'done')).toBe('done')
  })
})
