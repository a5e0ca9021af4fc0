import { describe, expect, it } from 'vitest'
import type { Hex } from '../../../../../src/lib/hex.ts'
import type { Cursor } from '../../../../../src/relay/chain/blocks/sealed-block.ts'
import { UpstreamError } from '../../../../../src/relay/chain/rpc/upstream-error.ts'
import { learn } from '../../../../../src/relay/chain/sealed/learn.ts'
import { plan } from '../../../../../src/relay/chain/sealed/plan.ts'
import { judgeHead, startSealed } from '../../../../../src/relay/chain/sealed/sealed-state.ts'
import { addBlock, addUnread } from '../../../../../src/relay/chain/sealed/settled-blocks.ts'
import type { SealedEvidence } from '../../../../../src/relay/chain/sealed/settlement-types.ts'
import { blockHash, header, word } from '../node-json.ts'
import { FakeOpenKeys, range, sealedHeader } from './sealed-chain-fixture.ts'

const OTHER = word(77)
const SILENCE_MS = 3_000

const headerOf = (number: number, hash = blockHash(number)) =>
  sealedHeader({ ...header(number), hash, number: `0x${number.toString(16)}` })

/** The state beside these settled blocks, which learns from what a test hands it. */
const openState = (settled: readonly number[] = [], cursor: Cursor | null = null) => {
  let state = startSealed({ cursor, safe: null, openKeys: new FakeOpenKeys(), silenceMs: SILENCE_MS })
  const settle = (...numbers: readonly number[]) => {
    for (const number of numbers) {
      const block = { number, hash: blockHash(number), logCount: 0, filters: [], settledAt: 0 }
      state = { ...state, blocks: addBlock(state.blocks, block) }
    }
  }
  settle(...settled)
  const receive = (evidence: SealedEvidence, at = 0) => {
    const [next, events] = learn(state, evidence, at)
    state = next
    return events
  }
  const head = (number: number, hash?: Hex, isPushed = false) => receive({ type: 'head', header: headerOf(number, hash), isPushed })
  const read = { lane: 'settle', what: 'disputed', number: 0, acceptsMissing: false } as const
  return {
    state: () => state,
    receive,
    settle,
    settleUnread: (number: number) => {
      state = { ...state, blocks: addUnread(state.blocks, { number, hash: null }) }
    },
    head,
    push: (number: number, hash?: Hex) => head(number, hash, true),
    judgePushed: (number: number) => judgeHead(state, headerOf(number), true),
    confirm: (number: number) => receive({ type: 'confirmed', read, number }),
    replace: (number: number) => receive({ type: 'replaced', read, to: { number, hash: blockHash(number) }, lost: null }),
    fail: (at: number) => receive({ type: 'failed', read, failure: new UpstreamError('unreachable', 'no') }, at),
    succeed: (at: number) => receive({ type: 'confirmed', read, number: 0 }, at),
  }
}

describe('the target head', () => {
  it('is the highest received one, but never one implausibly far ahead', () => {
    const { state, head } = openState()
    for (const number of [5, 7, 6]) head(number)
    expect(judgeHead(state(), headerOf(8 + 100_000_000), false)).toBe('garbage')
    head(8 + 100_000_000)
    expect(state().target?.number).toBe(7)
    head(7 + 100_000_000)
    expect(state().target?.number).toBe(7 + 100_000_000)
  })

  it('is no pushed one far above the blocks that are settled and the head that was asked for', () => {
    const { state, head, push, judgePushed } = openState([5])
    expect([judgePushed(69), judgePushed(70)]).toEqual(['taken', 'unconfirmed'])
    push(70)
    expect(state().target).toBeNull()
    head(100)
    expect([judgePushed(164), judgePushed(165)]).toEqual(['taken', 'unconfirmed'])
  })

  it('is the last received one after a reorganisation, or none', () => {
    const { state, head, replace } = openState([5])
    replace(4)
    expect(state().target).toBeNull()
    for (const number of [9, 6]) head(number)
    head(5, OTHER)
    replace(4)
    expect(state()).toMatchObject({ disputed: null, target: { number: 5, hash: OTHER } })
  })
})

describe('a disputed block', () => {
  it('is reported as replaced, with all blocks above the one that stays', () => {
    expect(openState([5, 6, 7]).replace(5)).toEqual([{ type: 'reorg', from: 6 }])
  })

  it('is the lowest with another hash than ours, and is reported at once', () => {
    const { state, head, confirm } = openState([5, 6, 7])
    expect(head(7)).toEqual([])
    expect(head(7, OTHER)).toEqual([{ type: 'reorg', from: 7, isSuspected: true }])
    expect(head(5, OTHER)).toEqual([{ type: 'reorg', from: 5, isSuspected: true }])
    expect(head(6, OTHER)).toEqual([])
    expect(state().disputed).toBe(5)
    // The header that raised the dispute is not taken for that of the chain.
    confirm(7)
    expect([state().disputed, state().announced.has(7)]).toEqual([5, false])
    confirm(5)
    expect(state().disputed).toBeNull()
  })

  it('must be settled, with a known hash', () => {
    const { state, head, settleUnread } = openState([5])
    settleUnread(6)
    for (const number of [4, 6, 7]) head(number, OTHER)
    expect(state().disputed).toBeNull()
  })

  it('stays after a rollback to it', () => {
    const { state, head, replace } = openState([5, 6, 7])
    for (const number of [7, 5]) head(number, OTHER)
    replace(5)
    expect(state().disputed).toBe(5)
  })

  it('may be one that a node withdraws, if it is ours', () => {
    const { state, receive } = openState([5, 6])
    for (const [number, hash] of [
      [6, OTHER],
      [6, null],
      [7, blockHash(7)],
    ] as const)
      receive({ type: 'removed', number, hash })
    expect(state().disputed).toBeNull()
    receive({ type: 'removed', number: 6, hash: blockHash(6) })
    expect(plan(state())).toEqual([{ lane: 'settle', what: 'disputed', number: 6, acceptsMissing: false }])
  })
})

describe('an announced head', () => {
  it('is kept until its block is settled, the newest of each number', () => {
    const { state, head, confirm } = openState([5])
    for (const number of [5, 6]) head(number)
    expect([...state().announced.keys()]).toEqual([6])
    head(6, OTHER)
    expect(state().announced.get(6)?.header.hash).toBe(OTHER)
    confirm(6)
    expect(state().announced.size).toBe(0)
  })

  it('is confirmed once it was asked for too', () => {
    const { state, head, push } = openState([5])
    const isPushed = () => state().announced.get(6)?.isPushed
    push(6)
    expect(isPushed()).toBe(true)
    head(6)
    push(6)
    expect(isPushed()).toBe(false)
    push(6, OTHER)
    expect(isPushed()).toBe(true)
  })

  it('is dropped as the oldest beyond the bound', () => {
    const { state, head } = openState()
    for (const number of range(1, 300)) head(number)
    expect([...state().announced.keys()]).toEqual(range(45, 300))
  })
})

describe('a block that a rollback takes back while it is read', () => {
  it('is settled after the blocks below it', () => {
    const { state, receive, replace } = openState([1, 2, 3, 4, 5, 6, 7, 8, 9])
    receive({ type: 'outdated', blocks: [8] })
    replace(3)
    const read = { lane: 'outdated', what: 'outdated', number: 8, nth: 1 } as const
    const listed = state().filters
    const result = { header: headerOf(8, OTHER), listed, filters: listed, logs: [], unreadable: 0, judged: [] }
    expect(receive({ type: 'blocks', read, results: [result], failure: null })).toEqual([])
    expect(state().blocks.newest?.number).toBe(3)
  })

  it('is not incomplete', () => {
    const { state, receive, replace } = openState([1, 2, 3, 4, 5, 6, 7, 8, 9])
    replace(3)
    const read = { lane: 'recheck', what: 'recent', below: 9 } as const
    receive({ type: 'rechecked', read, incomplete: [2, 8], complete: [], holes: [] })
    expect([...state().recheck.incomplete]).toEqual([2])
  })

  it('is not the newest one, if it was read inside of a hole', () => {
    const { state, receive, replace } = openState([1, 2, 3, 4, 5, 6, 7, 8, 9])
    replace(3)
    const read = { lane: 'backfill', what: 'missing', range: { from: 2, to: 8 }, reason: 'backfill_bound' } as const
    const blockAt = (number: number) =>
      ({ number, hash: OTHER, timestamp: 0, logs: [], filters: state().filters, via: 'backfill' }) as const
    receive({ type: 'page', read, blocks: [blockAt(2), blockAt(8)], holes: [], to: 8 })
    expect(state().blocks.newest?.number).toBe(3)
  })
})

describe('an outage', () => {
  it('ends with the first head, covers all blocks up to it, and is open until they are limited by age', () => {
    const { state, head, receive } = openState([], { number: 90, hash: blockHash(90) })
    const settled = { number: 90, hash: blockHash(90) }
    head(100)
    expect(state().outage).toMatchObject({ isDisconnected: false, isUnbounded: true, lastBlock: 100 })
    const [read] = plan(state())
    expect(read).toMatchObject({ what: 'oldest', settled })
    if (read) receive({ type: 'skipped', read, to: settled, missingReason: 'backfill_bound' })
    expect(plan(state())).toEqual([{ lane: 'settle', what: 'next', settled, count: 8 }])
    head(110)
    expect(state().outage).toMatchObject({ isUnbounded: false, lastBlock: 100 })
    receive({ type: 'down' })
    head(95)
    expect(state().outage).toMatchObject({ isUnbounded: true, lastBlock: 100 })
  })

  it.each([
    ['includes requests that fail for too long', [[1_000, 3_900, 4_001]], 50],
    ['does not include short failures, whatever their number', [[1_000, 4_000], [5_000, 8_000], [9_000, 12_000], [60_000]], -1],
  ])('%s', (_, tries, lastBlock) => {
    const { state, head, fail, succeed } = openState([49])
    head(50)
    for (const times of tries) {
      for (const failedAt of times.slice(0, -1)) fail(failedAt)
      succeed(times.at(-1) ?? 0)
    }
    expect(state().outage.lastBlock).toBe(lastBlock)
  })
})

describe('a finality event', () => {
  const open = (...marks: readonly (readonly [stage: 'safe' | 'finalized', block: number])[]) => {
    const opened = openState([1])
    for (const [stage, block] of marks) opened.receive({ type: 'finality', stage, block: headerOf(block) })
    /** Settles the block, and returns the events that it releases. */
    const release = (number: number) => {
      opened.settle(number)
      return opened.head(number).flatMap((event) => (event.type === 'finality' ? [`${event.stage} ${event.block.number}`] : []))
    }
    return { ...opened, release }
  }

  it('is the newest reached one of its stage', () => {
    const { release } = open(['safe', 100], ['safe', 110], ['safe', 130], ['finalized', 90])
    expect([release(120), release(130)]).toEqual([['safe 110', 'finalized 90'], ['safe 130']])
  })

  it('is dropped as the oldest beyond the bound', () => {
    const { release } = open(...range(1, 100).map((block) => ['safe', block] as const))
    expect([release(36), release(37), release(1_000)]).toEqual([[], ['safe 37'], ['safe 100']])
  })
})
