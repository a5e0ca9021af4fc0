import { VirtualTimeScheduler } from 'rxjs'
import { describe, expect, it, onTestFinished } from 'vitest'
import type { Hex } from '../../../../../src/lib/hex.ts'
import type { Pool } from '../../../../../src/relay/chain/pools/pool.ts'
import { PoolPoller, type PoolsRead } from '../../../../../src/relay/chain/pools/pool-poller.ts'
import { advanceClock } from '../../../../support/virtual-time.ts'
import { header, word } from '../node-json.ts'
import { FakePools } from './fake-pools.ts'

const INTERVAL_MS = 15_000
const account = (digit: string): Hex => `0x${digit.repeat(40)}`
const currency = { symbol: 'USDC', address: account('8'), decimals: 6 }
const poolOf = (id: string): Pool => ({ token: account('b'), kind: 'uniswap_v3', id: account(id), manager: null, currency })
const [first, second] = [poolOf('1'), poolOf('2')]

/** A poller in virtual time. Each batch is the ids of the pools that it read. */
const openPoller = ({ delayMs = 0 } = {}) => {
  const clock = new VirtualTimeScheduler(undefined, 0)
  const node = new FakePools(clock)
  node.delayMs = delayMs
  node.headers.latest = [header(100)]
  for (const { id } of [first, second]) node.answers.set(`slot ${id} 0x0`, word(2n ** 96n)).set(`slot ${id} 0x4`, word(10n ** 18n))
  const known = { head: 100 }
  const warnings: unknown[] = []
  const answers: PoolsRead[] = []
  const poller = new PoolPoller({
    requestBatch: node.requestBatch,
    stocksRefreshMs: INTERVAL_MS,
    tag: () => 'latest',
    sealedHead: () => known.head,
    clock,
    log: (kind, detail) => warnings.push([kind, detail]),
  })
  const subscription = poller.answers().subscribe((answer) => answers.push(answer))
  onTestFinished(() => subscription.unsubscribe())
  /** What is read in this time: `1`, `2` or `12`. */
  const advance = async (ms: number) => {
    const before = answers.length
    await advanceClock(clock, ms)
    return answers.slice(before).map(({ pools }) => [...pools.keys()].map(({ id }) => id[2]).join(''))
  }
  return { poller, node, known, answers, warnings, advance }
}

describe('the pools of the poller', () => {
  it('are read at once when they are new, and then in one batch per interval', async () => {
    const { poller, advance, answers } = openPoller()
    expect(await advance(1_000)).toEqual([])
    poller.setPools([first])
    expect(await advance(100)).toEqual(['1'])
    poller.setPools([first, second])
    expect(await advance(100)).toEqual(['2'])
    expect(await advance(INTERVAL_MS)).toEqual(['12'])
    expect(answers.at(-1)?.block).toMatchObject({ number: 100 })
    poller.setPools([second])
    expect(await advance(INTERVAL_MS)).toEqual(['2'])
  })

  it('are read in batches of at most 100 requests, the longest due first', async () => {
    const { poller, advance, node, answers } = openPoller()
    const many = Array.from({ length: 40 }, (_, nth): Pool => ({ ...first, id: `0x${String(nth).padStart(40, '0')}` }))
    poller.setPools(many)
    await advance(10)
    poller.read([...many.slice(0, 2), ...many])
    await advance(10_000)
    expect(answers.map(({ pools }) => [...pools.keys()])).toEqual([
      ...[many.slice(0, 16), many.slice(16, 32), [...many.slice(32), ...many.slice(0, 8)], many.slice(8, 16)],
    ])
    expect(Math.max(...node.batches.map(({ length }) => length))).toBeLessThanOrEqual(100)
  })

  it('that are due while a batch is in flight are one batch after it', async () => {
    const { poller, advance, node } = openPoller({ delayMs: 400 })
    poller.setPools([first, second])
    // The first batch finds that the pools are read from storage, which takes a second one.
    await advance(1_000)
    const batches = node.batches.length
    poller.read([first])
    await advance(10)
    for (let count = 0; count < 50; count += 1) poller.read([count % 2 === 0 ? first : second])
    expect(await advance(3_000)).toEqual(['1', '12'])
    expect(node.batches.length).toBe(batches + 2)
  })

  it('are not read more often than every 50 ms', async () => {
    const { poller, advance } = openPoller()
    poller.setPools([first])
    await advance(100)
    let reads = 0
    for (let count = 0; count < 100; count += 1) {
      poller.read([first])
      reads += (await advance(10)).length
    }
    expect(reads).toBe(21)
  })

  it('are read again when their block is replaced', async () => {
    const { poller, advance } = openPoller()
    poller.setPools([first, second])
    await advance(100)
    poller.readAgainFrom(101)
    expect(await advance(100)).toEqual([])
    poller.readAgainFrom(100)
    expect(await advance(100)).toEqual(['12'])
  })

  it('that cannot be read are logged once, and again after they could', async () => {
    const { poller, advance, node, warnings } = openPoller()
    node.answers.set(`slot ${first.id} 0x0`, word(0))
    poller.setPools([first, second])
    await advance(100)
    await advance(2 * INTERVAL_MS)
    expect(warnings).toEqual([['pools_unreadable', { pools: [first.id], count: 1, reason: expect.any(String) }]])
    node.answers.set(`slot ${first.id} 0x0`, word(2n ** 96n))
    await advance(INTERVAL_MS)
    node.answers.set(`slot ${first.id} 0x0`, word(0))
    await advance(INTERVAL_MS)
    expect(warnings).toHaveLength(2)
  })

  it('are read again when their block is replaced while the answer is on its way', async () => {
    const { poller, advance } = openPoller({ delayMs: 200 })
    poller.setPools([first])
    await advance(2_000)
    poller.read([first])
    await advance(100)
    poller.readAgainFrom(100)
    expect(await advance(150)).toEqual([])
    expect(await advance(250)).toEqual(['1'])
  })

  it('are unreadable where the node lags behind the known head', async () => {
    const { poller, known, advance, answers, warnings } = openPoller()
    poller.setPools([first, second])
    known.head = 102
    await advance(1_000)
    expect(answers.at(-1)?.block).toMatchObject({ number: 100 })
    known.head = 103
    poller.read([first, second])
    await advance(1_000)
    const reason = 'the node answers for block 100, and 103 is known'
    expect(answers.at(-1)).toMatchObject({
      block: null,
      pools: new Map([first, second].map((pool) => [pool, { kind: 'unreadable', reason }])),
    })
    expect(warnings).toEqual([['pools_unreadable', { pools: [first.id, second.id], count: 2, reason }]])
  })

  it('are read at most once a second where nothing answers', async () => {
    const { poller, node, advance } = openPoller()
    node.headers.latest = [null]
    poller.setPools([first])
    await advance(100)
    for (let count = 0; count < 100; count += 1) {
      poller.read([first])
      await advance(10)
    }
    // Each time a batch is repeated once.
    expect(node.batches.length).toBeLessThanOrEqual(2 * 2)
  })
})
