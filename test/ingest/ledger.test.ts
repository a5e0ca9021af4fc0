import { describe, expect, it } from 'vitest'
import { Ledger } from '../../src/ingest/ledger.ts'

const log = (block: number, index = 0) => ({ key: `${block}-0xaa-${index}`, blockNumber: block })

describe('a log', () => {
  it('is news once', () => {
    const ledger = new Ledger(64)
    expect([1, 2, 3].map(() => ledger.admit(log(5), 0))).toEqual([true, false, false])
  })

  it('is another at another place', () => {
    const ledger = new Ledger(64)
    const others = [log(5, 0), log(5, 1), log(6, 0), { key: '5-0xbb-0', blockNumber: 5 }]
    expect(others.map((one) => ledger.admit(one, 0))).toEqual([true, true, true, true])
  })

  it('may come late and out of order', () => {
    const ledger = new Ledger(64)
    expect([9, 7, 8, 7].map((block) => ledger.admit(log(block), 0))).toEqual([true, true, true, false])
  })

  it('is remembered, and may still be news, down to 64 blocks behind the newest sealed one', () => {
    const ledger = new Ledger(64)
    ledger.admit(log(100), 0)
    ledger.settle(164)
    expect(ledger.admit(log(100), 0)).toBe(false)
    expect(ledger.admit(log(100, 1), 0)).toBe(true)
  })

  it('deeper than that is no news any more, told or not', () => {
    const ledger = new Ledger(64)
    ledger.admit(log(100), 0)
    ledger.settle(165)
    expect(ledger.admit(log(100), 0)).toBe(false)
    expect(ledger.admit(log(100, 1), 0)).toBe(false)
    expect(ledger.admit(log(101), 0)).toBe(true)
  })

  it('of long ago is news while nothing has been settled: that is how a restart catches up', () => {
    const ledger = new Ledger(64)
    ledger.admit(log(1_000_000), 0)
    expect(ledger.admit(log(1), 0)).toBe(true)
  })

  it('is not forgotten when a node that is behind says less', () => {
    const ledger = new Ledger(64)
    ledger.settle(1_000)
    ledger.settle(10)
    expect(ledger.admit(log(900), 0)).toBe(false)
  })
})

describe('the mark', () => {
  it('is where the oldest remembered block was first heard of', () => {
    const ledger = new Ledger(64)
    ledger.admit(log(100), 40)
    ledger.admit(log(101), 50)
    ledger.admit(log(100, 1), 60)
    expect(ledger.mark(101, 70)).toEqual({ block: 101, seq: 40 })
  })

  it('is the end where nothing is remembered', () => {
    expect(new Ledger(64).mark(7, 70)).toEqual({ block: 7, seq: 70 })
  })

  it('moves on as blocks are forgotten', () => {
    const ledger = new Ledger(64)
    ledger.admit(log(100), 40)
    ledger.admit(log(150), 50)
    ledger.settle(190)
    expect(ledger.mark(190, 70).seq).toBe(50)
    ledger.settle(300)
    expect(ledger.mark(300, 80).seq).toBe(80)
  })

  it('holds for what came out of order too', () => {
    const ledger = new Ledger(64)
    ledger.admit(log(101), 40)
    ledger.admit(log(100), 50)
    ledger.settle(165)
    expect(ledger.mark(165, 70).seq).toBe(40)
  })
})

it('a ledger over its bound forgets its oldest block, however many blocks it knows', () => {
  const blocks = 200_000
  const ledger = new Ledger(blocks)
  for (let block = 1; block <= blocks; block += 1) {
    for (let index = 0; index < 5; index += 1) ledger.admit({ key: `${block}-${index}`, blockNumber: block }, 0)
  }
  expect(ledger.admit({ key: 'one more', blockNumber: blocks }, 0)).toBe(true)
  expect(ledger.admit({ key: '1-0', blockNumber: 1 }, 0)).toBe(false)
  expect(ledger.admit({ key: '2-9', blockNumber: 2 }, 0)).toBe(true)
})
