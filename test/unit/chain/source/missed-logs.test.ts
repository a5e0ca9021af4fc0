import { describe, expect, it } from 'vitest'
import { readLogs } from '../../../../src/chain/logs/log-schema.ts'
import type { SealedBlock } from '../../../../src/chain/sealed/block-logs.ts'
import { MissedLogCounter } from '../../../../src/chain/source/missed-logs.ts'
import { apple, blockHash, pendingLog, timestampOf, word } from '../node-json.ts'
import { range } from '../sealed/sealed-blocks-fixture.ts'

const logsOf = (block: number, count: number) => readLogs(range(0, count - 1).map((index) => pendingLog({ block, index }))).logs

const blockOf = (number: number, logs: number, fields: Partial<SealedBlock> = {}): SealedBlock => ({
  number,
  hash: blockHash(number),
  timestamp: timestampOf(number),
  logs: logsOf(number, logs),
  addresses: [apple],
  via: 'sealed',
  ...fields,
})

/** A counter that is running since head 100 and has polled the pending block. */
const openMissedLogs = () => {
  const counter = new MissedLogCounter()
  counter.start()
  counter.headReceived(100)
  counter.pendingPolled()
  const push = (block: number) => {
    const [log] = logsOf(block, 1)
    if (log) counter.logPushed(log)
  }
  return { counter, push }
}

describe('a stream of pushed logs', () => {
  it('is silent after three missed logs in two blocks', () => {
    const { counter } = openMissedLogs()
    counter.blockSealed(blockOf(101, 2), 0)
    expect(counter.health(0)).toBe('ok')
    counter.blockSealed(blockOf(102, 1), 200)
    expect(counter.health(200)).toBe('silent')
  })

  it('is silent after three missed logs in one block, ten seconds later', () => {
    const { counter } = openMissedLogs()
    counter.blockSealed(blockOf(101, 3), 1_000)
    expect(counter.health(10_999)).toBe('ok')
    expect(counter.health(11_000)).toBe('silent')
  })

  it('is never silent in a quiet market', () => {
    const { counter } = openMissedLogs()
    for (const block of range(101, 10_000)) counter.blockSealed(blockOf(block, 0), block * 200)
    expect(counter.health(1e9)).toBe('ok')
    counter.blockSealed(blockOf(10_001, 2), 1e9)
    expect(counter.health(2e9)).toBe('ok')
  })

  it('with one pushed log of a block is trusted again', () => {
    const { counter, push } = openMissedLogs()
    counter.blockSealed(blockOf(101, 2), 0)
    push(102)
    counter.blockSealed(blockOf(102, 5), 200)
    counter.blockSealed(blockOf(103, 2), 400)
    expect(counter.health(60_000)).toBe('ok')
    counter.blockSealed(blockOf(104, 1), 60_000)
    expect(counter.health(60_000)).toBe('silent')
  })

  it('is behind when its logs belong to blocks that were sealed long ago', () => {
    const { counter } = openMissedLogs()
    counter.lateLogPushed()
    counter.blockSealed(blockOf(101, 2), 0)
    counter.blockSealed(blockOf(102, 2), 200)
    expect(counter.health(200)).toBe('behind')
  })

  it('is not behind because of a few late logs', () => {
    const { counter, push } = openMissedLogs()
    for (let late = 0; late < 10; late += 1) counter.lateLogPushed()
    expect(counter.health(60_000)).toBe('ok')
    push(101)
    counter.blockSealed(blockOf(102, 2), 0)
    counter.blockSealed(blockOf(103, 2), 200)
    expect(counter.health(200)).toBe('silent')
  })
})

describe('the missed log counter', () => {
  it('ignores backfilled blocks', () => {
    const { counter } = openMissedLogs()
    for (const block of range(101, 110)) counter.blockSealed(blockOf(block, 5, { via: 'backfill' }), 0)
    expect(counter.health(60_000)).toBe('ok')
  })

  it('ignores blocks from before its start and after its stop', () => {
    const { counter } = openMissedLogs()
    for (const block of range(90, 100)) counter.blockSealed(blockOf(block, 5), 0)
    counter.stop()
    for (const block of range(101, 110)) counter.blockSealed(blockOf(block, 5), 0)
    expect(counter.health(60_000)).toBe('ok')
  })

  it('ignores the block that was being built at its start, until that was polled', () => {
    const counter = new MissedLogCounter()
    counter.start()
    counter.headReceived(100)
    counter.blockSealed(blockOf(101, 3), 0)
    expect(counter.health(60_000)).toBe('ok')
    counter.blockSealed(blockOf(102, 3), 0)
    expect(counter.health(60_000)).toBe('silent')
  })

  it('ignores polled logs, which may be older than the subscription', () => {
    const { counter } = openMissedLogs()
    for (const log of logsOf(101, 3)) counter.excuse(log)
    counter.blockSealed(blockOf(101, 4), 0)
    counter.blockSealed(blockOf(102, 1), 0)
    expect(counter.health(60_000)).toBe('ok')
    counter.blockSealed(blockOf(103, 1), 0)
    expect(counter.health(60_000)).toBe('silent')
  })

  it('ignores blocks from before the first head', () => {
    const counter = new MissedLogCounter()
    counter.start()
    counter.pendingPolled()
    counter.blockSealed(blockOf(101, 5), 0)
    counter.headReceived(101)
    counter.headReceived(105)
    expect(counter.health(60_000)).toBe('ok')
    counter.blockSealed(blockOf(102, 5), 0)
    expect(counter.health(60_000)).toBe('silent')
  })

  it('ignores blocks that are settled again after a reorganisation', () => {
    const { counter, push } = openMissedLogs()
    for (const block of [101, 102]) {
      push(block)
      counter.blockSealed(blockOf(block, 2), 0)
    }
    for (const block of [101, 102]) counter.blockSealed(blockOf(block, 5, { hash: word(block) }), 0)
    expect(counter.health(60_000)).toBe('ok')
  })

  it('ignores blocks from before a new subscription', () => {
    const { counter } = openMissedLogs()
    counter.blockSealed(blockOf(101, 3), 0)
    counter.start()
    counter.headReceived(101)
    expect(counter.health(60_000)).toBe('ok')
    counter.blockSealed(blockOf(102, 3), 0)
    expect(counter.health(60_000)).toBe('ok')
    counter.blockSealed(blockOf(103, 3), 0)
    expect(counter.health(60_000)).toBe('silent')
  })

  it('counts only the additional logs of a block that is settled again', () => {
    const { counter } = openMissedLogs()
    counter.blockSealed(blockOf(101, 1), 0)
    counter.blockSealed(blockOf(101, 1), 0)
    counter.blockSealed(blockOf(102, 1), 0)
    counter.blockSealed(blockOf(102, 1), 0)
    expect(counter.health(60_000)).toBe('ok')
    counter.blockSealed(blockOf(102, 2), 0)
    expect(counter.health(60_000)).toBe('silent')
  })
})

it('the missed log counter keeps the newest blocks alone', () => {
  const { counter, push } = openMissedLogs()
  for (const block of range(101, 1_000)) push(block)
  counter.blockSealed(blockOf(101, 2), 0)
  counter.blockSealed(blockOf(102, 2), 0)
  expect(counter.health(0)).toBe('silent')
  push(1_001)
  counter.blockSealed(blockOf(900, 5), 0)
  counter.blockSealed(blockOf(1_000, 5), 0)
  expect(counter.health(60_000)).toBe('ok')
})
