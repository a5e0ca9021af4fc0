import type { SchedulerLike } from 'rxjs'
import { describe, expect, it } from 'vitest'
import { IN_FLIGHT_BOUND } from '../../../../../src/relay/chain/rpc/limited-requests.ts'
import { UpstreamError } from '../../../../../src/relay/chain/rpc/upstream-error.ts'
import { waitOn } from '../../../../support/virtual-time.ts'
import { behindError, type FakeChain } from '../fake-chain.ts'
import { keyOf, sealedLog, word } from '../node-json.ts'
import { HEAD, liveSignal, MINUTE_MS, openSource, POLL_MS, SILENCE_MS } from './source-fixture.ts'

const BLOCK_MS = 2_000
const REQUEST_TIMEOUT_MS = 5_000

/** A source without a link. */
const openPolled = (settings: Parameters<typeof openSource>[0] = {}) => openSource({ hasLink: false, ...settings })

describe('a failing upstream', () => {
  it('is down after too long a silence, and back with its first answer', async () => {
    const { chain, advance, statuses, warnings, pendingLogs } = openPolled()
    await advance(0)
    chain.failure = new UpstreamError('unreachable', 'HTTP 503')
    const log = chain.addLog(HEAD + 1)
    await advance(SILENCE_MS)
    expect(statuses()).toEqual(['poll ok'])
    await advance(500)
    expect(statuses()).toEqual(['poll ok', 'down unreachable'])
    expect(warnings).toContain('polling failed')
    chain.failure = null
    await advance(POLL_MS)
    expect(statuses()).toEqual(['poll ok', 'down unreachable', 'poll ok'])
    expect(pendingLogs()).toEqual([`${keyOf(log)} poll`])
  })

  it('is down if it fails from the start', async () => {
    const { chain, advance, statuses } = openPolled()
    chain.failure = new UpstreamError('unreachable', 'ECONNREFUSED')
    await advance(SILENCE_MS + 500)
    expect(statuses()).toEqual(['down unreachable'])
  })

  it('is down if it never answers', async () => {
    const { chain, advance, statuses } = openPolled()
    await advance(0)
    chain.delayMs = 1e9
    await advance(2 * SILENCE_MS)
    expect(statuses()).toEqual(['poll ok', 'down unreachable'])
  })

  it('has the blocks of the outage backfilled', async () => {
    const { chain, advance, sealedBlocks } = openPolled()
    await advance(0)
    chain.failure = new UpstreamError('unreachable', 'HTTP 503')
    await advance(10_000)
    chain.head += 5
    chain.failure = null
    await advance(POLL_MS)
    expect(sealedBlocks().map(({ number, via }) => [number, via])).toEqual(
      [1, 2, 3, 4, 5].map((ahead) => [HEAD + ahead, 'backfill']),
    )
  })

  it('is not down while a long backfill gets answers', async () => {
    const { chain, advance, statuses } = openPolled({ cursor: { number: HEAD, hash: null } })
    chain.head = HEAD + 60_000
    chain.delayMs = 200
    await advance(20_000)
    expect(statuses()).toEqual(['poll ok'])
  })

  it('is asked for a bounded number of blocks at once after an outage, and polled beside them', async () => {
    const { chain, openKeys, advance, sealedBlocks } = openPolled({ cursor: { number: HEAD - 400, hash: null } })
    for (let block = HEAD - 399; block <= HEAD; block += 1) openKeys.add(chain.addLog(block))
    chain.delayMs = 50
    await advance(10_000)
    expect(sealedBlocks()).toHaveLength(400)
    expect(chain.maxInFlight).toBe(IN_FLIGHT_BOUND + 1)
    const polls = chain.requestedHeaders().filter((block) => block === 'pending')
    expect(polls.length).toBeGreaterThan(40)
  })

  it('with an old head is stale until the head moves on', async () => {
    const { advance, statuses, seal } = openPolled()
    await advance(30_000)
    expect(statuses()).toEqual(['poll ok'])
    await advance(500)
    expect(statuses()).toEqual(['poll ok', 'poll stale_head'])
    await seal(0, { pushed: false })
    expect(statuses()).toEqual(['poll ok', 'poll stale_head', 'poll ok'])
  })

  it('with an impossible head is not believed', async () => {
    const { chain, advance, statuses, seal, sealedBlocks } = openPolled()
    await advance(0)
    chain.override = ({ params }) =>
      params[0] === 'latest' ? { ...chain.headerOf(HEAD), hash: word(5), number: '0x5' } : undefined
    await advance(2_000)
    chain.override = () => undefined
    await seal(1, { announced: false, pushed: false })
    await advance(2_000)
    expect(sealedBlocks().map(({ number }) => number)).toEqual([HEAD + 1])
    expect(statuses()).toEqual(['poll ok'])
  })
})

/** The ways in which `eth_getLogs` fails while headers are answered. */
const failures: readonly (readonly [string, (chain: FakeChain, clock: SchedulerLike) => unknown])[] = [
  ['is rate-limited', () => throwError(new UpstreamError('busy', 'HTTP 429'))],
  ['is refused with -32000', () => throwError(new UpstreamError('unknown', '-32000 internal error'))],
  ['is forbidden', () => throwError(new UpstreamError('forbidden', 'HTTP 403'))],
  [
    'hangs',
    async (_, clock) => {
      await waitOn(clock, REQUEST_TIMEOUT_MS)
      throw new UpstreamError('unreachable', 'The operation was aborted due to timeout')
    },
  ],
  ['is answered for another block', () => [sealedLog({ block: HEAD - 500 })]],
]
const throwError = (error: UpstreamError): never => {
  throw error
}

describe.each(failures)('an upstream whose eth_getLogs %s while headers are answered', (_, answer) => {
  it.each([
    ['pushed', true, 'pendingLogs'],
    ['polled', false, 'poll'],
  ])('is behind once settling lags by three blocks for SILENCE_MS, with %s logs', async (_name, hasLink, name) => {
    const { chain, clock, advance, emit, head, statuses, seal } = openSource({ hasLink })
    await emit({ type: 'heads_live' }, liveSignal(), head())
    const sealEvery = async (ms: number) => {
      await seal(1, { announced: hasLink, pushed: hasLink })
      await advance(ms - 200)
    }
    for (let block = 0; block < 3; block += 1) await sealEvery(BLOCK_MS)
    chain.override = ({ method }) => (method === 'eth_getLogs' ? answer(chain, clock) : undefined)
    const failedAt = clock.now()
    while (statuses().length === 1 && clock.now() - failedAt < MINUTE_MS) await sealEvery(BLOCK_MS)
    expect(clock.now() - failedAt).toBeLessThanOrEqual(3 * BLOCK_MS + SILENCE_MS + BLOCK_MS)
    for (let block = 0; block < 10; block += 1) await sealEvery(BLOCK_MS)
    expect(statuses()).toEqual([`${name} ok`, `${name} behind`])
    chain.override = () => undefined
    for (let block = 0; block < 5; block += 1) await sealEvery(BLOCK_MS)
    expect(statuses()).toEqual([`${name} ok`, `${name} behind`, `${name} ok`])
  })
})

describe('a healthy upstream', () => {
  it.each([
    ['slow to answer', 2_000, 600, 0],
    ['slow to index by two blocks', 2_000, 0, 4_000],
    ['of slow blocks, and slow to index', 12_000, 0, 20_000],
  ])('that is %s is never behind', async (_, blockMs, delayMs, indexMs) => {
    const { chain, clock, advance, statuses, seal } = openSource({ hasLink: false })
    await advance(0)
    chain.delayMs = delayMs
    const sealedAt = new Map<string, number>()
    chain.override = ({ method, params }) => {
      const { blockHash } = (params[0] ?? {}) as { blockHash?: string }
      if (method !== 'eth_getLogs' || blockHash === undefined) return undefined
      return clock.now() - (sealedAt.get(blockHash) ?? 0) < indexMs ? throwError(behindError()) : undefined
    }
    for (let block = 0; block < 20; block += 1) {
      sealedAt.set(chain.hashOf(chain.head + 1), clock.now())
      await seal(1, { announced: false, pushed: false })
      await advance(blockMs - 200)
    }
    expect(new Set(statuses())).toEqual(new Set(['poll ok']))
  })
})
