import { describe, expect, it } from 'vitest'
import { UpstreamError } from '../../../../src/chain/rpc/error.ts'
import { keyOf, word } from '../node-json.ts'
import { HEAD, openSource, POLL_MS, SILENCE_MS } from './source-fixture.ts'

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

  it('with an old head is stale until the head moves on', async () => {
    const { advance, statuses, seal } = openPolled()
    await advance(30_000)
    expect(statuses()).toEqual(['poll ok'])
    await advance(500)
    expect(statuses()).toEqual(['poll ok', 'poll stale_head'])
    await seal(0, { pushed: false })
    expect(statuses()).toEqual(['poll ok', 'poll stale_head', 'poll ok'])
  })

  it('that returns headers and no logs is behind, until settling has caught up', async () => {
    const { chain, advance, statuses, seal } = openPolled()
    chain.pending = 'numberless'
    await advance(0)
    chain.override = ({ params }) => {
      if (JSON.stringify(params).includes('blockHash')) throw new UpstreamError('busy', 'over rate limit')
      return undefined
    }
    for (let block = 0; block < 70; block += 1) await seal(0, { pushed: false })
    expect(statuses()).toEqual(['poll ok', 'poll behind'])
    chain.override = () => undefined
    await advance(5_000)
    expect(statuses()).toEqual(['poll ok', 'poll behind', 'poll ok'])
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
