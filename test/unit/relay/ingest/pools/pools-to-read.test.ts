import { describe, expect, it, onTestFinished } from 'vitest'
import type { Hex } from '../../../../../src/lib/hex.ts'
import { type Pool, poolOf } from '../../../../../src/relay/chain/pools/pool.ts'
import type { PoolSetting } from '../../../../../src/relay/config/pool-settings.ts'
import type { IngestEvent } from '../../../../../src/relay/ingest/fold-batch.ts'
import { PoolsToRead } from '../../../../../src/relay/ingest/pools/pools-to-read.ts'
import { openTestTape } from '../../tape/test-tape.ts'
import { APPLE, apple, NOON, tesla } from '../../tokens/stock-records.ts'
import { listEvent, openReducer, push, sealedEventOfLogs, subscribedEvent } from '../reducer-fixture.ts'
import { swap as swapLog, transfer } from '../token-logs.ts'

const word = (digit: string) => `0x${digit.repeat(64)}` as Hex
const account = (digit: string) => `0x${digit.repeat(40)}` as Hex
const currency = { symbol: 'USDC', address: '0x833589fcd6edb6e08f4c7c32d4f71b54bda02913', decimals: 6 } as const
const applePool = { token: 'AAPLc', kind: 'uniswap_v3', id: account('1'), manager: null, currency } satisfies PoolSetting
const teslaPool = { ...applePool, token: 'tsla', id: account('2') } satisfies PoolSetting
const managed = { ...applePool, kind: 'uniswap_v4', id: word('3'), manager: account('4') } satisfies PoolSetting
const settings = [applePool, teslaPool, managed]

/** What is published, and the pools that are read because of it, by their kind and token. */
const openPools = async (pools: readonly PoolSetting[] = settings) => {
  const openedTape = await openTestTape()
  onTestFinished(() => openedTape.close())
  const open = async () => {
    const quotes = { pools, mainCurrency: null, poolMinDepth: { units: 1n, scale: 0 } }
    const fixture = await openReducer(openedTape.tape, { now: NOON }, [], { quotes })
    const calls: string[] = []
    const warnings: unknown[] = []
    const nameOf = ({ kind, token }: Pool) => `${kind} of ${token === APPLE ? 'AAPLc' : 'TSLAc'}`
    const listed = new PoolsToRead({
      state: fixture.state,
      poller: {
        setPools: (pools) => calls.push(`all: ${pools.map(nameOf).join()}`),
        read: (pools) => calls.push(...[...pools].map(nameOf)),
      },
      log: (name, detail) => warnings.push([name, detail]),
    })
    const publish = async (...events: readonly IngestEvent[]) => {
      calls.length = 0
      listed.observe(await fixture.publish(...events))
      return [...calls]
    }
    return { publish, calls, warnings }
  }
  return { ...(await open()), restart: open }
}
const listing = [listEvent(apple(), tesla()), subscribedEvent] as const
const swap = (block: number, from: Hex, to: Hex) => transfer({ block, index: 0 }, 5n, { from, to })

describe('the pools of listed tokens', () => {
  it('are found by symbol once their token is listed, and given up when it is delisted', async () => {
    const { publish, calls } = await openPools()
    expect(calls).toEqual(['all: '])
    expect(await publish(listEvent(apple(), tesla()))).toEqual([])
    expect(await publish(subscribedEvent)).toEqual(['all: uniswap_v3 of AAPLc,uniswap_v3 of TSLAc,uniswap_v4 of AAPLc'])
    expect(await publish(listEvent(apple()))).toEqual(['all: uniswap_v3 of AAPLc,uniswap_v4 of AAPLc'])
  })

  it('are read when a movement of their token names them, or their manager, and when its block is settled', async () => {
    const { publish } = await openPools()
    await publish(...listing)
    const bought = swap(10, applePool.id, account('a'))
    const sold = swap(11, account('a'), managed.manager)
    expect(await publish(push(bought))).toEqual(['uniswap_v3 of AAPLc'])
    expect(await publish(push(sold))).toEqual(['uniswap_v4 of AAPLc'])
    expect(await publish(sealedEventOfLogs(10, [bought]))).toEqual(['uniswap_v3 of AAPLc'])
    expect(await publish(sealedEventOfLogs(11, [sold]))).toEqual(['uniswap_v4 of AAPLc'])
    expect(await publish(push(swap(12, account('a'), account('b'))))).toEqual([])
    expect(await publish(push(swap(13, teslaPool.id, account('b'))))).toEqual([])
  })

  it('are read when the movement is retracted, also after a restart', async () => {
    const { publish, restart } = await openPools()
    await publish(...listing)
    const dropped = swap(10, applePool.id, account('a'))
    await publish(push(dropped), push(swap(11, applePool.id, account('b'))))
    expect(new Set(await publish(sealedEventOfLogs(10, [])))).toEqual(new Set(['uniswap_v3 of AAPLc', 'uniswap_v4 of AAPLc']))
    const again = await restart()
    expect(new Set(await again.publish(sealedEventOfLogs(11, [])))).toEqual(new Set(['uniswap_v3 of AAPLc', 'uniswap_v4 of AAPLc']))
  })

  it.each<[string, readonly [bigint, bigint][], readonly string[]]>([
    ['retracted', [], ['uniswap_v3 of AAPLc', 'uniswap_v4 of AAPLc']],
    ['sealed as it was', [[1n, -1n]], []],
  ])('are read when a trade that no movement shows is %s', async (_, amounts, read) => {
    const { publish } = await openPools()
    const pool = { ...applePool, token: APPLE as Hex }
    const reading = { kind: 'read', sqrtPriceX96: 2n ** 96n, liquidity: 1n, feeBps: '30' } as const
    await publish(...listing, { type: 'pools', block: null, pools: new Map([[pool, reading]]) })
    await publish({ type: 'subscribed', filters: [{ addresses: [APPLE as Hex, pool.id] }] })
    const swapped = (sold: readonly [bigint, bigint]) => swapLog({ block: 10, index: 0, address: pool.id }, sold, 2n ** 96n)
    expect(await publish(push(swapped([1n, -1n])))).toEqual([])
    expect(await publish(sealedEventOfLogs(10, amounts.map(swapped), { addresses: [APPLE as Hex, pool.id] }))).toEqual(read)
  })

  it('follow their symbol to another token once theirs is delisted', async () => {
    const { publish } = await openPools()
    await publish(...listing)
    expect(await publish(listEvent(tesla()))).toEqual(['all: uniswap_v3 of TSLAc'])
    const renamed = tesla({ symbol: 'AAPLc' })
    expect(await publish(listEvent(renamed))).toEqual(['all: uniswap_v3 of TSLAc,uniswap_v3 of TSLAc,uniswap_v4 of TSLAc'])
  })

  it('of an unknown token are logged once', async () => {
    const { publish, warnings } = await openPools()
    await publish(listEvent(apple()), subscribedEvent)
    await publish(listEvent(apple({ name: 'Apple Inc' })))
    expect(warnings).toEqual([['pool_unlisted', { token: 'tsla', pool: teslaPool.id }]])
  })

  it('have the id that follows from their key, and are read once though the settings name them twice', async () => {
    const key = { fee: 3_000, tickSpacing: 60, hooks: account('5') }
    const keyed = { ...managed, id: key } satisfies PoolSetting
    const { id } = poolOf(keyed, APPLE as Hex)
    const tesla = { ...keyed, token: 'tsla' }
    const { publish, warnings } = await openPools([keyed, tesla, { ...managed, id }, { ...keyed, token: APPLE }])
    expect(await publish(...listing)).toEqual(['all: uniswap_v4 of AAPLc,uniswap_v4 of TSLAc'])
    await publish(listEvent(apple({ name: 'Apple Inc' })))
    expect(warnings).toEqual([
      ['pool_repeated', { token: 'AAPLc', pool: id }],
      ['pool_repeated', { token: APPLE, pool: `3000/60/${key.hooks}` }],
    ])
    const sold = swap(10, account('a'), managed.manager)
    expect(await publish(push(sold))).toEqual(['uniswap_v4 of AAPLc'])
  })
})
