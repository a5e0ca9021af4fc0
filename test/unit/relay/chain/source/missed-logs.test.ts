import { describe, expect, it } from 'vitest'
import * as missedLogs from '../../../../../src/relay/chain/source/missed-logs.ts'
import { range } from '../sealed/sealed-chain-fixture.ts'

/** The missed logs of a subscription, which began with head 100 by default, and whose gap was polled. */
const openMissedLogs = ({ head = 100, isGapPolled = true } = {}) => {
  let [missed, newestHead] = [missedLogs.afterHead(missedLogs.noMissedLogs, head), head]
  if (isGapPolled) missed = missedLogs.afterPoll(missed, null, true, newestHead)
  return {
    push: (block: number) => {
      missed = missedLogs.afterTimelyPush(missed, block)
    },
    pushLate: () => {
      missed = missedLogs.afterLatePush(missed)
    },
    poll: (newest: number | null, closesGap = false) => {
      missed = missedLogs.afterPoll(missed, newest, closesGap, newestHead)
    },
    settle: (block: number, logs: number, at = 0) => {
      newestHead = Math.max(newestHead, block)
      missed = missedLogs.afterSettling(missed, block, logs, at)
    },
    reorganise: () => {
      missed = missedLogs.afterReorg(missed, newestHead)
    },
    receiveHead: (number: number) => {
      newestHead = number
      missed = missedLogs.afterHead(missed, number)
    },
    health: (at = 0) => missedLogs.streamHealth(missed, at),
    blockCount: () => missed.blocks.size,
  }
}

describe('a stream of pushed logs', () => {
  it('is silent after three missed logs in two blocks', () => {
    const { settle, health } = openMissedLogs()
    settle(101, 2)
    expect(health()).toBe('ok')
    settle(102, 1, 200)
    expect(health(200)).toBe('silent')
  })

  it('is silent after three missed logs in one block, ten seconds later', () => {
    const { settle, health } = openMissedLogs()
    settle(101, 3, 1_000)
    expect([health(10_999), health(11_000)]).toEqual(['ok', 'silent'])
  })

  it('is never silent in a quiet market', () => {
    const { settle, health } = openMissedLogs()
    for (const block of range(101, 10_000)) settle(block, 0, block * 200)
    expect(health(1e9)).toBe('ok')
    settle(10_001, 2, 1e9)
    expect(health(2e9)).toBe('ok')
  })

  it('with one pushed log of a block is trusted again', () => {
    const { settle, push, health } = openMissedLogs()
    settle(101, 2)
    push(102)
    settle(102, 5, 200)
    settle(103, 2, 400)
    expect(health(60_000)).toBe('ok')
    settle(104, 1, 60_000)
    expect(health(60_000)).toBe('silent')
  })

  it('is behind when its logs belong to blocks that were sealed long ago', () => {
    const { settle, pushLate, health } = openMissedLogs()
    pushLate()
    settle(101, 2)
    settle(102, 2)
    expect(health()).toBe('behind')
  })

  it('is not behind because of a few late logs', () => {
    const { settle, push, pushLate, health } = openMissedLogs()
    pushLate()
    expect(health(60_000)).toBe('ok')
    push(101)
    settle(102, 2)
    settle(103, 2)
    expect(health()).toBe('silent')
  })
})

describe('missed logs', () => {
  it('are none in the block that was being built at the start, until its logs were polled', () => {
    const { settle, health } = openMissedLogs({ isGapPolled: false })
    settle(101, 3)
    expect(health(60_000)).toBe('ok')
    settle(102, 3)
    expect(health(60_000)).toBe('silent')
  })

  it.each([true, false])('are none in a block with polled logs, which may be older (closes the gap: %s)', (closesGap) => {
    const { settle, poll, health } = openMissedLogs({ isGapPolled: !closesGap })
    poll(101, closesGap)
    settle(101, 4)
    settle(102, 2)
    expect(health(60_000)).toBe('ok')
    settle(103, 1)
    expect(health(60_000)).toBe('silent')
  })

  it('are none in a block that was sealed before the poll that closes the gap, which cannot show its logs', () => {
    const { receiveHead, settle, poll, health } = openMissedLogs({ isGapPolled: false })
    receiveHead(101)
    poll(null, true)
    settle(101, 4)
    expect(health(60_000)).toBe('ok')
    settle(102, 3)
    expect(health(60_000)).toBe('silent')
  })

  it('count from the first head on, not from later ones', () => {
    const { settle, receiveHead, health } = openMissedLogs()
    receiveHead(105)
    settle(100, 5)
    expect(health(60_000)).toBe('ok')
    settle(101, 3)
    expect(health(60_000)).toBe('silent')
    expect(missedLogs.afterSettling(missedLogs.noMissedLogs, 101, 3, 0)).toBe(missedLogs.noMissedLogs)
  })

  it('are none in blocks that are settled again after a reorganisation', () => {
    const { settle, reorganise, health } = openMissedLogs()
    for (const block of [101, 102]) settle(block, 0)
    reorganise()
    for (const block of [101, 102]) settle(block, 5)
    expect(health(60_000)).toBe('ok')
    settle(103, 3)
    expect(health(60_000)).toBe('silent')
  })

  it('are only the additional ones of a block that is settled again', () => {
    const { settle, health } = openMissedLogs()
    for (const block of [101, 101, 102, 102]) settle(block, 1)
    expect(health(60_000)).toBe('ok')
    settle(102, 2)
    expect(health(60_000)).toBe('silent')
  })

  it('are remembered of a few blocks alone', () => {
    const { settle, blockCount } = openMissedLogs()
    for (const block of range(101, 1_000)) settle(block, 1)
    expect(blockCount()).toBe(3)
  })
})
