import fc from 'fast-check'
import { describe, expect, it } from 'vitest'
import { EvictedError } from '../../../../../src/relay/edge/history/eviction-guard.ts'
import { readAll } from '../../../../../src/relay/edge/history/history-export.ts'
import { LongWorkQueue } from '../../../../../src/relay/edge/limits/long-work-queue.ts'
import type { TestTape } from '../../../../support/local-tape.ts'
import { navChange, token } from '../../tape/update-drafts.ts'
import { ArbitrarySelection, batchesOf, listenRequestOf, TapeActions } from '../arbitrary-tape.ts'
import { withEdge } from '../edge-fixture.ts'
import { at, pauseAt, sealOf, transferAt } from '../fact-drafts.ts'
import { historyReaderOf, idOf, openNamedEdge, parametersOf, type QueryParameters, queryAt, tokenNotes } from './history-fixture.ts'

/** The texts of a whole export; `between` runs after each chunk, with the number of chunks so far. */
async function readAllTexts(
  tape: TestTape,
  parameters: QueryParameters,
  between: (chunks: number) => unknown = () => {},
  reading: Partial<Parameters<typeof readAll>[0]> = {},
) {
  const texts: string[] = []
  let chunks = 0
  for await (const frames of readAll({ ...historyReaderOf(tape), ...reading }, await queryAt(at, tape, parameters))) {
    texts.push(...frames.map(({ entry }) => entry.text))
    chunks += 1
    await between(chunks)
  }
  return texts
}

const transfers = (count: number, from = 0) => Array.from({ length: count }, (_, index) => transferAt({ index: from + index }))
/** The numbers from the first to the last. */
const numbers = (first: number, last: number) => Array.from({ length: last - first + 1 }, (_, index) => first + index)
const seqOf = (text: string): number => Number(idOf(text).split('.')[1])

describe('a whole export', () => {
  it('equals the stream at the time of the request, in each view and order, while the tape is written', async () => {
    const Limits = fc.oneof(fc.constant(null), fc.integer({ min: 1, max: 9 }))
    await fc.assert(
      fc.asyncProperty(TapeActions, ArbitrarySelection, Limits, (actions, selected, limit) =>
        withEdge(async (edge) => {
          await edge.tape.append([], tokenNotes)
          const batches = [...batchesOf(actions)]
          for (const batch of batches.splice(0, Math.ceil(batches.length / 2))) await edge.tape.append(batch)
          const { outlet, started, leave } = edge.listen({ ...listenRequestOf(selected), since: { from: 'start' } })
          await started
          leave()
          const expected = outlet.publishedLines
          const parameters = { ...parametersOf(selected), ...(limit === null ? {} : { limit }) }
          const write = async () => edge.tape.append(batches.shift() ?? [])
          const ascending = await readAllTexts(edge.tape, parameters, write)
          expect(ascending).toEqual(expected.slice(0, limit ?? expected.length))
          const complete = await readAllTexts(edge.tape, parametersOf(selected))
          const descending = await readAllTexts(edge.tape, { ...parameters, order: 'desc' }, write)
          expect(descending).toEqual(complete.toReversed().slice(0, limit ?? complete.length))
        }),
      ),
      { numRuns: 150 },
    )
  })

  it('has chunks of a bounded size, with long updates too', async () => {
    const { tape } = await openNamedEdge()
    await tape.append(transfers(1_000))
    await tape.append(Array.from({ length: 6 }, () => ({ ...token({ at }), token: { text: 'x'.repeat(100_000) } })))
    const chunks: (readonly string[])[] = []
    for await (const frames of readAll(historyReaderOf(tape), await queryAt(at, tape, {})))
      chunks.push(frames.map(({ entry }) => entry.text))
    expect(chunks.flat().map(seqOf)).toEqual(numbers(1, 1_006))
    for (const chunk of chunks) {
      expect(chunk.length).toBeLessThanOrEqual(100)
      expect(chunk.slice(0, -1).join('').length).toBeLessThan(131_072 + 100_000)
    }
  })

  it('stops at its limit, over several chunks too', async () => {
    const { tape } = await openNamedEdge()
    await tape.append(transfers(1_000))
    const seqs = async (parameters: QueryParameters) => (await readAllTexts(tape, parameters)).map(seqOf)
    expect(await seqs({ limit: 250 })).toEqual(numbers(1, 250))
    expect(await seqs({ limit: 100, order: 'desc' })).toEqual(numbers(901, 1_000).toReversed())
    expect(await seqs({ limit: 1_000, after: `${tape.epoch}.950` })).toHaveLength(50)
  })

  it('continues inside a seal that holds more than a chunk', async () => {
    const { tape } = await openNamedEdge()
    const facts = transfers(250)
    await tape.append([...facts, sealOf(facts)])
    const expected = [...numbers(1, 250).map((n) => `251.${n}`), '251']
    const positionsOf = (texts: readonly string[]) => texts.map((text) => idOf(text).slice(tape.epoch.length + 1))
    expect(positionsOf(await readAllTexts(tape, { stage: 'sealed' }))).toEqual(expected)
    expect(positionsOf(await readAllTexts(tape, { stage: 'sealed', order: 'desc' }))).toEqual(expected.toReversed())
  })

  it('ends when its client is gone', async () => {
    const { tape } = await openNamedEdge()
    await tape.append(transfers(1_000))
    let chunks = 0
    await readAllTexts(tape, {}, () => (chunks += 1), { isGone: () => chunks > 0 })
    expect(chunks).toBe(1)
  })

  it('takes no place in the work queue while its reader pauses', async () => {
    const { tape } = await openNamedEdge()
    await tape.append(transfers(300))
    const workQueue = new LongWorkQueue()
    const query = await queryAt(at, tape, {})
    const slow = Array.from({ length: 100 }, () => readAll(historyReaderOf(tape, workQueue), query))
    await Promise.all(slow.map((reading) => reading.next()))
    expect(await workQueue.run('here', async () => 'done')).toBe('done')
    await Promise.all(slow.map((reading) => reading.return(undefined)))
  })
})

describe('an export that eviction overtakes', () => {
  it.each<[what: string, parameters: QueryParameters, evicted: number, sent: readonly number[], isWhole: boolean]>([
    ['fails rather than skip updates that were kept at its start', {}, 101, numbers(1, 100), false],
    ['completes when only updates that it had sent are gone', {}, 100, numbers(1, 1_000), true],
    ['ends at the start of the tape when it reads newest first', { order: 'desc' }, 300, numbers(301, 1_000).toReversed(), true],
    [
      'fails newest first too when it has a lower bound that was kept',
      { order: 'desc', after: 'E.200' },
      201,
      numbers(901, 1_000).toReversed(),
      false,
    ],
  ])('%s', async (_, parameters, evicted, sent, isWhole) => {
    const { tape } = await openNamedEdge({ bound: 1_000 })
    await tape.append(transfers(1_000))
    const seqs: number[] = []
    const after = String(parameters.after ?? '').replace('E', tape.epoch)
    const query = await queryAt(at, tape, { ...parameters, ...(after && { after }) })
    const reading = (async () => {
      for await (const frames of readAll(historyReaderOf(tape), query)) {
        if (seqs.length === 0) await tape.append(transfers(evicted, 5_000))
        seqs.push(...frames.map(({ seq }) => seq))
      }
    })()
    await (isWhole ? reading : expect(reading).rejects.toBeInstanceOf(EvictedError))
    expect(seqs).toEqual(sent)
  })

  it('completes when everything evicted was gone before its start', async () => {
    const { tape } = await openNamedEdge({ bound: 1_000 })
    await tape.append(transfers(1_050))
    expect(tape.oldest()).toBe(50)
    expect((await readAllTexts(tape, {})).map(seqOf)).toEqual(numbers(51, 1_050))
  })

  it('sends no spared updates below the oldest position when it reads newest first', async () => {
    const { tape } = await openNamedEdge({ bound: 1_000 })
    for (let index = 0; index < 500; index += 1) {
      await tape.append([transferAt({ index }), ...(index % 5 === 0 ? [navChange({ at })] : [])])
    }
    const texts = await readAllTexts(tape, { order: 'desc' }, async (chunks) => {
      if (chunks === 3) for (let more = 0; more < 10; more += 1) await tape.append(transfers(70, 1_000 + more * 70))
    })
    const seqs = texts.map(seqOf)
    expect(seqs).toEqual(numbers(601 - seqs.length, 600).toReversed())
    expect(seqs.at(-1)).toBeLessThanOrEqual(tape.oldest() + 1)
    expect(seqs.length).toBeLessThan(600)
  })

  it('fails in the sealed view when a publication is gone that it had read and not sent yet', async () => {
    const { tape } = await openNamedEdge({ bound: 600 })
    const published = transferAt({ index: 4 })
    const navChanges = (count: number) => Array.from({ length: count }, () => navChange({ at }))
    for (const batch of [[published], navChanges(299), [sealOf([published])], navChanges(299)]) await tape.append(batch)
    const whole = await readAllTexts(tape, { stage: 'sealed' })
    expect(whole.filter((text) => text.startsWith('{"type":"transfer"'))).toHaveLength(1)
    // The reader has passed the publication, and its seal is still ahead. Eviction begins one percent over the bound.
    const reading = readAllTexts(tape, { stage: 'sealed' }, (chunks) => chunks === 2 && tape.append(navChanges(7)))
    await expect(reading).rejects.toBeInstanceOf(EvictedError)
  })
})

describe('updates that eviction spared', () => {
  /** A full tape with `count` spared updates before the oldest position. */
  async function spared(count: number, kept = 1_000) {
    const { tape, clock } = await openNamedEdge({ bound: count + kept })
    await tape.append(Array.from({ length: count }, (_, nth) => navChange({ at: at + nth })))
    await tape.append(transfers(kept + 500))
    expect(tape.oldest()).toBe(count + 500)
    return { tape, clock, whole: (await tape.readAfter(0, 10_000)).map(({ text }) => text) }
  }

  it('are sent before the rest, which stays complete though some of it is evicted meanwhile', async () => {
    const { tape, whole } = await spared(400)
    const texts = await readAllTexts(tape, {}, (chunks) => chunks <= 4 && tape.append(transfers(10, 4_990 + chunks * 10)))
    expect(tape.oldest()).toBe(940)
    expect(texts).toEqual(whole)
    const left = (await tape.readAfter(0, 10_000)).map(({ text }) => text)
    expect(await readAllTexts(tape, { limit: 450 })).toEqual(left.slice(0, 450))
  })

  it('are alone when eviction removes only updates beyond the requested range', async () => {
    const { tape, whole } = await spared(400)
    const texts = await readAllTexts(tape, { before: `${tape.epoch}.400` }, () => tape.append(transfers(50, 5_000)))
    expect(texts).toEqual(whole.slice(0, 399))
  })

  it('are never followed by a silent gap: the export fails when more is evicted than it holds', async () => {
    const { tape, whole } = await spared(400, 2_000)
    const received: string[] = []
    const reading = (async () => {
      for await (const frames of readAll(historyReaderOf(tape), await queryAt(at, tape, {}))) {
        received.push(...frames.map(({ entry }) => entry.text))
        if (received.length !== 200) continue
        for (const turn of [0, 1, 2]) await tape.append(transfers(400, 5_000 + turn * 400))
      }
    })()
    await expect(reading).rejects.toBeInstanceOf(EvictedError)
    expect(received).toEqual(whole.slice(0, received.length))
  })

  it('make the export fail when they grow too old during it', async () => {
    const { tape, clock } = await spared(400)
    const reading = readAllTexts(tape, {}, (chunks) => {
      if (chunks > 1) return
      clock.now += 60_200
      return tape.append([pauseAt({ index: 9 })])
    })
    await expect(reading).rejects.toBeInstanceOf(EvictedError)
  })
})
