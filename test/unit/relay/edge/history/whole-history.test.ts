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

async function* readTexts(...range: Parameters<typeof readAll>) {
  for await (const frames of readAll(...range)) yield frames.map(({ entry }) => entry.text)
}

/** The texts of a whole export; `between` runs after each chunk. */
async function readAllTexts(tape: TestTape, parameters: QueryParameters, between: () => Promise<unknown> = async () => {}) {
  const texts: string[] = []
  for await (const chunk of readTexts(historyReaderOf(tape), await queryAt(at, tape, parameters))) {
    texts.push(...chunk)
    await between()
  }
  return texts
}

const transfers = (count: number, from = 0) => Array.from({ length: count }, (_, index) => transferAt({ index: from + index }))
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

  it('comes in chunks of a bounded size, with long updates too', async () => {
    const { tape } = await openNamedEdge()
    await tape.append(transfers(1_000))
    await tape.append(Array.from({ length: 6 }, () => ({ ...token({ at }), token: { text: 'x'.repeat(100_000) } })))
    const chunks: (readonly string[])[] = []
    for await (const chunk of readTexts(historyReaderOf(tape), await queryAt(at, tape, {}))) chunks.push(chunk)
    expect(chunks.flat().map(seqOf)).toEqual(Array.from({ length: 1_006 }, (_, index) => index + 1))
    for (const chunk of chunks) {
      expect(chunk.length).toBeLessThanOrEqual(100)
      expect(chunk.slice(0, -1).join('').length).toBeLessThan(131_072 + 100_000)
    }
  })

  it('stops at its limit, over several chunks too', async () => {
    const { tape } = await openNamedEdge()
    await tape.append(transfers(1_000))
    const seqs = async (parameters: QueryParameters) => (await readAllTexts(tape, parameters)).map(seqOf)
    expect(await seqs({ limit: 250 })).toEqual(Array.from({ length: 250 }, (_, index) => index + 1))
    expect(await seqs({ limit: 100, order: 'desc' })).toEqual(Array.from({ length: 100 }, (_, index) => 1_000 - index))
    expect(await seqs({ limit: 1_000, after: `${tape.epoch}.950` })).toHaveLength(50)
  })

  it('continues inside a seal that holds more than a chunk', async () => {
    const { tape } = await openNamedEdge()
    const facts = transfers(250)
    await tape.append([...facts, sealOf(facts)])
    const expected = [...Array.from({ length: 250 }, (_, index) => `251.${index + 1}`), '251']
    const positionsOf = (texts: readonly string[]) => texts.map((text) => idOf(text).slice(tape.epoch.length + 1))
    expect(positionsOf(await readAllTexts(tape, { stage: 'sealed' }))).toEqual(expected)
    expect(positionsOf(await readAllTexts(tape, { stage: 'sealed', order: 'desc' }))).toEqual(expected.toReversed())
  })

  it('ends when its client is gone', async () => {
    const { tape } = await openNamedEdge()
    await tape.append(transfers(1_000))
    let gone = false
    const chunks: (readonly string[])[] = []
    const reading = { ...historyReaderOf(tape), isGone: () => gone }
    for await (const chunk of readTexts(reading, await queryAt(at, tape, {}))) {
      chunks.push(chunk)
      gone = true
    }
    expect(chunks.length).toBe(1)
  })

  it('takes no place in the work queue while its reader pauses', async () => {
    const { tape } = await openNamedEdge()
    await tape.append(transfers(300))
    const workQueue = new LongWorkQueue()
    const slow = await Promise.all(
      Array.from({ length: 100 }, async () => readAll(historyReaderOf(tape, workQueue), await queryAt(at, tape, {}))),
    )
    await Promise.all(slow.map((reading) => reading.next()))
    expect(await workQueue.run('here', async () => 'done')).toBe('done')
    await Promise.all(slow.map((reading) => reading.return(undefined)))
  })
})

describe('an export that eviction overtakes', () => {
  /** Exports a full tape of transfers; `meanwhile` runs after the first chunk. */
  async function exportDuring(parameters: QueryParameters, meanwhile: (tape: TestTape) => Promise<unknown>, before = 0) {
    const { tape } = await openNamedEdge({ bound: 1_000 })
    await tape.append(transfers(1_000 + before))
    let chunks = 0
    const texts: string[] = []
    const reading = (async () => {
      for await (const chunk of readTexts(historyReaderOf(tape), await queryAt(at, tape, parameters))) {
        texts.push(...chunk)
        chunks += 1
        if (chunks === 1) await meanwhile(tape)
      }
    })()
    const failure = await reading.then(
      () => null,
      (error: unknown) => error,
    )
    return { tape, failure, seqs: texts.map(seqOf) }
  }

  it.each<[string, QueryParameters, number, number]>([
    ['fails rather than skip updates that were kept at its start', {}, 101, 100],
    ['completes when only updates that it had sent are gone', {}, 100, 1_000],
    ['ends at the start of the tape when it reads newest first', { order: 'desc' }, 300, 700],
  ])('%s', async (_, parameters, evicted, sent) => {
    const { failure, seqs } = await exportDuring(parameters, (tape) => tape.append(transfers(evicted, 5_000)))
    expect(failure).toEqual(sent === 100 ? expect.any(EvictedError) : null)
    expect(seqs).toEqual(Array.from({ length: sent }, (_, index) => (parameters.order === 'desc' ? 1_000 - index : index + 1)))
  })

  it('completes when everything evicted was gone before its start', async () => {
    const { tape, failure, seqs } = await exportDuring({}, async () => {}, 50)
    expect([tape.oldest(), failure, seqs.length, seqs[0]]).toEqual([50, null, 1_000, 51])
  })

  it('sends no spared updates below the oldest position when it reads newest first', async () => {
    const { tape } = await openNamedEdge({ bound: 1_000 })
    for (let index = 0; index < 500; index += 1) {
      await tape.append([transferAt({ index }), ...(index % 5 === 0 ? [navChange({ at })] : [])])
    }
    const texts: string[] = []
    let chunks = 0
    for await (const chunk of readTexts(historyReaderOf(tape), await queryAt(at, tape, { order: 'desc' }))) {
      texts.push(...chunk)
      chunks += 1
      if (chunks === 3) for (let more = 0; more < 10; more += 1) await tape.append(transfers(70, 1_000 + more * 70))
    }
    const seqs = texts.map(seqOf)
    expect(seqs).toEqual(Array.from({ length: seqs.length }, (_, index) => 600 - index))
    expect(seqs.at(-1)).toBeLessThanOrEqual(tape.oldest() + 1)
    expect(seqs.length).toBeLessThan(600)
  })

  it('fails in the sealed view when a publication is gone that it had read and not sent yet', async () => {
    const { tape } = await openNamedEdge({ bound: 600 })
    const published = transferAt({ index: 4 })
    await tape.append([published])
    await tape.append(Array.from({ length: 299 }, () => navChange({ at })))
    await tape.append([sealOf([published])])
    await tape.append(Array.from({ length: 299 }, () => navChange({ at })))
    const whole = await readAllTexts(tape, { stage: 'sealed' })
    expect(whole.filter((text) => text.startsWith('{"type":"transfer"'))).toHaveLength(1)
    let chunks = 0
    const reading = readAllTexts(tape, { stage: 'sealed' }, async () => {
      chunks += 1
      // The reader has passed the publication, and its seal is still ahead. Eviction begins one percent over the bound.
      if (chunks === 2) await tape.append(Array.from({ length: 7 }, () => navChange({ at })))
    })
    await expect(reading).rejects.toBeInstanceOf(EvictedError)
  })

  it('fails newest first too when it has a lower bound that was kept', async () => {
    const { tape } = await openNamedEdge({ bound: 1_000 })
    await tape.append(transfers(1_000))
    const reading = readAll(historyReaderOf(tape), await queryAt(at, tape, { order: 'desc', after: `${tape.epoch}.200` }))
    await reading.next()
    await tape.append(transfers(201, 5_000))
    await expect(async () => {
      for await (const _ of reading);
    }).rejects.toBeInstanceOf(EvictedError)
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

  it('come before the rest, which stays complete though some of it is evicted meanwhile', async () => {
    const { tape, whole } = await spared(400)
    let written = 0
    const texts = await readAllTexts(tape, {}, async () => {
      if (written < 40) await tape.append(transfers(10, 5_000 + written))
      written += 10
    })
    expect(tape.oldest()).toBe(940)
    expect(texts).toEqual(whole)
    expect(await readAllTexts(tape, { limit: 450 })).toEqual(
      (await tape.readAfter(0, 10_000)).slice(0, 450).map(({ text }) => text),
    )
  })

  it('are never followed by a silent gap: the export fails when more is evicted than it holds', async () => {
    const { tape, whole } = await spared(400, 2_000)
    const texts: string[] = []
    const reading = (async () => {
      for await (const chunk of readTexts(historyReaderOf(tape), await queryAt(at, tape, {}))) {
        texts.push(...chunk)
        if (texts.length === 200) {
          for (let turn = 0; turn < 3; turn += 1) await tape.append(transfers(400, 5_000 + turn * 400))
        }
      }
    })()
    await expect(reading).rejects.toBeInstanceOf(EvictedError)
    expect(texts).toEqual(whole.slice(0, texts.length))
  })

  it('come alone when eviction removes only updates beyond the requested range', async () => {
    const { tape, whole } = await spared(400)
    const texts = await readAllTexts(tape, { before: `${tape.epoch}.400` }, () => tape.append(transfers(50, 5_000)))
    expect(texts).toEqual(whole.slice(0, 399))
  })

  it('make the export fail when they grow too old during it', async () => {
    const { tape, clock } = await spared(400)
    const reading = readAll(historyReaderOf(tape), await queryAt(at, tape, {}))
    await reading.next()
    clock.now += 60_200
    await tape.append([pauseAt({ index: 9 })])
    await expect(async () => {
      for await (const _ of reading);
    }).rejects.toBeInstanceOf(EvictedError)
  })
})
