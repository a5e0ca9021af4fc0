import { describe, expect, it } from 'vitest'
import { Heads } from '../../../../src/chain/sealed/heads.ts'
import { Lately } from '../../../../src/chain/sealed/recent-blocks.ts'
import { blockHash, header, word } from '../node-json.ts'
import { range, sealedHeader } from './sealed-blocks-fixture.ts'

const OTHER = word(77)

/** Heads beside what was settled: these blocks. */
const open = (...settled: readonly number[]) => {
  const lately = new Lately()
  for (const number of settled) lately.add(number, { hash: blockHash(number), logs: 0, asked: [], at: 0 })
  const heads = new Heads(lately)
  const raise = (number: number, hash = blockHash(number)) =>
    heads.raise(sealedHeader({ ...header(number), hash, number: `0x${number.toString(16)}` }))
  return { lately, heads, raise }
}

describe('the head to reach', () => {
  it('is the highest that was heard of', () => {
    const { heads, raise } = open()
    expect(heads.target).toBeNull()
    for (const number of [5, 7, 6]) expect(raise(number)).toBe(true)
    expect(heads.target?.number).toBe(7)
  })

  it('is none that no chain could have reached since', () => {
    const { heads, raise } = open()
    raise(7)
    expect(raise(8 + 100_000_000)).toBe(false)
    expect(heads.target?.number).toBe(7)
    expect(raise(7 + 100_000_000)).toBe(true)
  })

  it('after the chain went back is the one that was heard of last', () => {
    const { heads, raise } = open(5)
    for (const number of [9, 6]) raise(number)
    raise(5, OTHER)
    heads.wentBack()
    expect(heads.disputed).toBeNull()
    expect(heads.target).toMatchObject({ number: 5, hash: OTHER })
  })

  it('is none where the chain went back before any was heard of', () => {
    const { heads } = open(5)
    heads.hold(5, OTHER)
    heads.wentBack()
    expect(heads.target).toBeNull()
  })
})

describe('a block in dispute', () => {
  it('is the lowest that somebody names otherwise', () => {
    const { heads, raise } = open(5, 6, 7)
    raise(7)
    heads.hold(6, blockHash(6))
    expect(heads.disputed).toBeNull()
    raise(7, OTHER)
    expect(heads.disputed).toBe(7)
    heads.hold(5, OTHER)
    heads.hold(6, OTHER)
    expect(heads.disputed).toBe(5)
  })

  it('is none that was never settled, or whose hash was never learnt', () => {
    const { heads, lately, raise } = open(5)
    lately.add(6, { hash: null, logs: null, asked: [], at: 0 })
    heads.hold(4, OTHER)
    heads.hold(6, OTHER)
    raise(7, OTHER)
    expect(heads.disputed).toBeNull()
  })

  it('is one that a node takes back, if it is ours', () => {
    const { heads } = open(5, 6)
    heads.takenBack(6, OTHER)
    heads.takenBack(6, null)
    heads.takenBack(7, blockHash(7))
    expect(heads.disputed).toBeNull()
    heads.takenBack(6, blockHash(6))
    expect(heads.disputed).toBe(6)
  })
})

describe('an announced head', () => {
  it('waits until it is settled', () => {
    const { heads, raise } = open(5)
    raise(6)
    expect(heads.announced(6)?.hash).toBe(blockHash(6))
    heads.forget(6)
    expect(heads.announced(6)).toBeUndefined()
  })

  it('is not kept where it is settled already', () => {
    const { heads, raise } = open(5)
    raise(5)
    expect(heads.announced(5)).toBeUndefined()
  })

  it('is the one that was told last', () => {
    const { heads, raise } = open(5)
    raise(6)
    raise(6, OTHER)
    expect(heads.announced(6)?.hash).toBe(OTHER)
  })

  it('is one of so many; the first are forgotten', () => {
    const { heads, raise } = open()
    for (const number of range(1, 1_000)) raise(number)
    const kept = range(1, 1_000).filter((number) => heads.announced(number))
    expect(kept).toEqual(range(745, 1_000))
  })
})
