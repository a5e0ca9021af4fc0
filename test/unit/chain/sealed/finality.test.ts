import { VirtualTimeScheduler } from 'rxjs'
import { describe, expect, it, onTestFinished } from 'vitest'
import { BlockReader } from '../../../../src/chain/rpc/block-reader.ts'
import { UpstreamError } from '../../../../src/chain/rpc/error.ts'
import { type FinalityEvent, FinalityGate, pollFinality } from '../../../../src/chain/sealed/finality.ts'
import { FakeChain } from '../fake-chain.ts'
import { header } from '../node-json.ts'
import { range, sealedHeader } from './sealed-blocks-fixture.ts'

const EVERY_MS = 10_000

const openFinality = (
  published: { safe: number | null; finalized: number | null } = { safe: null, finalized: null },
) => {
  const clock = new VirtualTimeScheduler(undefined, 0)
  const chain = new FakeChain(10_000, clock)
  const told: FinalityEvent[] = []
  const said: string[] = []
  const node = new BlockReader(chain.request)
  const listening = pollFinality({
    node,
    pollIntervalMs: EVERY_MS,
    published,
    clock,
    warn: (kind) => said.push(kind),
  }).subscribe((one) => told.push(one))
  onTestFinished(() => listening.unsubscribe())
  return {
    chain,
    said,
    told: () => told.map(({ stage, block }) => `${stage} ${block.number}`),
    pass: (ms: number) => {
      clock.maxFrames += ms
      clock.flush()
      clock.frame = clock.maxFrames
    },
  }
}

it('both watermarks are told as they rise', () => {
  const { chain, told, pass } = openFinality()
  chain.safe = 9_000
  chain.finalized = 5_000
  pass(0)
  expect(told()).toEqual(['safe 9000', 'finalized 5000'])
  chain.safe = 9_500
  pass(EVERY_MS)
  expect(told()).toEqual(['safe 9000', 'finalized 5000', 'safe 9500'])
  pass(5 * EVERY_MS)
  expect(told()).toHaveLength(3)
})

it('a watermark that a former life told is not told again', () => {
  const { chain, told, pass } = openFinality({ safe: 9_000, finalized: null })
  chain.safe = 9_000
  chain.finalized = 0
  pass(0)
  expect(told()).toEqual(['finalized 0'])
})

it('a watermark that goes back is told by a node that is behind: it stays', () => {
  const { chain, told, pass } = openFinality()
  chain.safe = 9_000
  pass(0)
  chain.safe = 8_000
  pass(EVERY_MS)
  chain.safe = 9_001
  pass(EVERY_MS)
  expect(told()).toEqual(['safe 9000', 'safe 9001'])
})

it('a node that knows no such block tells nothing, and is asked again', () => {
  const { chain, told, said, pass } = openFinality()
  chain.finalized = 5_000
  chain.override = ({ params }) => {
    if (params[0] === 'safe') throw new UpstreamError('invalid', 'unknown block tag')
    return undefined
  }
  pass(EVERY_MS)
  expect(told()).toEqual(['finalized 5000'])
  expect(said).toEqual(['no safe block', 'no safe block'])
  chain.override = () => undefined
  chain.safe = 9_000
  pass(EVERY_MS)
  expect(told()).toEqual(['finalized 5000', 'safe 9000'])
})

it('an answer that is late is waited for, and only one', () => {
  const { chain, told, pass } = openFinality()
  chain.safe = 9_000
  chain.delayMs = 25_000
  pass(60_000)
  expect(told()).toEqual(['safe 9000'])
  expect(chain.maxInFlight).toBe(1)
})

describe('a watermark', () => {
  const mark = (stage: FinalityEvent['stage'], block: number): FinalityEvent => ({
    type: 'finality',
    stage,
    block: sealedHeader(header(block)),
  })
  const ours = () => true
  const told = (marks: readonly FinalityEvent[]) => marks.map(({ stage, block }) => `${stage} ${block.number}`)

  it('waits until all below it is settled', () => {
    const tide = new FinalityGate()
    tide.add(mark('safe', 100))
    expect(told(tide.release(99, ours))).toEqual([])
    expect(told(tide.release(100, ours))).toEqual(['safe 100'])
    expect(told(tide.release(101, ours))).toEqual([])
  })

  it('is told for each stage, the newest that is reached', () => {
    const tide = new FinalityGate()
    for (const block of [100, 110, 130]) tide.add(mark('safe', block))
    tide.add(mark('finalized', 90))
    expect(told(tide.release(120, ours))).toEqual(['safe 110', 'finalized 90'])
    expect(told(tide.release(130, ours))).toEqual(['safe 130'])
  })

  it('of another chain than ours waits until ours is that one', () => {
    const tide = new FinalityGate()
    for (const block of [100, 110]) tide.add(mark('safe', block))
    expect(told(tide.release(120, ({ number }) => number < 110))).toEqual(['safe 100'])
    expect(told(tide.release(120, ours))).toEqual(['safe 110'])
  })

  it('that waits is one of so many; the older ones are passed over', () => {
    const tide = new FinalityGate()
    for (const block of range(1, 100)) tide.add(mark('safe', block))
    expect(told(tide.release(36, ours))).toEqual([])
    expect(told(tide.release(37, ours))).toEqual(['safe 37'])
    expect(told(tide.release(1_000, ours))).toEqual(['safe 100'])
  })
})
