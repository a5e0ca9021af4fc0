import { describe, expect, it } from 'vitest'
import { readPage } from '../../../../src/edge/history/history-page.ts'
import { Refusal } from '../../../../src/protocol/refusal.ts'
import { pauseAt, sealOf, transferAt } from '../fact-drafts.ts'
import { askedAt, idOf, namedHouse, type Parameters, readingOf } from './history-fixture.ts'

/** When the first of the messages below is written; each is written a second after the one before. */
const BEGAN = Date.parse('2026-11-20T14:00:00.000Z')
const timeOf = (nth: number) => new Date(BEGAN + nth * 1_000).toISOString()

/** A tape of six messages, one a second, the last of which seals three; it is asked half a second after that. */
async function openTape() {
  const { tape, clock } = await namedHouse()
  const facts = [1, 2, 3].map((index) => ({ ...transferAt({ index }), time: timeOf(index) }))
  const rest = [4, 5].map((index) => ({ ...transferAt({ index, block: 8 }), time: timeOf(index) }))
  clock.now = BEGAN
  for (const draft of [...facts, ...rest]) await tape.append([draft])
  await tape.append([{ ...sealOf(facts), time: timeOf(6) }])
  /** The places of what is given, oldest first. */
  const placesOf = async (parameters: Parameters) => {
    const asked = await askedAt(BEGAN + 6_500, tape, parameters)
    const { texts, next } = await readPage(readingOf(tape), asked)
    expect(next).toBeNull()
    const places = texts.map((text) => idOf(text).slice(tape.epoch.length + 1))
    return asked.order === 'asc' ? places : places.toReversed()
  }
  return { tape, placesOf }
}

describe('a stretch by time', () => {
  it.each<[string, Parameters, readonly string[]]>([
    ['everything', {}, ['1', '2', '3', '4', '5', '6']],
    ['from the start', { since: 'start' }, ['1', '2', '3', '4', '5', '6']],
    ['until now', { until: 'now' }, ['1', '2', '3', '4', '5', '6']],
    ['from now on', { since: 'now' }, []],
    ['until the start', { until: 'start' }, []],
    ['from a time on, and what was written at it', { since: timeOf(4) }, ['4', '5', '6']],
    ['from between two', { since: timeOf(3.5) }, ['4', '5', '6']],
    ['until a time, and nothing that was written at it', { until: timeOf(4) }, ['1', '2', '3']],
    ['until between two', { until: timeOf(3.5) }, ['1', '2', '3']],
    ['between two times', { since: timeOf(2), until: timeOf(5) }, ['2', '3', '4']],
    ['between a time and the same', { since: timeOf(2), until: timeOf(2) }, []],
    ['from the future on', { since: timeOf(60) }, []],
    ['until the future', { until: timeOf(60) }, ['1', '2', '3', '4', '5', '6']],
    ['until long ago', { until: timeOf(-60) }, []],
    ['the last two and a half seconds', { since: '2500ms' }, ['4', '5', '6']],
    ['all but them', { until: '2500ms' }, ['1', '2', '3']],
    ['from a duration to another', { since: '5s', until: '2s' }, ['2', '3', '4']],
    ['further back than anything', { since: '1h' }, ['1', '2', '3', '4', '5', '6']],
  ])('is %s, from either end', async (_, parameters, places) => {
    const { placesOf } = await openTape()
    expect(await placesOf(parameters)).toEqual(places)
    expect(await placesOf({ ...parameters, order: 'desc' })).toEqual(places)
  })

  it.each<[string, Parameters, readonly string[]]>([
    ['until its seal was written', { until: timeOf(6) }, []],
    ['from its seal on, whenever it had been told', { since: timeOf(6) }, ['6.1', '6.2', '6.3', '6']],
    ['from before its seal on', { since: timeOf(4.5) }, ['6.1', '6.2', '6.3', '6']],
    ['until after its seal', { since: '5s', until: '100ms' }, ['6.1', '6.2', '6.3', '6']],
  ])('is in the sealed view %s', async (_, parameters, places) => {
    const { placesOf } = await openTape()
    const stage = { stage: 'sealed', ...parameters }
    expect(await placesOf(stage)).toEqual(places)
    expect(await placesOf({ ...stage, order: 'desc' })).toEqual(places)
  })

  it('is between positions too, neither of them included, in both views', async () => {
    const { tape, placesOf } = await openTape()
    const [from, to] = [`${tape.epoch}.2`, `${tape.epoch}.5`]
    expect(await placesOf({ since: from, until: to })).toEqual(['3', '4'])
    const within = { stage: 'sealed', since: `${tape.epoch}.6.1`, until: `${tape.epoch}.6.3` }
    expect(await placesOf(within)).toEqual(['6.2'])
    expect(await placesOf({ ...within, stage: 'preconfirmed' })).toEqual([])
  })

  it('ends where the tape ends at that moment, however far ahead its end was named', async () => {
    const { tape } = await openTape()
    const ways: readonly Parameters[] = [{ until: timeOf(60) }, { before: `${tape.epoch}.99` }, { until: 'now' }, {}]
    for (const parameters of ways) {
      const { before } = await askedAt(BEGAN, tape, parameters)
      expect(before).toEqual({ seq: 7, n: null })
    }
  })

  it('gives way to a place that is named, so that the way on is added to the same question', async () => {
    const { tape, placesOf } = await openTape()
    const at = (seq: number) => `${tape.epoch}.${seq}`
    expect(await placesOf({ since: timeOf(2), after: at(4) })).toEqual(['5', '6'])
    expect(await placesOf({ until: timeOf(5), before: at(3), order: 'desc' })).toEqual(['1', '2'])
    // A place before it is no reason to begin there.
    expect(await placesOf({ since: timeOf(5), after: at(1) })).toEqual(['2', '3', '4', '5', '6'])
    expect(await placesOf({ since: 'zzzzz9.7', after: at(5) })).toEqual(['6'])
  })

  it('further back than what is kept as a whole holds what eviction spared', async () => {
    const { tape, clock } = await namedHouse({ bound: 3 })
    clock.now = BEGAN
    const drafts = [1, 2, 3, 4, 5].map((index) => ({ ...transferAt({ index }), time: timeOf(index) }))
    await tape.append([{ ...pauseAt({ index: 0 }), time: timeOf(0) }])
    for (const draft of drafts) await tape.append([draft])
    expect(tape.oldest()).toBe(4)
    const idsSince = async (since: string) => {
      const { texts } = await readPage(readingOf(tape), await askedAt(BEGAN, tape, { since }))
      return texts.map(idOf)
    }
    const [spared, ...kept] = [1, 5, 6].map((seq) => `${tape.epoch}.${seq}`)
    expect(await idsSince(timeOf(-1))).toEqual([spared, ...kept])
    expect(await idsSince(timeOf(1))).toEqual(kept)
  })
})

describe('a stretch that cannot be read', () => {
  it.each<[Parameters, number, string]>([
    [{ since: 'yesterday' }, 400, 'since'],
    [{ since: '' }, 400, 'since'],
    [{ since: '5 m' }, 400, 'since'],
    [{ since: '2026-02-30T00:00:00Z' }, 400, 'since'],
    [{ until: 'tomorrow' }, 400, 'until'],
    [{ until: '2026-11-20' }, 400, 'until'],
    [{ until: '-5m' }, 400, 'until'],
    [{ since: 'yesterday', after: 'k.1' }, 400, 'since'],
    [{ since: 'zzzzz9.7' }, 410, 'since'],
    [{ until: 'zzzzz9.7.2' }, 410, 'until'],
    [{ limit: '0' }, 400, 'limit'],
    [{ format: 'csv' }, 400, 'format'],
  ])('is refused by name: %o', async (parameters, code, parameter) => {
    const { tape } = await namedHouse()
    const failure = await askedAt(BEGAN, tape, parameters).catch((given: unknown) => given)
    if (!(failure instanceof Refusal)) throw new Error('it was answered')
    expect(failure).toMatchObject({ code, details: { parameter } })
    expect(failure.message).toMatch(new RegExp(`^${parameter}: .*\\.$`))
  })
})
