import { describe, expect, it } from 'vitest'
import { Refusal } from '../../../../../src/protocol/refusal.ts'
import { pauseAt, sealOf, transferAt } from '../fact-drafts.ts'
import { idOf, openNamedEdge, type QueryParameters, queryAt, readPageOf } from './history-fixture.ts'

/** The time of the first update below; each next one is a second later. */
const START_MS = Date.parse('2026-11-20T14:00:00.000Z')
const timeOf = (nth: number) => new Date(START_MS + nth * 1_000).toISOString()

/** A tape of six updates, one per second; the last one seals three. Queries come half a second later. */
async function openTape() {
  const { tape, clock } = await openNamedEdge()
  const facts = [1, 2, 3].map((index) => ({ ...transferAt({ index }), time: timeOf(index) }))
  const rest = [4, 5].map((index) => ({ ...transferAt({ index, block: 8 }), time: timeOf(index) }))
  clock.now = START_MS
  for (const draft of [...facts, ...rest]) await tape.append([draft])
  await tape.append([{ ...sealOf(facts), time: timeOf(6) }])
  /** The positions on the page, oldest first. */
  const positionsOf = async (parameters: QueryParameters) => {
    const query = await queryAt(START_MS + 6_500, tape, parameters)
    const { texts, next } = await readPageOf(tape, query)
    expect(next).toBeNull()
    const positions = texts.map((text) => idOf(text).slice(tape.epoch.length + 1))
    return query.order === 'asc' ? positions : positions.toReversed()
  }
  return { tape, positionsOf }
}

describe('a range by time', () => {
  const sealed = ['6.1', '6.2', '6.3', '6']
  it.each<[string, QueryParameters, readonly string[]]>([
    ['everything', {}, ['1', '2', '3', '4', '5', '6']],
    ['since now', { since: 'now' }, []],
    ['since a time, inclusive', { since: timeOf(4) }, ['4', '5', '6']],
    ['until a time, exclusive', { until: timeOf(4) }, ['1', '2', '3']],
    ['empty between equal times', { since: timeOf(2), until: timeOf(2) }, []],
    ['empty until a time before the tape', { until: timeOf(-60) }, []],
    ['the last two and a half seconds', { since: '2500ms' }, ['4', '5', '6']],
    ['between two durations', { since: '5500ms', until: '2500ms' }, ['1', '2', '3']],
    ['until a seal was written, in the sealed view', { stage: 'sealed', until: timeOf(6) }, []],
    ['since a seal, with older publications, in the sealed view', { stage: 'sealed', since: timeOf(6) }, sealed],
    ['until after a seal, in the sealed view', { stage: 'sealed', since: '5s', until: '100ms' }, sealed],
  ])('is %s, in either order', async (_, parameters, positions) => {
    const { positionsOf } = await openTape()
    expect(await positionsOf(parameters)).toEqual(positions)
    expect(await positionsOf({ ...parameters, order: 'desc' })).toEqual(positions)
  })

  it('can be bounded by positions, both exclusive, in both views', async () => {
    const { tape, positionsOf } = await openTape()
    const [from, to] = [`${tape.epoch}.2`, `${tape.epoch}.5`]
    expect(await positionsOf({ since: from, until: to })).toEqual(['3', '4'])
    const within = { stage: 'sealed', since: `${tape.epoch}.6.1`, until: `${tape.epoch}.6.3` }
    expect(await positionsOf(within)).toEqual(['6.2'])
    expect(await positionsOf({ ...within, stage: 'preconfirmed' })).toEqual([])
  })

  it.each<[string, string, readonly string[]]>([
    ['4', 'preconfirmed', ['1', '2', '3', '4']],
    ['6.2', 'preconfirmed', ['1', '2', '3', '4', '5']],
    ['6.2', 'sealed', ['6.1', '6.2']],
    ['6', 'sealed', ['6.1', '6.2', '6.3', '6']],
    ['99', 'sealed', ['6.1', '6.2', '6.3', '6']],
  ])('ends with a position that `through` names: %s in the view %s', async (through, stage, positions) => {
    const { tape, positionsOf } = await openTape()
    expect(await positionsOf({ stage, through: `${tape.epoch}.${through}`, until: timeOf(1) })).toEqual(positions)
    const both = positionsOf({ through: `${tape.epoch}.${through}`, before: `${tape.epoch}.5` })
    await expect(both).rejects.toMatchObject({ code: 400, details: { parameter: 'through' } })
  })

  it('ends at the current end of the tape, for an end far ahead too', async () => {
    const { tape } = await openTape()
    const queries: readonly QueryParameters[] = [{ until: timeOf(60) }, { before: `${tape.epoch}.99` }, { until: 'now' }, {}]
    for (const parameters of queries) {
      const { before } = await queryAt(START_MS, tape, parameters)
      expect(before).toEqual({ seq: 7, n: null })
    }
  })

  it('yields to a cursor, so that a client adds the cursor to the same query', async () => {
    const { tape, positionsOf } = await openTape()
    const at = (seq: number) => `${tape.epoch}.${seq}`
    expect(await positionsOf({ since: timeOf(2), after: at(4) })).toEqual(['5', '6'])
    expect(await positionsOf({ until: timeOf(5), before: at(3), order: 'desc' })).toEqual(['1', '2'])
    // The cursor wins even when it is earlier.
    expect(await positionsOf({ since: timeOf(5), after: at(1) })).toEqual(['2', '3', '4', '5', '6'])
    expect(await positionsOf({ since: 'zzzzz9.7', after: at(5) })).toEqual(['6'])
  })

  it('before the oldest position holds updates that eviction spared', async () => {
    const { tape, clock } = await openNamedEdge({ bound: 3 })
    clock.now = START_MS
    const drafts = [1, 2, 3, 4, 5].map((index) => ({ ...transferAt({ index }), time: timeOf(index) }))
    await tape.append([{ ...pauseAt({ index: 0 }), time: timeOf(0) }])
    for (const draft of drafts) await tape.append([draft])
    expect(tape.oldest()).toBe(4)
    const idsSince = async (since: string) => {
      const { texts } = await readPageOf(tape, await queryAt(START_MS, tape, { since }))
      return texts.map(idOf)
    }
    const [spared, ...kept] = [1, 5, 6].map((seq) => `${tape.epoch}.${seq}`)
    expect(await idsSince(timeOf(-1))).toEqual([spared, ...kept])
    expect(await idsSince(timeOf(1))).toEqual(kept)
  })
})

describe('a range that cannot be read', () => {
  it.each<[QueryParameters, number, string]>([
    [{ since: 'yesterday' }, 400, 'since'],
    [{ since: '2026-02-30T00:00:00Z' }, 400, 'since'],
    [{ until: '2026-11-20' }, 400, 'until'],
    [{ since: 'yesterday', after: 'k.1' }, 400, 'since'],
    [{ since: 'zzzzz9.7' }, 410, 'since'],
    [{ until: 'zzzzz9.7.2' }, 410, 'until'],
    [{ limit: 0 }, 400, 'limit'],
    [{ limit: 1_001 }, 400, 'limit'],
    [{ limit: '1e2' }, 400, 'limit'],
    [{ order: 'newest' }, 400, 'order'],
    [{ format: 'csv' }, 400, 'format'],
    [{ after: 'yesterday' }, 400, 'after'],
    [{ before: 'k.-1' }, 400, 'before'],
    [{ after: 'zzzzz9.7' }, 410, 'after'],
    [{ before: 'zzzzz9.999' }, 410, 'before'],
    [{ symbols: ',' }, 400, 'symbols'],
    [{ types: 'transfers' }, 400, 'types'],
  ])('is refused with its parameter: %o', async (parameters, code, parameter) => {
    const { tape } = await openNamedEdge()
    const failure = await queryAt(START_MS, tape, parameters).catch((error: unknown) => error)
    if (!(failure instanceof Refusal)) throw new Error('it was not refused')
    expect(failure).toMatchObject({ code, details: { parameter } })
    expect(failure.message).toMatch(new RegExp(`^${parameter}: .*\\.$`))
  })
})
