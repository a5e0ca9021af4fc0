import fc from 'fast-check'
import { describe, expect, it } from 'vitest'
import { EvictedError } from '../../../../src/edge/history/eviction-guard.ts'
import { readAll } from '../../../../src/edge/history/export.ts'
import { WorkQueue } from '../../../../src/edge/limits/work-queue.ts'
import type { SearchableTape } from '../../../../src/tape/tape.ts'
import { navChange, token } from '../../tape/update-drafts.ts'
import { ArbitrarySelection, batchesOf, listenRequestOf, TapeActions } from '../arbitrary-tape.ts'
import { openEdge } from '../edge-fixture.ts'
import { at, pauseAt, sealOf, transferAt } from '../fact-drafts.ts'
import {
  historyReaderOf,
  idOf,
  openNamedEdge,
  parametersOf,
  type QueryParameters,
  queryAt,
  tokenNotes,
} from './history-fixture.ts'

/** All of it, part after part; `between` happens after each of them. */
async function readAllParts(
  tape: SearchableTape,
  parameters: QueryParameters,
  between: () => Promise<unknown> = async () => {},
) {
  const texts: string[] = []
  for await (const part of readAll(historyReaderOf(tape), await queryAt(at, tape, parameters))) {
    texts.push(...part)
    await between()
  }
  return texts
}

const transfers = (count: number, from = 0) =>
  Array.from({ length: count }, (_, index) => transferAt({ index: from + index }))
const seqOf = (text: string): number => Number(idOf(text).split('.')[1])

describe('the whole of what is asked for', () => {
  it('is the stream as it was when it was asked for, in each view and order, whatever is written meanwhile', async () => {
    const Limits = fc.oneof(fc.constant(null), fc.integer({ min: 1, max: 9 }))
    await fc.assert(
      fc.asyncProperty(TapeActions, ArbitrarySelection, Limits, async (deeds, selected, limit) => {
        const house = openEdge()
        try {
          await house.tape.append([], tokenNotes)
          const turns = [...batchesOf(deeds)]
          for (const turn of turns.splice(0, Math.ceil(turns.length / 2))) await house.tape.append(turn)
          const { outlet, started, leave } = house.listen({ ...listenRequestOf(selected), since: { from: 'start' } })
          await started
          leave()
          const expected = outlet.publishedLines
          const asked = { ...parametersOf(selected), ...(limit === null ? {} : { limit }) }
          const write = async () => house.tape.append(turns.shift() ?? [])
          const forth = await readAllParts(house.tape, asked, write)
          expect(forth).toEqual(expected.slice(0, limit ?? expected.length))
          const now = await readAllParts(house.tape, parametersOf(selected))
          const back = await readAllParts(house.tape, { ...asked, order: 'desc' }, write)
          expect(back).toEqual(now.toReversed().slice(0, limit ?? now.length))
        } finally {
          await house.close()
        }
      }),
      { numRuns: 150 },
    )
  })

  it('comes in parts of a bounded size, however long it and its messages are', async () => {
    const { tape } = await openNamedEdge()
    await tape.append(transfers(1_000))
    await tape.append(Array.from({ length: 6 }, () => ({ ...token({ at }), token: { text: 'x'.repeat(100_000) } })))
    const parts: (readonly string[])[] = []
    for await (const part of readAll(historyReaderOf(tape), await queryAt(at, tape, {}))) parts.push(part)
    expect(parts.flat().map(seqOf)).toEqual(Array.from({ length: 1_006 }, (_, index) => index + 1))
    for (const part of parts) {
      expect(part.length).toBeLessThanOrEqual(100)
      expect(part.slice(0, -1).join('').length).toBeLessThan(131_072 + 100_000)
    }
  })

  it('is no more than was wanted, over several parts as well', async () => {
    const { tape } = await openNamedEdge()
    await tape.append(transfers(1_000))
    const seqs = async (parameters: QueryParameters) => (await readAllParts(tape, parameters)).map(seqOf)
    expect(await seqs({ limit: 250 })).toEqual(Array.from({ length: 250 }, (_, index) => index + 1))
    expect(await seqs({ limit: 100, order: 'desc' })).toEqual(Array.from({ length: 100 }, (_, index) => 1_000 - index))
    expect(await seqs({ limit: 1_000, after: `${tape.epoch}.950` })).toHaveLength(50)
  })

  it('goes on inside a seal that holds more than a part', async () => {
    const { tape } = await openNamedEdge()
    const facts = transfers(250)
    await tape.append([...facts, sealOf(facts)])
    const expected = [...Array.from({ length: 250 }, (_, index) => `251.${index + 1}`), '251']
    const placesOf = (texts: readonly string[]) => texts.map((text) => idOf(text).slice(tape.epoch.length + 1))
    expect(placesOf(await readAllParts(tape, { stage: 'sealed' }))).toEqual(expected)
    expect(placesOf(await readAllParts(tape, { stage: 'sealed', order: 'desc' }))).toEqual(expected.toReversed())
  })

  it('ends when nobody waits for it any more', async () => {
    const { tape } = await openNamedEdge()
    await tape.append(transfers(1_000))
    let gone = false
    const parts: (readonly string[])[] = []
    const reading = { ...historyReaderOf(tape), isGone: () => gone }
    for await (const part of readAll(reading, await queryAt(at, tape, {}))) {
      parts.push(part)
      gone = true
    }
    expect(parts.length).toBe(1)
  })

  it('holds no place among the short readings while its reader takes its time', async () => {
    const { tape } = await openNamedEdge()
    await tape.append(transfers(300))
    const workQueue = new WorkQueue()
    const slow = await Promise.all(
      Array.from({ length: 100 }, async () =>
        readAll({ ...historyReaderOf(tape), workQueue }, await queryAt(at, tape, {})),
      ),
    )
    await Promise.all(slow.map((reading) => reading.next()))
    expect(await workQueue.run(async () => 'in')).toBe('in')
    await Promise.all(slow.map((reading) => reading.return(undefined)))
  })
})

describe('a whole that eviction overtakes', () => {
  /** A full tape of transfers, and what is read of it while `meanwhile` happens after the first part. */
  async function overtaken(
    parameters: QueryParameters,
    meanwhile: (tape: SearchableTape) => Promise<unknown>,
    before = 0,
  ) {
    const { tape } = await openNamedEdge({ bound: 1_000 })
    await tape.append(transfers(1_000 + before))
    let parts = 0
    const texts: string[] = []
    const reading = (async () => {
      for await (const part of readAll(historyReaderOf(tape), await queryAt(at, tape, parameters))) {
        texts.push(...part)
        parts += 1
        if (parts === 1) await meanwhile(tape)
      }
    })()
    const failure = await reading.then(
      () => null,
      (given: unknown) => given,
    )
    return { tape, failure, places: texts.map(seqOf) }
  }
  const evict = (count: number) => (tape: SearchableTape) => tape.append(transfers(count, 5_000))

  it('fails and never skips what was kept when it began', async () => {
    const { failure, places } = await overtaken({}, evict(101))
    expect(failure).toBeInstanceOf(EvictedError)
    expect(places).toEqual(Array.from({ length: 100 }, (_, index) => index + 1))
  })

  it('goes to its end where only what it had given is gone', async () => {
    const { failure, places } = await overtaken({}, evict(100))
    expect(failure).toBeNull()
    expect(places).toEqual(Array.from({ length: 1_000 }, (_, index) => index + 1))
  })

  it('was none where all that is gone had gone before it began', async () => {
    const { tape, failure, places } = await overtaken({}, async () => {}, 50)
    expect([tape.oldest(), failure, places.length, places[0]]).toEqual([50, null, 1_000, 51])
  })

  it('ends where the tape begins by then if it goes there newest first', async () => {
    const { tape, failure, places } = await overtaken({ order: 'desc' }, evict(300))
    expect(failure).toBeNull()
    expect(places).toEqual(Array.from({ length: 1_000 - tape.oldest() }, (_, index) => 1_000 - index))
  })

  it('gives nothing newest first that was spared where others are gone by then', async () => {
    const { tape } = await openNamedEdge({ bound: 1_000 })
    for (let index = 0; index < 500; index += 1) {
      await tape.append([transferAt({ index }), ...(index % 5 === 0 ? [navChange({ at })] : [])])
    }
    const texts: string[] = []
    let parts = 0
    for await (const part of readAll(historyReaderOf(tape), await queryAt(at, tape, { order: 'desc' }))) {
      texts.push(...part)
      parts += 1
      if (parts === 3) for (let more = 0; more < 10; more += 1) await tape.append(transfers(70, 1_000 + more * 70))
    }
    const places = texts.map(seqOf)
    expect(places).toEqual(Array.from({ length: places.length }, (_, index) => 600 - index))
    expect(places.at(-1)).toBeLessThanOrEqual(tape.oldest() + 1)
    expect(places.length).toBeLessThan(600)
  })

  it('fails in the sealed view where a telling is gone that it had passed and not given yet', async () => {
    const { tape } = await openNamedEdge({ bound: 600 })
    const told = transferAt({ index: 4 })
    await tape.append([told])
    await tape.append(Array.from({ length: 299 }, () => navChange({ at })))
    await tape.append([sealOf([told])])
    await tape.append(Array.from({ length: 299 }, () => navChange({ at })))
    const whole = await readAllParts(tape, { stage: 'sealed' })
    expect(whole.filter((text) => text.startsWith('{"type":"transfer"'))).toHaveLength(1)
    let parts = 0
    const reading = readAllParts(tape, { stage: 'sealed' }, async () => {
      parts += 1
      // The reader has passed the telling, and its seal is still ahead.
      if (parts === 2) await tape.append([navChange({ at })])
    })
    await expect(reading).rejects.toBeInstanceOf(EvictedError)
  })

  it('fails newest first too where a place was named that it would have come to', async () => {
    const { tape } = await openNamedEdge({ bound: 1_000 })
    await tape.append(transfers(1_000))
    const reading = readAll(
      historyReaderOf(tape),
      await queryAt(at, tape, { order: 'desc', after: `${tape.epoch}.200` }),
    )
    await reading.next()
    await tape.append(transfers(201, 5_000))
    await expect(async () => {
      for await (const _ of reading);
    }).rejects.toBeInstanceOf(EvictedError)
  })
})

describe('what eviction spared', () => {
  /** A full tape, before whose whole part stand so many that eviction spares. */
  async function spared(count: number, kept = 1_000) {
    const { tape, clock } = await openNamedEdge({ bound: count + kept })
    await tape.append(Array.from({ length: count }, (_, nth) => navChange({ at: at + nth })))
    await tape.append(transfers(kept + 500))
    expect(tape.oldest()).toBe(count + 500)
    return { tape, clock, whole: (await tape.readAfter(0, 10_000)).map(({ text }) => text) }
  }

  it('is given before the rest, which is as it stood though some of it is evicted meanwhile', async () => {
    const { tape, whole } = await spared(400)
    let written = 0
    const texts = await readAllParts(tape, {}, async () => {
      if (written < 40) await tape.append(transfers(10, 5_000 + written))
      written += 10
    })
    expect(tape.oldest()).toBe(940)
    expect(texts).toEqual(whole)
    expect(await readAllParts(tape, { limit: 450 })).toEqual(
      (await tape.readAfter(0, 10_000)).slice(0, 450).map(({ text }) => text),
    )
  })

  it('is followed by no gap that is not seen: where more is gone than was held at hand it fails', async () => {
    const { tape, whole } = await spared(400, 2_000)
    const texts: string[] = []
    const reading = (async () => {
      for await (const part of readAll(historyReaderOf(tape), await queryAt(at, tape, {}))) {
        texts.push(...part)
        if (texts.length === 200) {
          for (let turn = 0; turn < 3; turn += 1) await tape.append(transfers(400, 5_000 + turn * 400))
        }
      }
    })()
    await expect(reading).rejects.toBeInstanceOf(EvictedError)
    expect(texts).toEqual(whole.slice(0, texts.length))
  })

  it('is given as it is where what is gone meanwhile stands beyond what was asked for', async () => {
    const { tape, whole } = await spared(400)
    const texts = await readAllParts(tape, { before: `${tape.epoch}.400` }, () => tape.append(transfers(50, 5_000)))
    expect(texts).toEqual(whole.slice(0, 399))
  })

  it('is missed where it grows too old while it is read', async () => {
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
