import { describe, expect, it } from 'vitest'
import { readLogs } from '../../../../src/chain/logs/log-schema.ts'
import type { SealedBlock } from '../../../../src/chain/sealed/block-logs.ts'
import { Witness } from '../../../../src/chain/source/missed-logs.ts'
import { apple, blockHash, pendingLog, secondOf, word } from '../node-json.ts'
import { range } from '../sealed/sealed-blocks-fixture.ts'

const logsOf = (block: number, count: number) =>
  readLogs(range(0, count - 1).map((index) => pendingLog({ block, index }))).logs

const blockOf = (number: number, logs: number, about: Partial<SealedBlock> = {}): SealedBlock => ({
  number,
  hash: blockHash(number),
  timestamp: secondOf(number),
  logs: logsOf(number, logs),
  asked: [apple],
  via: 'sealed',
  ...about,
})

/** A witness that has listened since the head was 100, and knows what was there before. */
const listening = () => {
  const witness = new Witness()
  witness.begins()
  witness.headed(100)
  witness.looked()
  const announce = (block: number) => {
    const [log] = logsOf(block, 1)
    if (log) witness.announced(log)
  }
  return { witness, announce }
}

describe('a stream', () => {
  it('is silent after three sealed logs of two blocks that it never announced', () => {
    const { witness } = listening()
    witness.sealed(blockOf(101, 2), 0)
    expect(witness.says(0)).toBe('ok')
    witness.sealed(blockOf(102, 1), 200)
    expect(witness.says(200)).toBe('silent')
  })

  it('is silent after three logs of a single block, ten seconds later', () => {
    const { witness } = listening()
    witness.sealed(blockOf(101, 3), 1_000)
    expect(witness.says(10_999)).toBe('ok')
    expect(witness.says(11_000)).toBe('silent')
  })

  it('is never silent in a quiet market', () => {
    const { witness } = listening()
    for (const block of range(101, 10_000)) witness.sealed(blockOf(block, 0), block * 200)
    expect(witness.says(1e9)).toBe('ok')
    witness.sealed(blockOf(10_001, 2), 1e9)
    expect(witness.says(2e9)).toBe('ok')
  })

  it('that announced one log of a block is trusted with the others, and with what came before', () => {
    const { witness, announce } = listening()
    witness.sealed(blockOf(101, 2), 0)
    announce(102)
    witness.sealed(blockOf(102, 5), 200)
    witness.sealed(blockOf(103, 2), 400)
    expect(witness.says(60_000)).toBe('ok')
    witness.sealed(blockOf(104, 1), 60_000)
    expect(witness.says(60_000)).toBe('silent')
  })

  it('is behind where what it pushes belongs to blocks that were sealed long ago', () => {
    const { witness } = listening()
    witness.tooLate()
    witness.sealed(blockOf(101, 2), 0)
    witness.sealed(blockOf(102, 2), 200)
    expect(witness.says(200)).toBe('behind')
  })

  it('is not behind because one log came late', () => {
    const { witness, announce } = listening()
    for (let late = 0; late < 10; late += 1) witness.tooLate()
    expect(witness.says(60_000)).toBe('ok')
    announce(101)
    witness.sealed(blockOf(102, 2), 0)
    witness.sealed(blockOf(103, 2), 200)
    expect(witness.says(200)).toBe('silent')
  })
})

describe('what speaks against no stream', () => {
  it('was caught up', () => {
    const { witness } = listening()
    for (const block of range(101, 110)) witness.sealed(blockOf(block, 5, { via: 'backfill' }), 0)
    expect(witness.says(60_000)).toBe('ok')
  })

  it('was sealed before it was listened to, or while nobody listens', () => {
    const { witness } = listening()
    for (const block of range(90, 100)) witness.sealed(blockOf(block, 5), 0)
    witness.ends()
    for (const block of range(101, 110)) witness.sealed(blockOf(block, 5), 0)
    expect(witness.says(60_000)).toBe('ok')
  })

  it('was in the block that was being built when it began, until it is known what that held', () => {
    const witness = new Witness()
    witness.begins()
    witness.headed(100)
    witness.sealed(blockOf(101, 3), 0)
    expect(witness.says(60_000)).toBe('ok')
    witness.sealed(blockOf(102, 3), 0)
    expect(witness.says(60_000)).toBe('silent')
  })

  it('was found by asking: it may have been there before the stream was', () => {
    const { witness } = listening()
    for (const log of logsOf(101, 3)) witness.excuse(log)
    witness.sealed(blockOf(101, 4), 0)
    witness.sealed(blockOf(102, 1), 0)
    expect(witness.says(60_000)).toBe('ok')
    witness.sealed(blockOf(103, 1), 0)
    expect(witness.says(60_000)).toBe('silent')
  })

  it('was sealed before any head was told', () => {
    const witness = new Witness()
    witness.begins()
    witness.looked()
    witness.sealed(blockOf(101, 5), 0)
    witness.headed(101)
    witness.headed(105)
    expect(witness.says(60_000)).toBe('ok')
    witness.sealed(blockOf(102, 5), 0)
    expect(witness.says(60_000)).toBe('silent')
  })

  it('was settled anew after a reorganisation', () => {
    const { witness, announce } = listening()
    for (const block of [101, 102]) {
      announce(block)
      witness.sealed(blockOf(block, 2), 0)
    }
    for (const block of [101, 102]) witness.sealed(blockOf(block, 5, { hash: word(block) }), 0)
    expect(witness.says(60_000)).toBe('ok')
  })

  it('was sealed before a subscription that is made anew', () => {
    const { witness } = listening()
    witness.sealed(blockOf(101, 3), 0)
    witness.begins()
    witness.headed(101)
    expect(witness.says(60_000)).toBe('ok')
    witness.sealed(blockOf(102, 3), 0)
    expect(witness.says(60_000)).toBe('ok')
    witness.sealed(blockOf(103, 3), 0)
    expect(witness.says(60_000)).toBe('silent')
  })

  it('was counted already, where a block turns out to hold more', () => {
    const { witness } = listening()
    witness.sealed(blockOf(101, 1), 0)
    witness.sealed(blockOf(101, 1), 0)
    witness.sealed(blockOf(102, 1), 0)
    witness.sealed(blockOf(102, 1), 0)
    expect(witness.says(60_000)).toBe('ok')
    witness.sealed(blockOf(102, 2), 0)
    expect(witness.says(60_000)).toBe('silent')
  })
})

it('a witness remembers the newest blocks alone', () => {
  const { witness, announce } = listening()
  for (const block of range(101, 1_000)) announce(block)
  witness.sealed(blockOf(101, 2), 0)
  witness.sealed(blockOf(102, 2), 0)
  expect(witness.says(0)).toBe('silent')
  announce(1_001)
  witness.sealed(blockOf(900, 5), 0)
  witness.sealed(blockOf(1_000, 5), 0)
  expect(witness.says(60_000)).toBe('ok')
})
