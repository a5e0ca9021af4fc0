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
  chain.finalized = 0
  await advance(0)
  expect(emitted()).toEqual(['safe 9000', 'finalized 0'])
  chain.safe = 9_500
  await advance(6 * EVERY_MS)
  expect(emitted()).toEqual(['safe 9000', 'finalized 0', 'safe 9500'])
})

it.each([
  ['does not repeat a stage of the previous run', 9_000, [9_000, 9_000], []],
  ['ignores the lower block of a lagging node', null, [9_000, 8_000, 9_001], ['safe 9000', 'safe 9001']],
])('finality polling %s', async (_, published, shown, expected) => {
  const { chain, emitted, advance } = openFinality({ safe: published, finalized: null })
  for (const safe of shown) {
    chain.safe = safe
    await advance(EVERY_MS)
  }
  expect(emitted()).toEqual(expected)
})

it('finality polling retries a node without the tag, and emits nothing for it', async () => {
  const { chain, emitted, warnings, advance } = openFinality()
  chain.finalized = 5_000
  chain.override = ({ params }) => (params[0] === 'safe' ? Promise.reject(new UpstreamError('invalid', 'no tag')) : undefined)
  await advance(EVERY_MS)
  expect(emitted()).toEqual(['finalized 5000'])
  expect(warnings).toEqual(['no_finality', 'no_finality'])
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
  const ours = () => true
  const openGate = (...marks: readonly (readonly [stage: FinalityEvent['stage'], block: number])[]) => {
    const gate = new FinalityGate()
    for (const [stage, block] of marks) gate.add({ type: 'finality', stage, block: sealedHeader(header(block)) })
    return (settled: number, isOurs: Parameters<FinalityGate['release']>[1] = ours) =>
      gate.release(settled, isOurs).map(({ stage, block }) => `${stage} ${block.number}`)
  }

  it('holds an event back until all blocks below it are settled', () => {
    const release = openGate(['safe', 100])
    expect([release(99), release(100), release(101)]).toEqual([[], ['safe 100'], []])
  })

  it('releases the newest reached event of each stage', () => {
    const release = openGate(['safe', 100], ['safe', 110], ['safe', 130], ['finalized', 90])
    expect([release(120), release(130)]).toEqual([['safe 110', 'finalized 90'], ['safe 130']])
  })

  it('holds back a block of another branch until it is ours', () => {
    const release = openGate(['safe', 100], ['safe', 110])
    expect([release(120, ({ number }) => number < 110), release(120)]).toEqual([['safe 100'], ['safe 110']])
  })

  it('keeps a bounded number of events, and drops the oldest', () => {
    const release = openGate(...range(1, 100).map((block) => ['safe', block] as const))
    expect([release(36), release(37), release(1_000)]).toEqual([[], ['safe 37'], ['safe 100']])
  })
})
