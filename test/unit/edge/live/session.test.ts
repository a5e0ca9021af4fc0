import { setImmediate as yieldToEventLoop } from 'node:timers/promises'
import { describe, expect, it, vi } from 'vitest'
import type { Message } from '../../../../src/protocol/notices.ts'
import { type Draft, updateTypes } from '../../../../src/protocol/updates.ts'
import type { SearchableTape } from '../../../../src/tape/tape.ts'
import { openTestEdge, sinceAfter } from '../edge-fixture.ts'

/** Longer than any welcome takes in turns of the promise queue. */
const TICKS = 30

const time = new Date(1_000_000).toISOString()
const holeDraft = (block: number): Draft => ({
  type: 'hole',
  symbol: '*',
  address: null,
  time,
  blocks: { first: block, last: block },
  reason: 'test',
})
const logDraft = (block: number): Draft => ({
  type: 'log',
  symbol: 'AAPLc',
  address: `0x${'1'.repeat(40)}`,
  time,
  key: `${block}-0x${'a'.repeat(64)}-0`,
  stage: 'preconfirmed',
  late: false,
  topics: [],
  data: '0x',
  block: { number: block, hash: null, timestamp: null },
  tx: { hash: `0x${'a'.repeat(64)}`, index: 0, log_index: 0 },
})

/** One who hears everything there is. */
const everything = { options: { types: updateTypes }, since: { from: 'start' } } as const

const blockNumbersOf = (messages: readonly Message[]): readonly number[] =>
  messages.flatMap((message) =>
    message.type === 'hole' ? [message.blocks.first] : message.type === 'log' ? [message.block.number] : [],
  )

describe('joining', () => {
  it.each(Array.from({ length: TICKS }, (_, turn) => turn))(
    'loses nothing that is written %i turns after it began, and tells nothing twice',
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

/** Counts how often something is read for a selection. */
function countPages(tape: SearchableTape) {
  const reader = tape.openReader.bind(tape)
  const pages = vi.fn()
  vi.spyOn(tape, 'openReader').mockImplementation((wanted) => {
    const read = reader(wanted)
    return (stretch) => {
      pages()
      return read(stretch)
    }
  })
  return pages
}

describe('a replay', () => {
  it('is not measured any further for somebody who has left', async () => {
    const { tape, listen } = openTestEdge({ replay: 500 })
    await tape.append(Array.from({ length: 2_000 }, (_, block) => logDraft(block)))
    const pages = countPages(tape)
    // Whether so many are given cannot be told without reading them.
    const { started, leave } = listen({ options: { types: ['log'], stage: 'sealed' }, since: { from: 'start' } })
    while (pages.mock.calls.length === 0) await yieldToEventLoop()
    leave()
    await started
    expect(pages.mock.calls.length).toBeLessThan(5)
  })

  it('is not measured message by message where the tape knows how many there are', async () => {
    const { tape, listen } = openTestEdge({ replay: 500 })
    await tape.append(Array.from({ length: 2_000 }, (_, block) => logDraft(block)))
    await tape.append([holeDraft(1)])
    const pages = countPages(tape)
    const none = listen({ options: { types: ['hole'] }, since: { from: 'start' } })
    await none.started
    expect(none.outlet.messages.map(({ type }) => type)).toEqual(['hello', 'subscribed', 'hole', 'live'])
    const many = listen({ options: { types: ['log'] }, since: { from: 'start' } })
    await many.started
    expect(many.outlet.messages.map(({ type }) => type)).toEqual(['hello', 'subscribed', 'gap', 'live'])
    expect(pages).not.toHaveBeenCalled()
  })

  it('of few among many reads few', async () => {
    const { tape, listen } = openTestEdge()
    await tape.append([holeDraft(1)])
    for (let turn = 0; turn < 20; turn += 1) {
      await tape.append(Array.from({ length: 500 }, (_, index) => logDraft(turn * 500 + index)))
    }
    await tape.append([holeDraft(2)])
    const pages = countPages(tape)
    const one = listen({ options: { types: ['hole'] }, since: { from: 'start' } })
    await one.started
    expect(blockNumbersOf(one.outlet.messages)).toEqual([1, 2])
    const sparing = pages.mock.calls.length
    const everything = listen({ options: { types: ['hole', 'log'] }, since: { from: 'start' } })
    await everything.started
    expect(everything.outlet.updates).toHaveLength(10_002)
    expect(pages.mock.calls.length - sparing).toBeGreaterThan(20 * sparing)
  })

  it('that eviction overtakes goes on at the oldest after a gap, and never goes back behind it', async () => {
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
      const oldest = Number(gap.to.split('.')[1])
      expect(blockNumbersOf(messages.slice(messages.indexOf(gap)))[0]).toBeGreaterThan(oldest)
    }
  })
})

describe('replays of one address', () => {
  const slow = { ...everything, roomBytes: 100 }
  const isLive = (messages: readonly Message[]) => messages.at(-1)?.type === 'live'
  const elsewhere = async ({ listen }: ReturnType<typeof openTestEdge>) => {
    const other = listen({ ...everything, address: 'elsewhere' })
    await other.started
    return other.outlet.messages
  }

  it('run two at a time: the next begins when one is through', async () => {
    const house = openTestEdge()
    await house.tape.append([holeDraft(1), holeDraft(2)])
    const [first, second] = [house.listen(slow), house.listen(slow)]
    const third = house.listen(everything)
    expect(isLive(await elsewhere(house))).toBe(true)
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

  it('hand on their turn when they are given up, whether they run or wait', async () => {
    const house = openTestEdge()
    await house.tape.append([holeDraft(1), holeDraft(2)])
    const running = [house.listen(slow), house.listen(slow)]
    const waiting = [house.listen(everything), house.listen(everything)]
    waiting[0]?.leave()
    for (const { leave, outlet } of running) {
      leave()
      outlet.drain()
    }
    await waiting[1]?.started
    expect(isLive(waiting[1]?.outlet.messages ?? [])).toBe(true)
    expect(waiting[0]?.outlet.messages).toEqual([])
  })

  it('keep nobody waiting who missed so little that it is at hand', async () => {
    const house = openTestEdge()
    await house.tape.append([holeDraft(1), holeDraft(2)])
    for (let one = 0; one < 2; one += 1) house.listen(slow)
    const back = house.listen({ ...everything, since: sinceAfter(house.hub.position(1)) })
    await back.started
    expect(blockNumbersOf(back.outlet.messages)).toEqual([2])
    expect(isLive(back.outlet.messages)).toBe(true)
  })

  it('keep nobody waiting who only wants what is new', async () => {
    const house = openTestEdge()
    await house.tape.append([holeDraft(1), holeDraft(2)])
    for (let one = 0; one < 2; one += 1) house.listen(slow)
    const present = house.listen({ ...everything, since: { from: 'now' } })
    await present.started
    expect(isLive(present.outlet.messages)).toBe(true)
  })
})

describe('one who is owed something and takes nothing', () => {
  it('is shown out after a minute, and not one who takes a little', async () => {
    const house = openTestEdge()
    const [stuck, slow] = [0, 1].map(() => house.listen({ roomBytes: 3_000 }))
    await Promise.all([stuck?.started, slow?.started])
    await house.tape.append(Array.from({ length: 30 }, (_, block) => holeDraft(block)))
    await house.hub.sendHeartbeats()
    for (let second = 0; second < 61; second += 1) {
      house.clock.now += 1_000
      slow?.outlet.takeSome()
      await house.hub.sendHeartbeats()
    }
    expect(stuck?.outlet.messages.at(-1)).toMatchObject({ type: 'bye', reason: 'too_slow' })
    expect(slow?.outlet.messages.at(-1)).toMatchObject({ type: 'hole' })
  })
})
