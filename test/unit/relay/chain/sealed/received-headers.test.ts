import { describe, expect, it } from 'vitest'
import type { Hex } from '../../../../../src/lib/hex.ts'
import { ReceivedHeaders } from '../../../../../src/relay/chain/sealed/received-headers.ts'
import { RecentBlocks } from '../../../../../src/relay/chain/blocks/sealed-block.ts'
import { blockHash, header, word } from '../node-json.ts'
import { range, sealedHeader } from './sealed-chain-fixture.ts'

const OTHER = word(77)

/** A tracker beside these settled blocks. */
const openHeads = (...settled: readonly number[]) => {
  const recentBlocks = new RecentBlocks()
  for (const number of settled) recentBlocks.add(number, { hash: blockHash(number), logCount: 0, addresses: [], settledAt: 0 })
  const heads = new ReceivedHeaders(recentBlocks, null)
  const headerOf = (number: number, hash = blockHash(number)) =>
    sealedHeader({ ...header(number), hash, number: `0x${number.toString(16)}` })
  const receive = (number: number, hash?: Hex) => heads.receiveHead(headerOf(number, hash))
  const receivePushed = (number: number, hash?: Hex) => heads.receiveHead(headerOf(number, hash), true)
  return { recentBlocks, heads, receive, receivePushed }
}

describe('the target head', () => {
  it('is the highest received one, but never one implausibly far ahead', () => {
    const { heads, receive } = openHeads()
    expect(heads.target).toBeNull()
    for (const number of [5, 7, 6]) expect(receive(number)).toBe('taken')
    expect(receive(8 + 100_000_000)).toBe('garbage')
    expect(heads.target?.number).toBe(7)
    expect(receive(7 + 100_000_000)).toBe('taken')
  })

  it('is no pushed one far above the blocks that are settled and the head that was asked for', () => {
    const { heads, receive, receivePushed } = openHeads(5)
    expect(receivePushed(70)).toBe('unconfirmed')
    expect(heads.target).toBeNull()
    expect(receivePushed(69)).toBe('taken')
    receive(100)
    expect(receivePushed(164)).toBe('taken')
    expect(receivePushed(165)).toBe('unconfirmed')
    expect(heads.target?.number).toBe(164)
  })

  it('is the last received one after a reorganisation, or none', () => {
    const { heads, receive } = openHeads(5)
    heads.compare(5, OTHER)
    heads.rolledBackTo(4)
    expect(heads.target).toBeNull()
    for (const number of [9, 6]) receive(number)
    receive(5, OTHER)
    heads.rolledBackTo(4)
    expect(heads.disputed).toBeNull()
    expect(heads.target).toMatchObject({ number: 5, hash: OTHER })
  })
})

describe('a disputed block', () => {
  it('is the lowest with another hash than ours', () => {
    const { heads, receive } = openHeads(5, 6, 7)
    receive(7)
    heads.compare(6, blockHash(6))
    expect(heads.disputed).toBeNull()
    receive(7, OTHER)
    expect(heads.disputed).toBe(7)
    heads.compare(5, OTHER)
    heads.compare(6, OTHER)
    expect(heads.disputed).toBe(5)
    // The header that raised the dispute is not taken for that of the chain.
    heads.resolveDispute(7)
    expect(heads.announced(7)).toBeUndefined()
  })

  it('must be settled, with a known hash', () => {
    const { heads, recentBlocks, receive } = openHeads(5)
    recentBlocks.add(6, { hash: null, logCount: null, addresses: [], settledAt: 0 })
    heads.compare(4, OTHER)
    heads.compare(6, OTHER)
    receive(7, OTHER)
    expect(heads.disputed).toBeNull()
  })

  it('stays while another one is resolved, if it is as low', () => {
    const { heads } = openHeads(5, 6, 7)
    heads.compare(7, OTHER)
    heads.compare(5, OTHER)
    heads.resolveDispute(7)
    heads.rolledBackTo(5)
    expect(heads.disputed).toBe(5)
    heads.resolveDispute(5)
    expect(heads.disputed).toBeNull()
  })

  it('may be one that a node withdraws, if it is ours', () => {
    const { heads } = openHeads(5, 6)
    for (const [number, hash] of [
      [6, OTHER],
      [6, null],
      [7, blockHash(7)],
    ] as const)
      heads.retract(number, hash)
    expect(heads.disputed).toBeNull()
    heads.retract(6, blockHash(6))
    expect(heads.disputed).toBe(6)
  })
})

describe('an announced head', () => {
  it('is kept until its block is settled, the newest of each number', () => {
    const { heads, receive } = openHeads(5)
    for (const number of [5, 6]) receive(number)
    expect(heads.announced(5)).toBeUndefined()
    expect(heads.announced(6)).toMatchObject({ header: { hash: blockHash(6) }, isPushed: false })
    receive(6, OTHER)
    expect(heads.announced(6)?.header.hash).toBe(OTHER)
    heads.forget(6)
    expect(heads.announced(6)).toBeUndefined()
  })

  it('is confirmed once it was asked for too', () => {
    const { heads, receive, receivePushed } = openHeads(5)
    receivePushed(6)
    expect(heads.announced(6)?.isPushed).toBe(true)
    receive(6)
    receivePushed(6)
    expect(heads.announced(6)?.isPushed).toBe(false)
    receivePushed(6, OTHER)
    expect(heads.announced(6)?.isPushed).toBe(true)
  })

  it('is dropped as the oldest beyond the bound', () => {
    const { heads, receive } = openHeads()
    for (const number of range(1, 300)) receive(number)
    expect(range(1, 300).filter((number) => heads.announced(number))).toEqual(range(45, 300))
  })
})
