import { lastValueFrom, map, type ObservedValueOf, of, toArray } from 'rxjs'
import { describe, expect, it } from 'vitest'
import { Reader } from '../../src/chain/reader.ts'
import { UpstreamError } from '../../src/chain/upstream-error.ts'
import { FakeChain } from './chain.ts'
import { apple, keyOf, tesla } from './wire.ts'

type Found = ObservedValueOf<ReturnType<Reader['read']>>

const HOUR_MS = 3_600_000
const HEAD = 100_000

const open = (chain: FakeChain, cursor: number | null, backfillBoundMs = 6 * HOUR_MS) => {
  const reader = new Reader({ ask: chain.ask, cursor, backfillBoundMs })
  return { reader, read: (addresses = [apple]) => lastValueFrom(reader.read(addresses).pipe(toArray())) }
}
const all = <Type extends Found['type']>(found: readonly Found[], type: Type) =>
  found.filter((one): one is Extract<Found, { type: Type }> => one.type === type)
const told = (found: readonly Found[]) => all(found, 'log').map(({ log, via, sealed }) => [log.key, via, sealed])

describe('a first start', () => {
  it('tells what is pre-confirmed and nothing that is sealed', async () => {
    const chain = new FakeChain(HEAD)
    chain.put(HEAD - 1)
    chain.put(HEAD)
    const pending = chain.put(HEAD + 1)
    const found = await open(chain, null).read()
    expect(told(found)).toEqual([[keyOf(pending), 'poll', false]])
    expect(chain.ranges()).toEqual([[HEAD, 'pending']])
  })

  it('says how far the chain is and from where on all is told, then whose logs are heard, then the logs', async () => {
    const chain = new FakeChain(HEAD)
    chain.put(HEAD + 1)
    expect(await open(chain, null).read([apple, tesla])).toEqual([
      { type: 'head', sealed: HEAD },
      { type: 'cursor', sealed: HEAD },
      { type: 'hearing', addresses: [apple, tesla] },
      expect.objectContaining({ type: 'log' }),
      { type: 'cursor', sealed: HEAD },
    ])
  })

  it('never tells what was sealed before it, at no reading', async () => {
    const chain = new FakeChain(HEAD)
    chain.put(HEAD)
    const { read } = open(chain, null)
    expect(told(await read())).toEqual([])
    expect(told(await read())).toEqual([])
    const next = chain.put(HEAD + 1)
    chain.head = HEAD + 1
    expect(told(await read())).toEqual([[keyOf(next), 'poll', true]])
  })

  it('asks for the wanted tokens and no others', async () => {
    const chain = new FakeChain(HEAD)
    await open(chain, null).read([tesla])
    expect(chain.asked.at(-1)?.params).toMatchObject([{ address: [tesla] }])
  })
})

describe('reading on', () => {
  it('tells what was sealed since, however many blocks came', async () => {
    const chain = new FakeChain(HEAD)
    const { read } = open(chain, null)
    await read()
    const sealed = [chain.put(HEAD + 1), chain.put(HEAD + 2), chain.put(HEAD + 4)]
    chain.head = HEAD + 4
    const pending = chain.put(HEAD + 5)
    expect(told(await read())).toEqual([
      ...sealed.map((log) => [keyOf(log), 'poll', true]),
      [keyOf(pending), 'poll', false],
    ])
  })

  it('begins at the newest sealed block that was read, which a node may have given in part', async () => {
    const chain = new FakeChain(HEAD)
    const { read } = open(chain, null)
    await read()
    chain.head = HEAD + 3
    await read()
    const late = chain.put(HEAD + 3)
    expect(told(await read())).toEqual([[keyOf(late), 'poll', true]])
    expect(chain.ranges().at(-1)).toEqual([HEAD + 3, 'pending'])
  })

  it('begins where others have heard everything', async () => {
    const chain = new FakeChain(HEAD)
    const { read, reader } = open(chain, null)
    await read()
    chain.head = HEAD + 50
    reader.advance(HEAD + 40)
    await read()
    expect(chain.ranges().at(-1)).toEqual([HEAD + 40, 'pending'])
  })

  it('asks a node that is behind only for what it has', async () => {
    const chain = new FakeChain(HEAD)
    const { read } = open(chain, HEAD)
    await read()
    chain.head = HEAD - 2
    const found = await read()
    expect(chain.ranges().at(-1)).toEqual([HEAD - 2, 'pending'])
    expect(all(found, 'hole')).toEqual([])
    chain.head = HEAD + 1
    await read()
    expect(chain.ranges().at(-1)).toEqual([HEAD, 'pending'])
  })

  it('counts what cannot be read and tells the rest', async () => {
    const chain = new FakeChain(HEAD)
    const good = chain.put(HEAD + 1)
    const spoilt: FakeChain['ask'] = (method, params) =>
      chain
        .ask(method, params)
        .pipe(map((answer) => (Array.isArray(answer) ? [null, ...answer, { data: '0x1' }] : answer)))
    const reader = new Reader({ ask: spoilt, cursor: HEAD, backfillBoundMs: HOUR_MS })
    const found = await lastValueFrom(reader.read([apple]).pipe(toArray()))
    expect(told(found)).toEqual([[keyOf(good), 'poll', false]])
    expect(all(found, 'unreadable')).toEqual([{ type: 'unreadable', count: 2 }])
  })

  it('fails where there is no latest block', async () => {
    const chain = new FakeChain(HEAD)
    chain.trouble = new UpstreamError('busy', 'over rate limit')
    await expect(open(chain, null).read()).rejects.toMatchObject({ kind: 'busy' })
  })
})

describe('a restart', () => {
  it('tells what was sealed meanwhile as caught up, and what comes later as polled', async () => {
    const chain = new FakeChain(HEAD)
    const missed = chain.put(HEAD - 10)
    const pending = chain.put(HEAD + 1)
    const { read } = open(chain, HEAD - 20)
    expect(told(await read())).toEqual([
      [keyOf(missed), 'backfill', true],
      [keyOf(pending), 'poll', false],
    ])
    chain.head = HEAD + 1
    expect(told(await read())).toEqual([[keyOf(pending), 'poll', true]])
  })

  it('reads in pages of at most 2,000 blocks that leave none out, and ends with what is pending', async () => {
    const chain = new FakeChain(HEAD)
    const missed = [HEAD - 6_000, HEAD - 4_001, HEAD - 4_000, HEAD - 2_000, HEAD - 1, HEAD].map((block) =>
      chain.put(block),
    )
    const pending = chain.put(HEAD + 1)
    const found = await open(chain, HEAD - 6_000).read()
    expect(new Set(told(found).map(([key]) => key))).toEqual(new Set([...missed, pending].map(keyOf)))
    const ranges = chain.ranges()
    expect(ranges.at(-1)?.[1]).toBe('pending')
    let next = HEAD - 6_000
    for (const [from, to] of ranges) {
      expect(from).toBe(next)
      const last = to === 'pending' ? HEAD : to
      expect(last - from + 1).toBeLessThanOrEqual(2_000)
      next = last + 1
    }
    expect(found.at(-1)).toEqual({ type: 'cursor', sealed: HEAD })
  })

  it('halves a page that is too large, as often as it takes', async () => {
    const chain = new FakeChain(HEAD)
    chain.rangeBound = 300
    const missed = [HEAD - 900, HEAD - 500, HEAD - 10].map((block) => chain.put(block))
    const found = await open(chain, HEAD - 1_000).read()
    expect(new Set(told(found).map(([key]) => key))).toEqual(new Set(missed.map(keyOf)))
    const asked = chain.ranges().slice(0, 4)
    expect(asked.map(([from]) => from)).toEqual(Array(4).fill(HEAD - 1_000))
  })

  it('gives up on a page that is too large for a single block', async () => {
    const chain = new FakeChain(HEAD)
    chain.resultsBound = 0
    chain.put(HEAD)
    await expect(open(chain, HEAD).read()).rejects.toMatchObject({ kind: 'too_large' })
  })

  it('passes other failures on, and is taken up where it broke off', async () => {
    const chain = new FakeChain(HEAD)
    const missed = chain.put(HEAD - 10)
    const { read } = open(chain, HEAD - 20)
    chain.trouble = new UpstreamError('unreachable', 'HTTP 503')
    await expect(read()).rejects.toMatchObject({ kind: 'unreachable' })
    chain.trouble = null
    expect(told(await read())).toEqual([[keyOf(missed), 'backfill', true]])
  })

  it('after longer than the bound tells the blocks that it leaves out', async () => {
    const chain = new FakeChain(HEAD)
    // Five blocks a second: ten minutes are 3,000 blocks.
    const found = await open(chain, HEAD - 9_000, 600_000).read()
    expect(all(found, 'hole')).toEqual([
      { type: 'hole', blocks: { from: HEAD - 8_999, to: HEAD - 3_001 }, reason: 'backfill_bound' },
    ])
    expect(chain.ranges()[0]?.[0]).toBe(HEAD - 3_000)
    expect(found.findIndex(({ type }) => type === 'hole')).toBeLessThan(
      found.findIndex(({ type }) => type === 'hearing'),
    )
  })

  it('within the bound leaves out nothing', async () => {
    const chain = new FakeChain(HEAD)
    const found = await open(chain, HEAD - 9_000, HOUR_MS).read()
    expect(all(found, 'hole')).toEqual([])
    expect(chain.ranges()[0]?.[0]).toBe(HEAD - 9_000)
  })

  it('on a node that has no block of that time any more reads the newest page and tells the hole', async () => {
    const chain = new FakeChain(HEAD)
    const { ask } = chain
    const pruned: FakeChain['ask'] = (method, params) =>
      method === 'eth_getBlockByNumber' && params[0] !== 'latest' ? of(null) : ask(method, params)
    const reader = new Reader({ ask: pruned, cursor: HEAD - 9_000, backfillBoundMs: HOUR_MS })
    const found = await lastValueFrom(reader.read([apple]).pipe(toArray()))
    expect(all(found, 'hole').map(({ blocks }) => blocks)).toEqual([{ from: HEAD - 8_999, to: HEAD - 2_000 }])
    expect(chain.ranges()[0]?.[0]).toBe(HEAD - 1_999)
  })
})
