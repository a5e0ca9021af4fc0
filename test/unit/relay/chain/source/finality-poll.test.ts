import { VirtualTimeScheduler } from 'rxjs'
import { expect, it, onTestFinished } from 'vitest'
import { ChainReader } from '../../../../../src/relay/chain/rpc/chain-reader.ts'
import { UpstreamError } from '../../../../../src/relay/chain/rpc/upstream-error.ts'
import type { FinalityEvent } from '../../../../../src/relay/chain/sealed/settlement-types.ts'
import { pollFinality } from '../../../../../src/relay/chain/source/finality-poll.ts'
import { advanceClock } from '../../../../support/virtual-time.ts'
import { FakeChain } from '../fake-chain.ts'

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
    log: (kind) => warnings.push(kind),
  }).subscribe((event) => events.push(event))
  onTestFinished(() => subscription.unsubscribe())
  return {
    chain,
    warnings,
    emitted: () => events.map(({ stage, block }) => `${stage} ${block.number}`),
    advance: (ms: number) => advanceClock(clock, ms),
  }
}

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
