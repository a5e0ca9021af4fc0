import { setImmediate as yieldToEventLoop } from 'node:timers/promises'
import { describe, expect, it, vi } from 'vitest'
import type { Message } from '../../../../../src/protocol/notices.ts'
import { defaultSelectionOptions } from '../../../../../src/protocol/parameters/selection.ts'
import { type Draft, type UpdateType, updateTypes } from '../../../../../src/protocol/updates.ts'
import { findResumePoint } from '../../../../../src/relay/edge/live/resume-point.ts'
import { WebSocketSession } from '../../../../../src/relay/edge/live/websocket-session.ts'
import { apple, notesOfTokens, otherLog } from '../../tape/update-drafts.ts'
import { openTestEdge, RecordingOutlet, sinceAfter } from '../edge-fixture.ts'
import { at, sealOf, transferAt } from '../fact-drafts.ts'

/** More turns of the promise queue than a session needs to start. */
const TICKS = 30

const holeDraft = (block: number): Draft => ({
  ...{ type: 'hole', symbol: '*', address: null, time: new Date(at).toISOString(), reason: 'test' },
  blocks: { first: block, last: block },
})
const logDraft = (nth: number): Draft => otherLog({ at, nth })

const everything = { options: { types: updateTypes }, since: { from: 'start' } } as const

const blockNumbersOf = (messages: readonly Message[]): readonly number[] =>
  messages.flatMap((message) =>
    message.type === 'hole' ? [message.blocks.first] : message.type === 'log' ? [message.block.number] : [],
  )

it.each([
  ['alone', false, 10, 500 + 2_250],
  ['beside others, with few listeners', true, 10, 250],
  ['beside others, with many', true, 4_000, 500],
])('a drain %s spreads the reconnects', (_, isOneOfMany, count, halfMs) => {
  const { hub, addLive } = openTestEdge({ isOneOfMany, clients: count })
  const outlets = Array.from({ length: count }, () => new RecordingOutlet(Number.POSITIVE_INFINITY))
  for (const outlet of outlets) addLive(outlet)
  hub.drain()
  // The random number of this edge is always a half.
  const byes = outlets.map(({ messages }) => messages.at(-1))
  expect(new Set(byes.map((bye) => (bye?.type === 'bye' ? bye.retry_ms : null)))).toEqual(new Set([halfMs]))
})

describe('a join', () => {
  it.each(Array.from({ length: TICKS }, (_, turn) => turn))(
    'neither loses nor repeats an update that is written %i turns after its start',
    async (turn) => {
      const { tape, listen } = openTestEdge()
      await tape.append([holeDraft(1), holeDraft(2)])
      const { outlet, started } = listen(everything)
      for (let passed = 0; passed < turn; passed += 1) await null
      await tape.append([holeDraft(3)])
      await started
      await tape.append([holeDraft(4)])
      expect(blockNumbersOf(outlet.messages)).toEqual([1, 2, 3, 4])
    },
  )
})

describe('a start', () => {
  it.each([
    ['a time', () => ({ from: 'time', time: 1_000_000 }) as const],
    ['a position before an update', (epoch: string) => sinceAfter(`${epoch}.3.1`)],
  ])('just before the first update of a run has a position that was given: %s', async (_, since) => {
    const { tape, listen } = openTestEdge()
    await tape.append([holeDraft(1), holeDraft(2), holeDraft(3)])
    // Updates 1 and 2 stand for what a run lost.
    vi.spyOn(tape, 'runs', 'get').mockReturnValue([{ first: 3, previous_end: 0 }])
    vi.spyOn(tape, 'seqBefore').mockReturnValue(2)
    const { outlet, started } = listen({ ...everything, since: since(tape.epoch) })
    await started
    expect(outlet.messages[0]).toMatchObject({ type: 'hello', id: `${tape.epoch}.0` })
  })
})

describe('a position whose number a run lost', () => {
  it.each([
    ['replay', ['5 to 2', '2 to 4']],
    ['skip', ['5 to 6']],
  ] as const)('gets a gap for the loss and one for what was evicted since: %s', async (onGap, gaps) => {
    const { tape } = openTestEdge()
    await tape.append([1, 2, 3, 4, 5, 6].map(holeDraft))
    vi.spyOn(tape, 'runs', 'get').mockReturnValue([{ first: 6, previous_end: 2 }])
    vi.spyOn(tape, 'oldest').mockReturnValue(4)
    const since = sinceAfter(`${tape.epoch}.5`)
    const selection = { tokens: null, options: { ...defaultSelectionOptions, types: updateTypes } }
    const context = { tape, now: 0, clockStepsMs: 0, onGap, maxReplay: 100, isGone: () => false }
    const point = await findResumePoint(since, selection, context)
    const seqOf = (position: string | null) => position?.split('.')[1]
    expect(point.gaps.map(({ from, to }) => `${seqOf(from)} to ${to.seq}`)).toEqual(gaps)
    expect(point.gaps.at(-1)?.to).toEqual(point.after)
  })
})

describe('a replay', () => {
  it('is not counted further after a disconnect', async () => {
    const { tape, listen } = openTestEdge({ replay: 500 })
    await tape.append(Array.from({ length: 2_000 }, (_, block) => logDraft(block)))
    const pages = vi.spyOn(tape, 'read')
    // In the sealed view only a read can count the matches.
    const { started, leave } = listen({ options: { types: ['log'], stage: 'sealed' }, since: { from: 'start' } })
    while (pages.mock.calls.length === 0) await yieldToEventLoop()
    leave()
    await started
    expect(pages.mock.calls.length).toBeLessThan(5)
  })

  it('is not counted update by update when the tape knows the number', async () => {
    const { tape, listen } = openTestEdge({ replay: 500 })
    await tape.append(Array.from({ length: 2_000 }, (_, block) => logDraft(block)))
    await tape.append([holeDraft(1)])
    const pages = vi.spyOn(tape, 'read')
    const none = listen({ options: { types: ['hole'] }, since: { from: 'start' } })
    await none.started
    expect(none.outlet.messages.map(({ type }) => type)).toEqual(['hello', 'subscribed', 'hole', 'live'])
    const many = listen({ options: { types: ['log'] }, since: { from: 'start' } })
    await many.started
    expect(many.outlet.messages.map(({ type }) => type)).toEqual(['hello', 'subscribed', 'gap', 'live'])
    expect(pages).not.toHaveBeenCalled()
  })

  it('continues at the oldest position after a gap when eviction overtakes it, and never goes back', async () => {
    const { tape, listen } = openTestEdge({ bound: 1_000 })
    for (let block = 1; block <= 1_000; block += 1) await tape.append([logDraft(block)])
    const { outlet, started } = listen(everything)
    // Hello and subscribed, then the first page.
    while (outlet.writes.length < 3) await null
    for (let page = 0; page < 80; page += 1) {
      await tape.append(Array.from({ length: 100 }, (_, index) => logDraft(1_001 + page * 100 + index)))
    }
    await started
    const messages = outlet.messages
    const gaps = messages.filter((message) => message.type === 'gap')
    expect(gaps.length).toBeGreaterThan(0)
    const blocks = blockNumbersOf(messages)
    expect(blocks).toEqual([...blocks].sort((a, b) => a - b))
    expect(blocks.at(-1)).toBe(9_000)
    for (const gap of gaps) {
      const oldest = Number(gap.through.split('.')[1])
      expect(blockNumbersOf(messages.slice(messages.indexOf(gap)))[0]).toBeGreaterThan(oldest)
    }
  })
})

describe('a replay of the sealed view', () => {
  const facts = [7, 8].flatMap((block) => [0, 1, 2].map((index) => transferAt({ block, index })))
  const wanted = ['transfer', 'seal'] as const

  it.each<{ lacks: readonly number[]; after: string; types?: readonly UpdateType[]; gets: string }>([
    { lacks: [1, 2, 3], after: '6', gets: 'transfer 7.1, expired from 7.1 to 8.1, transfer 8.2, transfer 8.3, seal 8' },
    { lacks: [0, 1, 2, 3, 4, 5], after: '6', gets: 'expired from 6 to 8.3, seal 8' },
    {
      lacks: [1],
      after: '6',
      gets: 'transfer 7.1, expired from 7.1 to 7.2, transfer 7.3, seal 7, transfer 8.1, transfer 8.2, transfer 8.3, seal 8',
    },
    { lacks: [3, 5], after: '6', gets: 'transfer 7.1, transfer 7.2, transfer 7.3, seal 7, expired from 7 to 8.3, seal 8' },
    { lacks: [3, 4], after: '8.1', gets: 'expired from 8.1 to 8.2, transfer 8.3, seal 8' },
    { lacks: [3, 4], after: '8.2', gets: 'transfer 8.3, seal 8' },
    // A stream from the start lacks nothing, and neither does a selection of other types.
    { lacks: [0, 3, 4], after: 'start', gets: 'transfer 7.2, transfer 7.3, seal 7, transfer 8.3, seal 8' },
    { lacks: [0, 3], after: '6', types: ['seal'], gets: 'seal 7, seal 8' },
    { lacks: [0, 3], after: '7', types: ['approval'], gets: 'seal 8' },
  ])('has one gap, from before the first fact that it lacks to the last one: $lacks after $after', async (replay) => {
    const { lacks, after, types = wanted, gets } = replay
    const { tape, listen } = openTestEdge()
    await tape.append(facts)
    const evicted = new Set(lacks.map((index) => facts[index]?.key))
    const find = tape.find.bind(tape)
    vi.spyOn(tape, 'find').mockImplementation((subject) => ('key' in subject && evicted.has(subject.key) ? [] : find(subject)))
    await tape.append([sealOf(facts.slice(0, 3), 7), sealOf(facts.slice(3), 8)])
    const since = after === 'start' ? ({ from: 'start' } as const) : sinceAfter(`${tape.epoch}.${after}`)
    const { outlet, started } = listen({ options: { stage: 'sealed', types }, since })
    await started
    const placeOf = (id: string | null) => id?.replace(`${tape.epoch}.`, '')
    const lines = outlet.messages
      .slice(2, -1)
      .map((message) =>
        message.type === 'gap'
          ? `${message.reason} from ${placeOf(message.after)} to ${placeOf(message.through)}`
          : `${message.type} ${'id' in message && placeOf(message.id)}`,
      )
    expect(lines.join(', ')).toBe(gets)
  })
})

// How a slot passes on is in clients.test.ts.
describe('replays of one address', () => {
  const slow = { ...everything, roomBytes: 100 }
  const isLive = (messages: readonly Message[]) => messages.at(-1)?.type === 'live'
  const elsewhere = async ({ listen }: ReturnType<typeof openTestEdge>) => {
    const other = listen({ ...everything, address: 'elsewhere' })
    await other.started
    return other.outlet.messages
  }

  it('run two at a time: the next starts when one ends', async () => {
    const edge = openTestEdge()
    await edge.tape.append([holeDraft(1), holeDraft(2)])
    const [first, second] = [edge.listen(slow), edge.listen(slow)]
    const third = edge.listen(everything)
    expect(isLive(await elsewhere(edge))).toBe(true)
    expect(third.outlet.messages).toEqual([])
    expect(first.outlet.messages.length).toBeGreaterThan(0)
    while (!isLive(second.outlet.messages)) {
      second.outlet.drain()
      await null
    }
    await third.started
    expect(blockNumbersOf(third.outlet.messages)).toEqual([1, 2])
    expect(isLive(first.outlet.messages)).toBe(false)
    first.leave()
    first.outlet.drain()
  })

  it.each([
    ['a resume from memory', (position: string) => sinceAfter(position), [2]],
    ['a listener that only wants new updates', () => ({ from: 'now' }) as const, []],
  ])('do not delay %s', async (_, since, blocks) => {
    const edge = openTestEdge()
    await edge.tape.append([holeDraft(1), holeDraft(2)])
    for (let replays = 0; replays < 2; replays += 1) edge.listen(slow)
    const { outlet, started } = edge.listen({ ...everything, since: since(edge.hub.position(1) ?? '') })
    await started
    expect(blockNumbersOf(outlet.messages)).toEqual(blocks)
    expect(isLive(outlet.messages)).toBe(true)
  })
})

describe('a WebSocket that is live in the sealed view', () => {
  it('gets a gap for what was evicted, and the answer to what it sends meanwhile after live', async () => {
    const { tape, context } = openTestEdge({ bound: 2 })
    await tape.append([], notesOfTokens([{ address: apple, symbol: 'AAPLc', isin: null, formerSymbols: [] }]))
    const outlet = new RecordingOutlet(2_000)
    const session = new WebSocketSession(Object.assign(outlet, { receivePong: () => true }) as never, 'here', 'none', context)
    session.open(new URLSearchParams('symbols=*&stage=sealed&snapshot=false'), '', null)
    const sentTypes = () => [...outlet.writes.join('').matchAll(/\{"type":"(\w+)"/g)].map(([, type]) => type)
    while (sentTypes().at(-1) !== 'live') await yieldToEventLoop()
    const before = sentTypes().length
    const facts = [0, 1, 2].map((index) => transferAt({ index }))
    await tape.append(facts)
    outlet.write(Buffer.alloc(2_000))
    await tape.append([sealOf(facts)])
    session.onMessage(Buffer.from('{"type":"list","req":1}'), false)
    outlet.drain()
    while (sentTypes().at(-1) !== 'subscribed') await yieldToEventLoop()
    expect(sentTypes().slice(before)).toEqual(['gap', 'transfer', 'seal', 'live', 'subscribed'])
  })
})

describe('a listener with a backlog', () => {
  it('is disconnected when it takes nothing for a minute, and stays when it takes a little', async () => {
    const edge = openTestEdge()
    const [stuck, slow] = [0, 1].map(() => edge.listen({ roomBytes: 3_000 }))
    await Promise.all([stuck?.started, slow?.started])
    await edge.tape.append(Array.from({ length: 30 }, (_, block) => holeDraft(block)))
    await edge.beat()
    for (let second = 0; second < 61; second += 1) {
      edge.clock.now += 1_000
      slow?.outlet.takeSome()
      await edge.beat()
    }
    expect(stuck?.outlet.messages.at(-1)).toMatchObject({ type: 'bye', reason: 'too_slow' })
    expect(slow?.outlet.messages.at(-1)).toMatchObject({ type: 'hole' })
  })
})
