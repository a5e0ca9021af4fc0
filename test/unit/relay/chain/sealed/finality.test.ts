import { VirtualTimeScheduler } from 'rxjs'
import { describe, expect, it, onTestFinished } from 'vitest'
import { ChainReader } from '../../../../../src/relay/chain/rpc/chain-reader.ts'
import { UpstreamError } from '../../../../../src/relay/chain/rpc/upstream-error.ts'
import { type FinalityEvent, FinalityGate, pollFinality } from '../../../../../src/relay/chain/sealed/finality.ts'
import { advanceClock } from '../../../../support/virtual-time.ts'
import { FakeChain } from '../fake-chain.ts'
import { header } from '../node-json.ts'
import { range, sealedHeader } from './sealed-chain-fixture.ts'

const EVERY_MS = 10_000

const openFinality = (published: { safe: number | null; finalized: number | null } = { safe: null, finalized: null }) => {
  const clock = new VirtualTimeScheduler(undefined, 0)
  const chain = new FakeChain(10_000, clock)
  const events: FinalityEvent[] = []
  const warnings: string[] = []
  const node = new ChainReader(chain.request)
  const subscription = pollFinality({
    node,
    pollIntervalMs: EVERY_MS,
    published,
    clock,
    warn: (kind) => warnings.push(kind),
  }).subscribe((event) => events.push(event))
  onTestFinished(() => subscription.unsubscribe())
  return {
    chain,
    warnings,
    emitted: () => events.map(({ stage, block }) => `${stage} ${block.number}`),
    advance: (ms: number) => advanceClock(clock, ms),
  }
}

it('finality polling emits both stages as they rise', async () => {
  const { chain, emitted, advance } = openFinality()
  chain.safe = 9_000
  chain.finalized = 5_000
  await advance(0)
  expect(emitted()).toEqual(['safe 9000', 'finalized 5000'])
  chain.safe = 9_500
  await advance(EVERY_MS)
  expect(emitted()).toEqual(['safe 9000', 'finalized 5000', 'safe 9500'])
  await advance(5 * EVERY_MS)
  expect(emitted()).toHaveLength(3)
})

it('finality polling does not repeat a stage of the previous run', async () => {
  const { chain, emitted, advance } = openFinality({ safe: 9_000, finalized: null })
  chain.safe = 9_000
  chain.finalized = 0
  await advance(0)
  expect(emitted()).toEqual(['finalized 0'])
})

it('finality polling ignores the lower block of a lagging node', async () => {
  const { chain, emitted, advance } = openFinality()
  chain.safe = 9_000
  await advance(0)
  chain.safe = 8_000
  await advance(EVERY_MS)
  chain.safe = 9_001
  await advance(EVERY_MS)
  expect(emitted()).toEqual(['safe 9000', 'safe 9001'])
})

it('finality polling retries a node without the tag, and emits nothing for it', async () => {
  const { chain, emitted, warnings, advance } = openFinality()
  chain.finalized = 5_000
  chain.override = ({ params }) => {
    if (params[0] === 'safe') throw new UpstreamError('invalid', 'unknown block tag')
    return undefined
  }
  await advance(EVERY_MS)
  expect(emitted()).toEqual(['finalized 5000'])
  expect(warnings).toEqual(['no safe block', 'no safe block'])
  chain.override = () => undefined
  chain.safe = 9_000
  await advance(EVERY_MS)
  expect(emitted()).toEqual(['finalized 5000', 'safe 9000'])
})

it('finality polling waits for a late answer, one at a time', async () => {
  const { chain, emitted, advance } = openFinality()
  chain.safe = 9_000
  chain.delayMs = 25_000
  await advance(60_000)
  expect(emitted()).toEqual(['safe 9000'])
  expect(chain.maxInFlight).toBe(1)
})

describe('the finality gate', () => {
  const mark = (stage: FinalityEvent['stage'], block: number): FinalityEvent => ({
    type: 'finality',
    stage,
    block: sealedHeader(header(block)),
  })
  const ours = () => true
  const emitted = (events: readonly FinalityEvent[]) => events.map(({ stage, block }) => `${stage} ${block.number}`)

  it('holds an event back until all blocks below it are settled', () => {
    const gate = new FinalityGate()
    gate.add(mark('safe', 100))
    expect(emitted(gate.release(99, ours))).toEqual([])
    expect(emitted(gate.release(100, ours))).toEqual(['safe 100'])
    expect(emitted(gate.release(101, ours))).toEqual([])
  })

  it('releases the newest reached event of each stage', () => {
    const gate = new FinalityGate()
    for (const block of [100, 110, 130]) gate.add(mark('safe', block))
    gate.add(mark('finalized', 90))
    expect(emitted(gate.release(120, ours))).toEqual(['safe 110', 'finalized 90'])
    expect(emitted(gate.release(130, ours))).toEqual(['safe 130'])
  })

  it('holds back a block of another branch until it is ours', () => {
    const gate = new FinalityGate()
    for (const block of [100, 110]) gate.add(mark('safe', block))
    expect(emitted(gate.release(120, ({ number }) => number < 110))).toEqual(['safe 100'])
    expect(emitted(gate.release(120, ours))).toEqual(['safe 110'])
  })

  it('keeps a bounded number of events, and drops the oldest', () => {
    const gate = new FinalityGate()
    for (const block of range(1, 100)) gate.add(mark('safe', block))
    expect(emitted(gate.release(36, ours))).toEqual([])
    expect(emitted(gate.release(37, ours))).toEqual(['safe 37'])
    expect(emitted(gate.release(1_000, ours))).toEqual(['safe 100'])
  })
})
