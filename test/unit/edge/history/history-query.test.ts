import { describe, expect, it } from 'vitest'
import { readPage } from '../../../../src/edge/history/history-page.ts'
import { Refusal } from '../../../../src/protocol/refusal.ts'
import { pauseAt, sealOf, transferAt } from '../fact-drafts.ts'
import { historyReaderOf, idOf, openNamedEdge, type QueryParameters, queryAt } from './history-fixture.ts'

/** When the first of the messages below is written; each is written a second after the one before. */
const START_MS = Date.parse('2026-11-20T14:00:00.000Z')
const timeOf = (nth: number) => new Date(START_MS + nth * 1_000).toISOString()

/** A tape of six messages, one a second, the last of which seals three; it is asked half a second after that. */
async function openTape() {
  const { tape, clock } = await openNamedEdge()
  const facts = [1, 2, 3].map((index) => ({ ...transferAt({ index }), time: timeOf(index) }))
  const rest = [4, 5].map((index) => ({ ...transferAt({ index, block: 8 }), time: timeOf(index) }))
  clock.now = START_MS
  for (const draft of [...facts, ...rest]) await tape.append([draft])
  await tape.append([{ ...sealOf(facts), time: timeOf(6) }])
  /** The places of what is given, oldest first. */
  const positionsOf = async (parameters: QueryParameters) => {
    const query = await queryAt(START_MS + 6_500, tape, parameters)
    const { texts, next } = await readPage(historyReaderOf(tape), query)
    expect(next).toBeNull()
    const positions = texts.map((text) => idOf(text).slice(tape.epoch.length + 1))
    return query.order === 'asc' ? positions : positions.toReversed()
  }
  return { tape, positionsOf }
}

describe('a stretch by time', () => {
  it.each<[string, QueryParameters, readonly string[]]>([
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
  ])('is %s, from either end', async (_, parameters, positions) => {
    const { positionsOf } = await openTape()
    expect(await positionsOf(parameters)).toEqual(positions)
    expect(await positionsOf({ ...parameters, order: 'desc' })).toEqual(positions)
  })

  it.each<[string, QueryParameters, readonly string[]]>([
    ['until its seal was written', { until: timeOf(6) }, []],
    ['from its seal on, whenever it had been told', { since: timeOf(6) }, ['6.1', '6.2', '6.3', '6']],
    ['from before its seal on', { since: timeOf(4.5) }, ['6.1', '6.2', '6.3', '6']],
    ['until after its seal', { since: '5s', until: '100ms' }, ['6.1', '6.2', '6.3', '6']],
  ])('is in the sealed view %s', async (_, parameters, positions) => {
    const { positionsOf } = await openTape()
    const stage = { stage: 'sealed', ...parameters }
    expect(await positionsOf(stage)).toEqual(positions)
    expect(await positionsOf({ ...stage, order: 'desc' })).toEqual(positions)
  })

  it('is between positions too, neither of them included, in both views', async () => {
    const { tape, positionsOf } = await openTape()
    const [from, to] = [`${tape.epoch}.2`, `${tape.epoch}.5`]
    expect(await positionsOf({ since: from, until: to })).toEqual(['3', '4'])
    const within = { stage: 'sealed', since: `${tape.epoch}.6.1`, until: `${tape.epoch}.6.3` }
    expect(await positionsOf(within)).toEqual(['6.2'])
    expect(await positionsOf({ ...within, stage: 'preconfirmed' })).toEqual([])
  })

  it('ends where the tape ends at that moment, however far ahead its end was named', async () => {
    const { tape } = await openTape()
    const ways: readonly QueryParameters[] = [
      { until: timeOf(60) },
      { before: `${tape.epoch}.99` },
      { until: 'now' },
      {},
    ]
    for (const parameters of ways) {
      const { before } = await queryAt(START_MS, tape, parameters)
      expect(before).toEqual({ seq: 7, n: null })
    }
  })

  it('gives way to a place that is named, so that the way on is added to the same question', async () => {
    const { tape, positionsOf } = await openTape()
    const at = (seq: number) => `${tape.epoch}.${seq}`
    expect(await positionsOf({ since: timeOf(2), after: at(4) })).toEqual(['5', '6'])
    expect(await positionsOf({ until: timeOf(5), before: at(3), order: 'desc' })).toEqual(['1', '2'])
    // A place before it is no reason to begin there.
    expect(await positionsOf({ since: timeOf(5), after: at(1) })).toEqual(['2', '3', '4', '5', '6'])
    expect(await positionsOf({ since: 'zzzzz9.7', after: at(5) })).toEqual(['6'])
  })

  it('further back than what is kept as a whole holds what eviction spared', async () => {
    const { tape, clock } = await openNamedEdge({ bound: 3 })
    clock.now = START_MS
    const drafts = [1, 2, 3, 4, 5].map((index) => ({ ...transferAt({ index }), time: timeOf(index) }))
    await tape.append([{ ...pauseAt({ index: 0 }), time: timeOf(0) }])
    for (const draft of drafts) await tape.append([draft])
    expect(tape.oldest()).toBe(4)
    const idsSince = async (since: string) => {
      const { texts } = await readPage(historyReaderOf(tape), await queryAt(START_MS, tape, { since }))
      return texts.map(idOf)
    }
    const [spared, ...kept] = [1, 5, 6].map((seq) => `${tape.epoch}.${seq}`)
    expect(await idsSince(timeOf(-1))).toEqual([spared, ...kept])
    expect(await idsSince(timeOf(1))).toEqual(kept)
  })
})

describe('a stretch that cannot be read', () => {
  it.each<[QueryParameters, number, string]>([
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
    const { tape } = await openNamedEdge()
    const failure = await queryAt(START_MS, tape, parameters).catch((given: unknown) => given)
    if (!(failure instanceof Refusal)) throw new Error('it was answered')
    expect(failure).toMatchObject({ code, details: { parameter } })
    expect(failure.message).toMatch(new RegExp(`^${parameter}: .*\\.$`))
  })
})
