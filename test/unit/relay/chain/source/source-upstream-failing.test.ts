import { describe, expect, it } from 'vitest'
import { IN_FLIGHT_BOUND } from '../../../../../src/relay/chain/rpc/limited-requests.ts'
import { UpstreamError } from '../../../../../src/relay/chain/rpc/upstream-error.ts'
import { waitOn } from '../../../../support/virtual-time.ts'
import { keyOf } from '../node-json.ts'
import { HEAD, liveSignal, MINUTE_MS, openSource, POLL_MS, SILENCE_MS } from './source-fixture.ts'

const BLOCK_MS = 2_000

/** A source without a link. */
const openPolled = (settings: Parameters<typeof openSource>[0] = {}) => openSource({ hasLink: false, ...settings })

describe('a failing upstream', () => {
  it('is down after too long a silence, back with its first answer, and the blocks of the outage are backfilled', async () => {
    const { chain, advance, statuses, warnings, pendingLogs, sealedBlocks } = openPolled()
    await advance(0)
    chain.failure = new UpstreamError('unreachable', 'HTTP 503')
    chain.head += 2
    const log = chain.addLog(HEAD + 3)
    await advance(SILENCE_MS)
    expect(statuses()).toEqual(['poll ok'])
    await advance(500)
    expect(statuses()).toEqual(['poll ok', 'down unreachable'])
    expect(warnings).toContain('poll_failed')
    chain.failure = null
    await advance(POLL_MS)
    expect(statuses()).toEqual(['poll ok', 'down unreachable', 'poll ok'])
    expect(pendingLogs()).toEqual([`${keyOf(log)} poll`])
    expect(sealedBlocks().map(({ number, via }) => [number, via])).toEqual([
      [HEAD + 1, 'backfill'],
      [HEAD + 2, 'backfill'],
    ])
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

  it.each([
    ['pushed logs, while eth_getLogs is forbidden', true, 'pendingLogs', 0],
    ['polled logs, while eth_getLogs hangs', false, 'poll', 5_000],
  ])('is behind once settling lags by three blocks for SILENCE_MS, with %s', async (_, hasLink, name, afterMs) => {
    const { chain, clock, advance, emit, head, statuses, seal, leaveTimes } = openSource({ hasLink })
    await emit({ type: 'heads_live' }, liveSignal(), head())
    const sealBlocks = async (count: number) => {
      for (let block = 0; block < count; block += 1) {
        await seal(1, { announced: hasLink, pushed: hasLink })
        await advance(BLOCK_MS - 200)
      }
    }
    await sealBlocks(3)
    const refuse = async () => {
      await waitOn(clock, afterMs)
      throw afterMs > 0 ? new UpstreamError('unreachable', 'timeout') : new UpstreamError('forbidden', 'HTTP 403')
    }
    chain.override = ({ method }) => (method === 'eth_getLogs' ? refuse() : undefined)
    const failedAt = clock.now()
    while (statuses().length === 1 && clock.now() - failedAt < MINUTE_MS) await sealBlocks(1)
    expect(clock.now() - failedAt).toBeLessThanOrEqual(3 * BLOCK_MS + SILENCE_MS + BLOCK_MS)
    await sealBlocks(10)
    expect(statuses()).toEqual([`${name} ok`, `${name} behind`])
    expect(leaveTimes).toHaveLength(1)
    chain.override = () => undefined
    await sealBlocks(5)
    expect(statuses()).toEqual([`${name} ok`, `${name} behind`, `${name} ok`])
  })
})
