import { describe, expect, it } from 'vitest'
import { HeadTracker } from '../../../../src/chain/sealed/heads.ts'
import { RecentBlocks } from '../../../../src/chain/sealed/recent-blocks.ts'
import { blockHash, header, word } from '../node-json.ts'
import { range, sealedHeader } from './sealed-blocks-fixture.ts'

const OTHER = word(77)

/** Heads beside what was settled: these blocks. */
const openHeads = (...settled: readonly number[]) => {
  const lately = new RecentBlocks()
  for (const number of settled)
    lately.add(number, { hash: blockHash(number), logCount: 0, addresses: [], settledAt: 0 })
  const heads = new HeadTracker(lately)
  const raise = (number: number, hash = blockHash(number)) =>
    heads.receiveHead(sealedHeader({ ...header(number), hash, number: `0x${number.toString(16)}` }))
  return { lately, heads, raise }
}

describe('the head to reach', () => {
  it('is the highest that was heard of', () => {
    const { heads, raise } = openHeads()
    expect(heads.target).toBeNull()
    for (const number of [5, 7, 6]) expect(raise(number)).toBe(true)
    expect(heads.target?.number).toBe(7)
  })

  it('is none that no chain could have reached since', () => {
    const { heads, raise } = openHeads()
    raise(7)
    expect(raise(8 + 100_000_000)).toBe(false)
    expect(heads.target?.number).toBe(7)
    expect(raise(7 + 100_000_000)).toBe(true)
  })

  it('after the chain went back is the one that was heard of last', () => {
    const { heads, raise } = openHeads(5)
    for (const number of [9, 6]) raise(number)
    raise(5, OTHER)
    heads.resetAfterReorg()
    expect(heads.disputed).toBeNull()
    expect(heads.target).toMatchObject({ number: 5, hash: OTHER })
  })

  it('is none where the chain went back before any was heard of', () => {
    const { heads } = openHeads(5)
    heads.compare(5, OTHER)
    heads.resetAfterReorg()
    expect(heads.target).toBeNull()
  })
})

describe('a block in dispute', () => {
  it('is the lowest that somebody names otherwise', () => {
    const { heads, raise } = openHeads(5, 6, 7)
    raise(7)
    heads.compare(6, blockHash(6))
    expect(heads.disputed).toBeNull()
    raise(7, OTHER)
    expect(heads.disputed).toBe(7)
    heads.compare(5, OTHER)
    heads.compare(6, OTHER)
    expect(heads.disputed).toBe(5)
  })

  it('is none that was never settled, or whose hash was never learnt', () => {
    const { heads, lately, raise } = openHeads(5)
    lately.add(6, { hash: null, logCount: null, addresses: [], settledAt: 0 })
    heads.compare(4, OTHER)
    heads.compare(6, OTHER)
    raise(7, OTHER)
    expect(heads.disputed).toBeNull()
  })

  it('is one that a node takes back, if it is ours', () => {
    const { heads } = openHeads(5, 6)
    heads.retract(6, OTHER)
    heads.retract(6, null)
    heads.retract(7, blockHash(7))
    expect(heads.disputed).toBeNull()
    heads.retract(6, blockHash(6))
    expect(heads.disputed).toBe(6)
  })
})

describe('an announced head', () => {
  it('waits until it is settled', () => {
    const { heads, raise } = openHeads(5)
    raise(6)
    expect(heads.announced(6)?.hash).toBe(blockHash(6))
    heads.forget(6)
    expect(heads.announced(6)).toBeUndefined()
  })

  it('is not kept where it is settled already', () => {
    const { heads, raise } = openHeads(5)
    raise(5)
    expect(heads.announced(5)).toBeUndefined()
  })

  it('is the one that was told last', () => {
    const { heads, raise } = openHeads(5)
    raise(6)
    raise(6, OTHER)
    expect(heads.announced(6)?.hash).toBe(OTHER)
  })

  it('is one of so many; the first are forgotten', () => {
    const { heads, raise } = openHeads()
    for (const number of range(1, 1_000)) raise(number)
    const kept = range(1, 1_000).filter((number) => heads.announced(number))
    expect(kept).toEqual(range(745, 1_000))
  })
})
