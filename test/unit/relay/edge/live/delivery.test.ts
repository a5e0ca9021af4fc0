import { performance } from 'node:perf_hooks'
import { describe, expect, it, vi } from 'vitest'
import type { Hex } from '../../../../../src/lib/hex.ts'
import { nextTurn } from '../../../../../src/lib/turns.ts'
import type { Draft } from '../../../../../src/protocol/updates.ts'
import { apple, otherLog } from '../../tape/update-drafts.ts'
import { type ListenRequest, openTestEdge, RecordingOutlet, sinceAfter } from '../edge-fixture.ts'
import { at, retractOf, sealOf, transferAt } from '../fact-drafts.ts'

const facts = Array.from({ length: 510 }, (_, index) => transferAt({ index }))
/** Its view of a seal comes in three parts. */
const sealed = { stage: 'sealed' } as const
/** Listeners join once in so many turns. */
const TURNS_PER_JOIN = 400

type TestListener = ReturnType<ReturnType<typeof openTestEdge>['listen']>

const idOf = (line: string | undefined): string => /"id":"([^"]+)"/.exec(line ?? '')?.[1] ?? ''
/** The last id that it was sent, in the last write. */
const lastIdOf = ({ outlet }: TestListener): string => idOf(outlet.writes.at(-1)?.trimEnd().split('\n').at(-1))
const isPart = (id: string): boolean => id.split('.').length === 3
const idsOf = ({ outlet }: TestListener): readonly string[] => outlet.publishedLines.map(idOf)

/** An edge that works for one step in each turn of the event loop. */
function openSlowEdge() {
  let now = 0
  const clock = vi.spyOn(performance, 'now').mockImplementation(() => (now += 1_000))
  const edge = openTestEdge()
  const { tape, hub } = edge
  const append = async (batch: readonly Draft[], onTurn: (turn: number) => void) => {
    const appended = tape.append(batch)
    for (let turn = 0; turn === 0 || hub.deliveredSeq < tape.end(); turn += 1) {
      await nextTurn()
      onTurn(turn)
    }
    await appended
  }
  const replay = async (request: ListenRequest) => {
    const listener = edge.listen({ ...request, since: { from: 'start' } })
    await listener.started
    return idsOf(listener)
  }
  return { ...edge, append, replay, endSlowness: () => clock.mockRestore() }
}

describe('a block of many logs', () => {
  it.each([
    ['the default view', {}, 0],
    ['the sealed view', sealed, 2],
  ] as const)(
    'is delivered over many turns, and a listener of %s that joins meanwhile gets everything once',
    async (_, options, parts) => {
      const { listen, append, replay, hub, endSlowness } = openSlowEdge()
      const start = hub.position(hub.deliveredSeq)
      const steady = listen({ options })
      await steady.started
      const joined: { readonly since: string; readonly listener: TestListener }[] = []
      const join = (turn: number) => {
        const last = lastIdOf(steady)
        const isNewPart = isPart(last) && joined.every(({ since }) => since !== last)
        if (turn % TURNS_PER_JOIN !== 0 && !isNewPart) return
        for (const since of [start, last]) {
          const address = String(joined.length)
          joined.push({ since, listener: listen({ options, since: sinceAfter(since), address }) })
        }
      }
      for (const batch of [facts, [sealOf(facts)], facts.map((fact) => retractOf(fact, 'reorg'))]) await append(batch, join)
      endSlowness()
      await Promise.all(joined.map(({ listener }) => listener.started))
      const all = await replay({ options })
      expect(all).toHaveLength(2 * facts.length + 1)
      expect(idsOf(steady)).toEqual(all)
      for (const { since, listener } of joined) expect(idsOf(listener)).toEqual(all.slice(all.indexOf(since) + 1))
      expect(joined.filter(({ since }) => isPart(since))).toHaveLength(parts)
    },
  )

  it('is resumed within its seal by a listener that leaves there', async () => {
    const { listen, append, replay, hub, endSlowness } = openSlowEdge()
    const steady = listen({ options: sealed })
    const leaving = listen({ options: sealed })
    await Promise.all([steady.started, leaving.started])
    await append(facts, () => {})
    let bye = ''
    await append([sealOf(facts)], () => {
      if (bye !== '' || !isPart(lastIdOf(leaving))) return
      bye = hub.positionOf(leaving.listener) ?? ''
      leaving.leave()
    })
    endSlowness()
    expect(bye).toBe(idsOf(leaving).at(-1))
    expect(bye).toMatch(/\.\d+\.250$/)
    const resumed = listen({ options: sealed, since: sinceAfter(bye) })
    await resumed.started
    const all = await replay({ options: sealed })
    expect([...idsOf(leaving), ...idsOf(resumed)]).toEqual(all)
    expect(idsOf(steady)).toEqual(all)
  })
})

describe('a seal of so many logs that its message is long', () => {
  const many = Array.from({ length: 1_000 }, (_, index) => transferAt({ index }))

  it('looks up no key if nobody needs that', async () => {
    const { tape, addLive } = openTestEdge()
    addLive(new RecordingOutlet(0))
    await tape.append(many)
    const find = vi.spyOn(tape, 'find')
    await tape.append([sealOf(many)])
    expect(find).not.toHaveBeenCalled()
  })

  it('reaches both views whole, each in a turn of its own', async () => {
    const { listen, append } = openSlowEdge()
    const listeners = [listen(), listen({ options: sealed })]
    await Promise.all(listeners.map(({ started }) => started))
    await append(many, () => {})
    const turns: number[][] = []
    await append([sealOf(many)], () => turns.push(listeners.map(({ outlet }) => outlet.writes.length)))
    const growth = turns.map((counts, turn) => counts.map((count, nth) => count - (turns[turn - 1]?.[nth] ?? count)))
    expect(growth.filter((added) => added.every((count) => count > 0))).toEqual([])
    const ends = listeners.map(({ outlet }) => outlet.publishedLines.at(-1))
    expect(ends[0]).toContain('"type":"seal"')
    expect(ends[1]).toBe(ends[0])
  })
})

/** Counts its writes and bytes. All listeners of an edge may share it, since it never has a backlog. */
class CountingOutlet extends RecordingOutlet {
  writeCount = 0
  byteCount = 0

  override write(bytes: Buffer): void {
    this.writeCount += 1
    this.byteCount += bytes.length
  }
}

/** An edge with live listeners of these tokens in turn (null: all), and what each of them gets of a burst on average. */
function openBusyEdge(listeners: number, tokensInTurn: readonly (readonly Hex[] | null)[]) {
  const { tape, addLive } = openTestEdge({ clients: listeners })
  const outlet = new CountingOutlet(0)
  for (let index = 0; index < listeners; index += 1) {
    const tokens = tokensInTurn[index % tokensInTurn.length]
    addLive(outlet, { options: { types: ['log'] }, ...(tokens && { tokens }) })
  }
  return async (burst: readonly Draft[]) => {
    outlet.writeCount = 0
    outlet.byteCount = 0
    await tape.append(burst)
    return { writes: outlet.writeCount / listeners, bytes: outlet.byteCount / listeners }
  }
}

/** The length of a log with the shortest key and without data, as a line with an id of six digits. */
const SHORTEST_LINE = 388

const logOf = (chars: number, address: Hex): Draft => ({
  ...otherLog({ at, address }),
  key: '1',
  topics: [],
  data: `0x${'0'.repeat(chars - SHORTEST_LINE)}`,
})

describe('a burst', () => {
  it.each([
    [100, 2_000, { 1: 1, 20: 1, 200: 2, 2000: 13 }],
    [10_000, 2_000, { 1: 1, 20: 1, 200: 5, 2000: 44 }],
  ])('reaches each of %i listeners in as few writes as the loop allows, with messages of %i bytes', async (...row) => {
    const [listeners, chars, writes] = row
    const send = openBusyEdge(listeners, [null])
    for (const [messages, expected] of Object.entries(writes)) {
      const received = await send(Array.from({ length: Number(messages) }, () => logOf(chars, apple)))
      expect({ messages, writes: received.writes }).toEqual({ messages, writes: expected })
      expect(received.bytes / Number(messages)).toBeCloseTo(chars, -2)
    }
  })

  it('of many tokens is one write to listeners that selected few of them', async () => {
    const tokens = Array.from({ length: 50 }, (_, index): Hex => `0x${String(index).padStart(40, '0')}`)
    const selections = tokens.map((token) => [token])
    const send = openBusyEdge(10_000, selections)
    const received = await send(Array.from({ length: 200 }, (_, index) => logOf(1_000, tokens[index % 50] ?? apple)))
    expect(received.writes).toBe(1)
  })
})
