import { describe, expect, it } from 'vitest'
import { readLogs } from '../../../../src/chain/logs/log-schema.ts'
import type { SealedBlock } from '../../../../src/chain/sealed/block-logs.ts'
import { MissedLogCounter } from '../../../../src/chain/source/missed-logs.ts'
import { apple, blockHash, pendingLog, timestampOf, word } from '../node-json.ts'
import { range } from '../sealed/sealed-blocks-fixture.ts'

const logsOf = (block: number, count: number) =>
  readLogs(range(0, count - 1).map((index) => pendingLog({ block, index }))).logs

const blockOf = (number: number, logs: number, about: Partial<SealedBlock> = {}): SealedBlock => ({
  number,
  hash: blockHash(number),
  timestamp: timestampOf(number),
  logs: logsOf(number, logs),
  addresses: [apple],
  via: 'sealed',
  ...about,
})

/** A witness that has listened since the head was 100, and knows what was there before. */
const openMissedLogs = () => {
  const witness = new MissedLogCounter()
  witness.start()
  witness.headReceived(100)
  witness.pendingPolled()
  const announce = (block: number) => {
    const [log] = logsOf(block, 1)
    if (log) witness.logPushed(log)
  }
  return { witness, announce }
}

describe('a stream', () => {
  it('is silent after three sealed logs of two blocks that it never announced', () => {
    const { witness } = openMissedLogs()
    witness.blockSealed(blockOf(101, 2), 0)
    expect(witness.health(0)).toBe('ok')
    witness.blockSealed(blockOf(102, 1), 200)
    expect(witness.health(200)).toBe('silent')
  })

  it('is silent after three logs of a single block, ten seconds later', () => {
    const { witness } = openMissedLogs()
    witness.blockSealed(blockOf(101, 3), 1_000)
    expect(witness.health(10_999)).toBe('ok')
    expect(witness.health(11_000)).toBe('silent')
  })

  it('is never silent in a quiet market', () => {
    const { witness } = openMissedLogs()
    for (const block of range(101, 10_000)) witness.blockSealed(blockOf(block, 0), block * 200)
    expect(witness.health(1e9)).toBe('ok')
    witness.blockSealed(blockOf(10_001, 2), 1e9)
    expect(witness.health(2e9)).toBe('ok')
  })

  it('that announced one log of a block is trusted with the others, and with what came before', () => {
    const { witness, announce } = openMissedLogs()
    witness.blockSealed(blockOf(101, 2), 0)
    announce(102)
    witness.blockSealed(blockOf(102, 5), 200)
    witness.blockSealed(blockOf(103, 2), 400)
    expect(witness.health(60_000)).toBe('ok')
    witness.blockSealed(blockOf(104, 1), 60_000)
    expect(witness.health(60_000)).toBe('silent')
  })

  it('is behind where what it pushes belongs to blocks that were sealed long ago', () => {
    const { witness } = openMissedLogs()
    witness.lateLogPushed()
    witness.blockSealed(blockOf(101, 2), 0)
    witness.blockSealed(blockOf(102, 2), 200)
    expect(witness.health(200)).toBe('behind')
  })

  it('is not behind because one log came late', () => {
    const { witness, announce } = openMissedLogs()
    for (let late = 0; late < 10; late += 1) witness.lateLogPushed()
    expect(witness.health(60_000)).toBe('ok')
    announce(101)
    witness.blockSealed(blockOf(102, 2), 0)
    witness.blockSealed(blockOf(103, 2), 200)
    expect(witness.health(200)).toBe('silent')
  })
})

describe('what speaks against no stream', () => {
  it('was caught up', () => {
    const { witness } = openMissedLogs()
    for (const block of range(101, 110)) witness.blockSealed(blockOf(block, 5, { via: 'backfill' }), 0)
    expect(witness.health(60_000)).toBe('ok')
  })

  it('was sealed before it was listened to, or while nobody listens', () => {
    const { witness } = openMissedLogs()
    for (const block of range(90, 100)) witness.blockSealed(blockOf(block, 5), 0)
    witness.stop()
    for (const block of range(101, 110)) witness.blockSealed(blockOf(block, 5), 0)
    expect(witness.health(60_000)).toBe('ok')
  })

  it('was in the block that was being built when it began, until it is known what that held', () => {
    const witness = new MissedLogCounter()
    witness.start()
    witness.headReceived(100)
    witness.blockSealed(blockOf(101, 3), 0)
    expect(witness.health(60_000)).toBe('ok')
    witness.blockSealed(blockOf(102, 3), 0)
    expect(witness.health(60_000)).toBe('silent')
  })

  it('was found by asking: it may have been there before the stream was', () => {
    const { witness } = openMissedLogs()
    for (const log of logsOf(101, 3)) witness.excuse(log)
    witness.blockSealed(blockOf(101, 4), 0)
    witness.blockSealed(blockOf(102, 1), 0)
    expect(witness.health(60_000)).toBe('ok')
    witness.blockSealed(blockOf(103, 1), 0)
    expect(witness.health(60_000)).toBe('silent')
  })

  it('was sealed before any head was told', () => {
    const witness = new MissedLogCounter()
    witness.start()
    witness.pendingPolled()
    witness.blockSealed(blockOf(101, 5), 0)
    witness.headReceived(101)
    witness.headReceived(105)
    expect(witness.health(60_000)).toBe('ok')
    witness.blockSealed(blockOf(102, 5), 0)
    expect(witness.health(60_000)).toBe('silent')
  })

  it('was settled anew after a reorganisation', () => {
    const { witness, announce } = openMissedLogs()
    for (const block of [101, 102]) {
      announce(block)
      witness.blockSealed(blockOf(block, 2), 0)
    }
    for (const block of [101, 102]) witness.blockSealed(blockOf(block, 5, { hash: word(block) }), 0)
    expect(witness.health(60_000)).toBe('ok')
  })

  it('was sealed before a subscription that is made anew', () => {
    const { witness } = openMissedLogs()
    witness.blockSealed(blockOf(101, 3), 0)
    witness.start()
    witness.headReceived(101)
    expect(witness.health(60_000)).toBe('ok')
    witness.blockSealed(blockOf(102, 3), 0)
    expect(witness.health(60_000)).toBe('ok')
    witness.blockSealed(blockOf(103, 3), 0)
    expect(witness.health(60_000)).toBe('silent')
  })

  it('was counted already, where a block turns out to hold more', () => {
    const { witness } = openMissedLogs()
    witness.blockSealed(blockOf(101, 1), 0)
    witness.blockSealed(blockOf(101, 1), 0)
    witness.blockSealed(blockOf(102, 1), 0)
    witness.blockSealed(blockOf(102, 1), 0)
    expect(witness.health(60_000)).toBe('ok')
    witness.blockSealed(blockOf(102, 2), 0)
    expect(witness.health(60_000)).toBe('silent')
  })
})

it('a witness remembers the newest blocks alone', () => {
  const { witness, announce } = openMissedLogs()
  for (const block of range(101, 1_000)) announce(block)
  witness.blockSealed(blockOf(101, 2), 0)
  witness.blockSealed(blockOf(102, 2), 0)
  expect(witness.health(0)).toBe('silent')
  announce(1_001)
  witness.blockSealed(blockOf(900, 5), 0)
  witness.blockSealed(blockOf(1_000, 5), 0)
  expect(witness.health(60_000)).toBe('ok')
})
