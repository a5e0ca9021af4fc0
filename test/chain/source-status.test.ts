import { BehaviorSubject, VirtualTimeScheduler } from 'rxjs'
import { expect, it } from 'vitest'
import { type Heard, source } from '../../src/chain/source.ts'
import { FakeChain } from './chain.ts'
import { apple } from './wire.ts'

const open = (wrap: (chain: FakeChain) => FakeChain['ask'], cursor: number | null = null) => {
  const clock = new VirtualTimeScheduler(undefined, 0)
  const chain = new FakeChain(1_000, clock)
  const heard: Heard[] = []
  source({
    ask: wrap(chain),
    link: null,
    addresses: new BehaviorSubject([apple]),
    cursor,
    pendingPollMs: 200,
    silenceMs: 3_000,
    backfillBoundMs: 1e12,
    clock,
    say: () => {},
  }).subscribe((one) => heard.push(one))
  const pass = (ms: number) => {
    clock.maxFrames += ms
    clock.flush()
    clock.frame = clock.maxFrames
  }
  const statuses = () => heard.flatMap((one) => (one.type === 'status' ? [`${one.source} ${one.reason}`] : []))
  return { chain, pass, statuses }
}

it('a block that is sealed between two questions of one poll is no change of source', () => {
  const { pass, statuses, chain } = open((chain) => (method, params) => {
    // sealed after `pending` was read and before `latest` is
    if (params[0] === 'latest') chain.head += 1
    return chain.ask(method, params)
  })
  for (let polls = 0; polls < 20; polls += 1) {
    chain.put(chain.head + 1)
    pass(200)
  }
  expect(statuses()).toEqual(['poll ok'])
})

it('a long backfill on a node that answers is not called down', () => {
  const { chain, pass, statuses } = open((chain) => chain.ask, 1_000)
  chain.head = 61_000
  chain.delayMs = 200 // thirty pages of 200 ms each
  pass(10_000)
  expect(statuses()).not.toContain('down unreachable')
})
