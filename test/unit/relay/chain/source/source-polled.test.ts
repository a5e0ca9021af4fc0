import { BehaviorSubject, NEVER } from 'rxjs'
import { describe, expect, it } from 'vitest'
import type { Hex } from '../../../../../src/lib/hex.ts'
import { UpstreamError } from '../../../../../src/relay/chain/rpc/upstream-error.ts'
import { apple, keyOf, tesla, timestampOf } from '../node-json.ts'
import { HEAD, openSource, POLL_MS } from './source-fixture.ts'

/** A source without a link. */
const openPolled = (settings: Parameters<typeof openSource>[0] = {}) => openSource({ hasLink: false, ...settings })

describe('a source without a link', () => {
  it('emits the start, the pre-confirmed logs, their addresses and its status', async () => {
    const { chain, advance, pendingLogs, statuses, ofType } = openPolled()
    chain.addLog(HEAD)
    const log = chain.addLog(HEAD + 1)
    await advance(0)
    expect(ofType('cursor').map(({ cursor }) => cursor)).toEqual([{ number: HEAD, hash: chain.hashOf(HEAD) }])
    expect(pendingLogs()).toEqual([`${keyOf(log)} poll`])
    expect(statuses()).toEqual(['poll ok'])
    expect(ofType('subscribed')).toEqual([{ type: 'subscribed', filters: [{ addresses: [apple] }] }])
    expect(ofType('head')).toEqual([
      {
        ...{ type: 'head', sealed: HEAD, pending: null, timestamp: timestampOf(HEAD) },
        ...{ hash: chain.hashOf(HEAD), parentHash: chain.hashOf(HEAD - 1) },
      },
      { type: 'head', sealed: null, pending: HEAD + 1, timestamp: timestampOf(HEAD + 1) },
    ])
  })

  it('emits no log before a token is known', async () => {
    const { chain, advance, pendingLogs, ofType } = openPolled({ addresses: NEVER })
    chain.addLog(HEAD + 1)
    await advance(2_000)
    expect(pendingLogs()).toEqual([])
    expect(ofType('subscribed')).toEqual([])
    expect(chain.requestedAddresses()).toEqual([])
  })

  it('emits each log at the next poll, with the time of arrival', async () => {
    const { chain, advance, ofType } = openPolled()
    await advance(POLL_MS / 2)
    const log = chain.addLog(HEAD + 1)
    await advance(POLL_MS)
    expect(ofType('logs').map(({ logs, receivedAt }) => [logs[0]?.key, receivedAt])).toEqual([[keyOf(log), POLL_MS]])
  })

  it('emits a log of a block that was sealed between two polls when that block is settled', async () => {
    const { chain, advance, pendingLogs, sealedBlocks } = openPolled()
    await advance(0)
    const logs = [1, 2, 3, 4, 5].map((ahead) => chain.addLog(HEAD + ahead))
    chain.head = HEAD + 4
    await advance(POLL_MS)
    expect(sealedBlocks().flatMap((block) => block.logs.map(({ key }) => key))).toEqual(logs.slice(0, 4).map(keyOf))
    expect(sealedBlocks().map(({ via }) => via)).toEqual(Array(4).fill('sealed'))
    expect(pendingLogs()).toEqual([`${keyOf(logs[4] ?? { block: 0 })} poll`])
  })

  it('covers new tokens with the next poll that is answered, even if the block did not change', async () => {
    const addresses = new BehaviorSubject<readonly Hex[]>([apple])
    const { chain, advance, pendingLogs, ofType } = openPolled({ addresses })
    const log = chain.addLog(HEAD + 1, tesla)
    await advance(POLL_MS)
    chain.failure = new UpstreamError('busy', 'over rate limit')
    addresses.next([tesla])
    await advance(2_000)
    expect(pendingLogs()).toEqual([])
    expect(ofType('subscribed')).toHaveLength(1)
    chain.failure = null
    await advance(POLL_MS)
    expect(pendingLogs()).toEqual([`${keyOf(log)} poll`])
    expect(ofType('subscribed').map((event) => event.filters[0]?.addresses)).toEqual([[apple], [tesla]])
  })

  it('never repeats a request before it is answered', async () => {
    const { chain, advance } = openPolled()
    chain.delayMs = 700
    chain.addLog(HEAD + 1)
    await advance(5_000)
    expect(chain.requestedHeaders().filter((block) => block === 'pending').length).toBeLessThan(5)
  })

  it('retracts nothing when nodes behind one URL have different heads', async () => {
    const { chain, advance, sealedBlocks, statuses, warnings } = openPolled()
    await advance(0)
    const logs = [1, 2, 3, 4, 5, 6].map((ahead) => chain.addLog(HEAD + ahead))
    for (const head of [2, 0, 3, 1, 5, 4, 6]) {
      chain.lagBlocks = Math.max(0, chain.head - HEAD - head)
      chain.head = Math.max(chain.head, HEAD + head)
      await advance(POLL_MS)
    }
    chain.lagBlocks = 0
    await advance(5_000)
    expect(sealedBlocks().map(({ number }) => number)).toEqual([1, 2, 3, 4, 5, 6].map((ahead) => HEAD + ahead))
    expect(sealedBlocks().flatMap((block) => block.logs.map(({ key }) => key))).toEqual(logs.map(keyOf))
    expect(warnings).not.toContain('reorg')
    expect(statuses()).toEqual(['poll ok'])
  })
})

describe('a polled pending block', () => {
  it('missing between flashblocks does not change the source', async () => {
    const { chain, advance, statuses } = openPolled()
    for (let poll = 0; poll < 50; poll += 1) {
      chain.pending = poll % 5 === 0 ? 'shown' : 'null'
      await advance(POLL_MS)
    }
    expect(statuses()).toEqual(['poll ok'])
  })
})
