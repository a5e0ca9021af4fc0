import { describe, expect, it } from 'vitest'
import { Hub } from '../../src/edge/hub.ts'
import { Listener, type Outlet } from '../../src/edge/listener.ts'
import { View } from '../../src/edge/view.ts'
import { type House, welcome } from '../../src/edge/welcome.ts'
import type { Message } from '../../src/protocol/connection.ts'
import { defaultOptions, type Since } from '../../src/protocol/selection.ts'
import type { Draft } from '../../src/protocol/updates.ts'
import { openSqliteTape } from '../../src/tape/sqlite.ts'

/** Longer than any welcome takes in turns of the promise queue. */
const TURNS = 30

const now = () => 1_000_000
const time = new Date(now()).toISOString()
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

/** A house over a tape in memory, and one who listens there; everything said is kept. */
function openHouse(bound = 1_000_000) {
  const tape = openSqliteTape({ dir: ':memory:', retentionMs: 60_000, bound, now, dice: () => 0.5 })
  const view = new View(tape)
  const count = { came() {}, went() {}, shownOut() {} }
  const bounds = { backlogBoundBytes: 262_144, clientsBound: 10, selectionsBound: 10 }
  const hub = new Hub({ tape, view, now, dice: () => 0.5, ...bounds, count })
  const house: House = {
    hub,
    view,
    tape,
    now,
    chainId: () => 1,
    server: 'test',
    demo: false,
    heartbeatMs: 15_000,
    staleMs: 1,
    limits: { selections: 10, replay: 100_000, backlog: 262_144, retentionMs: 60_000 },
  }
  const said: Message[] = []
  const outlet: Outlet = {
    write: (bytes) => {
      for (const line of String(bytes).trimEnd().split('\n')) said.push(JSON.parse(line))
    },
    backlog: 0,
    drained: () => Promise.resolve(),
    ping: () => false,
    end() {},
  }
  const options = { ...defaultOptions, types: [...defaultOptions.types, 'log' as const] }
  const listener = new Listener({ id: 'one', carrier: 'ndjson', outlet, heartbeatMs: null, options, now: now() })
  listener.tokens = null
  hub.enter(listener)
  const begin = (since: Since) => welcome(house, listener, { since, snapshot: false, rejected: [] })
  return { tape, said, begin }
}

const blocksOf = (said: readonly Message[]): readonly number[] =>
  said.flatMap((message) =>
    message.type === 'hole' ? [message.blocks.from] : message.type === 'log' ? [message.block.number] : [],
  )

describe('joining', () => {
  it.each(Array.from({ length: TURNS }, (_, turn) => turn))(
    'loses nothing that is written %i turns after it began, and tells nothing twice',
    async (turn) => {
      const { tape, said, begin } = openHouse()
      await tape.append([hole(1), hole(2)])
      const joined = begin({ from: 'start' })
      for (let passed = 0; passed < turn; passed += 1) await null
      await tape.append([hole(3)])
      await joined
      await tape.append([hole(4)])
      expect(blocksOf(said)).toEqual([1, 2, 3, 4])
    },
  )
})

describe('a replay', () => {
  it('that eviction overtakes goes on at the oldest after a gap, and never goes back behind it', async () => {
    const { tape, said, begin } = openHouse(1_000)
    for (let block = 1; block <= 1_000; block += 1) await tape.append([log(block)])
    const joined = begin({ from: 'start' })
    while (blocksOf(said).length === 0) await null
    for (let page = 0; page < 80; page += 1) {
      await tape.append(Array.from({ length: 100 }, (_, index) => log(1_001 + page * 100 + index)))
    }
    await joined
    const gaps = said.filter((message) => message.type === 'gap')
    expect(gaps.length).toBeGreaterThan(0)
    const blocks = blocksOf(said)
    expect(blocks).toEqual([...blocks].sort((a, b) => a - b))
    expect(blocks.at(-1)).toBe(9_000)
    for (const gap of gaps) {
      const after = Number(gap.to.split('.')[1])
      expect(blocksOf(said.slice(said.indexOf(gap)))[0]).toBeGreaterThan(after)
    }
  })
})
