import { setImmediate as nextTurn } from 'node:timers/promises'
import { describe, expect, it, vi } from 'vitest'
import type { Message } from '../../../../src/protocol/notices.ts'
import { type Draft, updateTypes } from '../../../../src/protocol/updates.ts'
import type { Tape } from '../../../../src/tape/tape.ts'
import { after, ownHouse } from '../edge-fixture.ts'

/** Longer than any welcome takes in turns of the promise queue. */
const TURNS = 30

const time = new Date(1_000_000).toISOString()
const hole = (block: number): Draft => ({
  type: 'hole',
  symbol: '*',
  address: null,
  time,
  blocks: { from: block, to: block },
  reason: 'test',
})
const log = (block: number): Draft => ({
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
const all = { options: { types: updateTypes }, since: { from: 'start' } } as const

const blocksOf = (said: readonly Message[]): readonly number[] =>
  said.flatMap((message) =>
    message.type === 'hole' ? [message.blocks.from] : message.type === 'log' ? [message.block.number] : [],
  )

describe('joining', () => {
  it.each(Array.from({ length: TURNS }, (_, turn) => turn))(
    'loses nothing that is written %i turns after it began, and tells nothing twice',
    async (turn) => {
      const { tape, listen } = ownHouse()
      await tape.append([hole(1), hole(2)])
      const { outlet, joined } = listen(all)
      for (let passed = 0; passed < turn; passed += 1) await null
      await tape.append([hole(3)])
      await joined
      await tape.append([hole(4)])
      expect(blocksOf(outlet.messages)).toEqual([1, 2, 3, 4])
    },
  )
})

/** Counts how often something is read for a selection. */
function countingPages(tape: Tape) {
  const reader = tape.reader.bind(tape)
  const pages = vi.fn()
  vi.spyOn(tape, 'reader').mockImplementation((wanted) => {
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
    const { tape, listen } = ownHouse({ replay: 500 })
    await tape.append(Array.from({ length: 2_000 }, (_, block) => log(block)))
    const pages = countingPages(tape)
    // Whether so many are given cannot be told without reading them.
    const { joined, leave } = listen({ options: { types: ['log'], stage: 'sealed' }, since: { from: 'start' } })
    while (pages.mock.calls.length === 0) await nextTurn()
    leave()
    await joined
    expect(pages.mock.calls.length).toBeLessThan(5)
  })

  it('is not measured message by message where the tape knows how many there are', async () => {
    const { tape, listen } = ownHouse({ replay: 500 })
    await tape.append(Array.from({ length: 2_000 }, (_, block) => log(block)))
    await tape.append([hole(1)])
    const pages = countingPages(tape)
    const none = listen({ options: { types: ['hole'] }, since: { from: 'start' } })
    await none.joined
    expect(none.outlet.messages.map(({ type }) => type)).toEqual(['hello', 'subscribed', 'hole', 'live'])
    const many = listen({ options: { types: ['log'] }, since: { from: 'start' } })
    await many.joined
    expect(many.outlet.messages.map(({ type }) => type)).toEqual(['hello', 'subscribed', 'gap', 'live'])
    expect(pages).not.toHaveBeenCalled()
  })

  it('of few among many reads few', async () => {
    const { tape, listen } = ownHouse()
    await tape.append([hole(1)])
    for (let turn = 0; turn < 20; turn += 1) {
      await tape.append(Array.from({ length: 500 }, (_, index) => log(turn * 500 + index)))
    }
    await tape.append([hole(2)])
    const pages = countingPages(tape)
    const one = listen({ options: { types: ['hole'] }, since: { from: 'start' } })
    await one.joined
    expect(blocksOf(one.outlet.messages)).toEqual([1, 2])
    const sparing = pages.mock.calls.length
    const all = listen({ options: { types: ['hole', 'log'] }, since: { from: 'start' } })
    await all.joined
    expect(all.outlet.updates).toHaveLength(10_002)
    expect(pages.mock.calls.length - sparing).toBeGreaterThan(20 * sparing)
  })

  it('that eviction overtakes goes on at the oldest after a gap, and never goes back behind it', async () => {
    const { tape, listen } = ownHouse({ bound: 1_000 })
    for (let block = 1; block <= 1_000; block += 1) await tape.append([log(block)])
    const { outlet, joined } = listen(all)
    // Hello and subscribed, then the first page.
    while (outlet.writes.length < 3) await null
    for (let page = 0; page < 80; page += 1) {
      await tape.append(Array.from({ length: 100 }, (_, index) => log(1_001 + page * 100 + index)))
    }
    await joined
    const said = outlet.messages
    const gaps = said.filter((message) => message.type === 'gap')
    expect(gaps.length).toBeGreaterThan(0)
    const blocks = blocksOf(said)
    expect(blocks).toEqual([...blocks].sort((a, b) => a - b))
    expect(blocks.at(-1)).toBe(9_000)
    for (const gap of gaps) {
      const oldest = Number(gap.to.split('.')[1])
      expect(blocksOf(said.slice(said.indexOf(gap)))[0]).toBeGreaterThan(oldest)
    }
  })
})

describe('replays of one address', () => {
  const slow = { ...all, roomBytes: 100 }
  const isLive = (said: readonly Message[]) => said.at(-1)?.type === 'live'
  const elsewhere = async ({ listen }: ReturnType<typeof ownHouse>) => {
    const other = listen({ ...all, address: 'elsewhere' })
    await other.joined
    return other.outlet.messages
  }

  it('run two at a time: the next begins when one is through', async () => {
    const house = ownHouse()
    await house.tape.append([hole(1), hole(2)])
    const [first, second] = [house.listen(slow), house.listen(slow)]
    const third = house.listen(all)
    expect(isLive(await elsewhere(house))).toBe(true)
    expect(third.outlet.messages).toEqual([])
    expect(first.outlet.messages.length).toBeGreaterThan(0)
    while (!isLive(second.outlet.messages)) {
      second.outlet.read()
      await null
    }
    await third.joined
    expect(blocksOf(third.outlet.messages)).toEqual([1, 2])
    expect(isLive(first.outlet.messages)).toBe(false)
    first.leave()
    first.outlet.read()
  })

  it('hand on their turn when they are given up, whether they run or wait', async () => {
    const house = ownHouse()
    await house.tape.append([hole(1), hole(2)])
    const running = [house.listen(slow), house.listen(slow)]
    const waiting = [house.listen(all), house.listen(all)]
    waiting[0]?.leave()
    for (const { leave, outlet } of running) {
      leave()
      outlet.read()
    }
    await waiting[1]?.joined
    expect(isLive(waiting[1]?.outlet.messages ?? [])).toBe(true)
    expect(waiting[0]?.outlet.messages).toEqual([])
  })

  it('keep nobody waiting who missed so little that it is at hand', async () => {
    const house = ownHouse()
    await house.tape.append([hole(1), hole(2)])
    for (let one = 0; one < 2; one += 1) house.listen(slow)
    const back = house.listen({ ...all, since: after(house.hub.position(1)) })
    await back.joined
    expect(blocksOf(back.outlet.messages)).toEqual([2])
    expect(isLive(back.outlet.messages)).toBe(true)
  })

  it('keep nobody waiting who only wants what is new', async () => {
    const house = ownHouse()
    await house.tape.append([hole(1), hole(2)])
    for (let one = 0; one < 2; one += 1) house.listen(slow)
    const present = house.listen({ ...all, since: { from: 'now' } })
    await present.joined
    expect(isLive(present.outlet.messages)).toBe(true)
  })
})

describe('one who is owed something and takes nothing', () => {
  it('is shown out after a minute, and not one who takes a little', async () => {
    const house = ownHouse()
    const [stuck, slow] = [0, 1].map(() => house.listen({ roomBytes: 3_000 }))
    await Promise.all([stuck?.joined, slow?.joined])
    await house.tape.append(Array.from({ length: 30 }, (_, block) => hole(block)))
    await house.hub.beat()
    for (let second = 0; second < 61; second += 1) {
      house.clock.now += 1_000
      slow?.outlet.take()
      await house.hub.beat()
    }
    expect(stuck?.outlet.messages.at(-1)).toMatchObject({ type: 'bye', reason: 'too_slow' })
    expect(slow?.outlet.messages.at(-1)).toMatchObject({ type: 'hole' })
  })
})
