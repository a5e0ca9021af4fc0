import { describe, expect, it } from 'vitest'
import { UpstreamError } from '../../../../src/chain/rpc/error.ts'
import { keyOf, word } from '../node-json.ts'
import { feed, HEAD, POLL_MS, SILENCE_MS } from './source-fixture.ts'

/** One without a link. */
const polled = (given: Parameters<typeof feed>[0] = {}) => feed({ linked: false, ...given })

describe('an upstream that fails', () => {
  it('is down once it was silent for too long, not before, and is back with its first answer', () => {
    const { chain, pass, statuses, said, told } = polled()
    pass(0)
    chain.trouble = new UpstreamError('unreachable', 'HTTP 503')
    const log = chain.put(HEAD + 1)
    pass(SILENCE_MS)
    expect(statuses()).toEqual(['poll ok'])
    pass(500)
    expect(statuses()).toEqual(['poll ok', 'down unreachable'])
    expect(said).toContain('polling failed')
    chain.trouble = null
    pass(POLL_MS)
    expect(statuses()).toEqual(['poll ok', 'down unreachable', 'poll ok'])
    expect(told()).toEqual([`${keyOf(log)} poll`])
  })

  it('from the beginning is down too', () => {
    const { chain, pass, statuses } = polled()
    chain.trouble = new UpstreamError('unreachable', 'ECONNREFUSED')
    pass(SILENCE_MS + 500)
    expect(statuses()).toEqual(['down unreachable'])
  })

  it('never answers at all is down too', () => {
    const { chain, pass, statuses } = polled()
    pass(0)
    chain.delayMs = 1e9
    pass(2 * SILENCE_MS)
    expect(statuses()).toEqual(['poll ok', 'down unreachable'])
  })

  it('that was down has its absence caught up', () => {
    const { chain, pass, sealed } = polled()
    pass(0)
    chain.trouble = new UpstreamError('unreachable', 'HTTP 503')
    pass(10_000)
    chain.head += 5
    chain.trouble = null
    pass(POLL_MS)
    expect(sealed().map(({ number, via }) => [number, via])).toEqual(
      [1, 2, 3, 4, 5].map((ahead) => [HEAD + ahead, 'backfill']),
    )
  })

  it('that answers while it is caught up with for long is not down', () => {
    const { chain, pass, statuses } = polled({ cursor: { number: HEAD, hash: null } })
    chain.head = HEAD + 60_000
    chain.delayMs = 200
    pass(20_000)
    expect(statuses()).toEqual(['poll ok'])
  })

  it('that answers but whose head rests is stale, and is not when it goes on', () => {
    const { pass, statuses, seal } = polled()
    pass(30_000)
    expect(statuses()).toEqual(['poll ok'])
    pass(500)
    expect(statuses()).toEqual(['poll ok', 'poll stale_head'])
    seal(0, { pushed: false })
    expect(statuses()).toEqual(['poll ok', 'poll stale_head', 'poll ok'])
  })

  it('that says what no chain says is not believed', () => {
    const { chain, pass, statuses, seal, sealed } = polled()
    pass(0)
    chain.instead = ({ params }) =>
      params[0] === 'latest' ? { ...chain.headerOf(HEAD), hash: word(5), number: '0x5' } : undefined
    pass(2_000)
    chain.instead = () => undefined
    seal(1, { announced: false, pushed: false })
    pass(2_000)
    expect(sealed().map(({ number }) => number)).toEqual([HEAD + 1])
    expect(statuses()).toEqual(['poll ok'])
  })
})
