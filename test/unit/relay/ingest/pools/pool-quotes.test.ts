import { describe, expect, it } from 'vitest'
import type { Update } from '../../../../../src/protocol/updates.ts'
import type { Pool } from '../../../../../src/relay/chain/pools/pool.ts'
import type { PoolsRead } from '../../../../../src/relay/chain/pools/pool-poller.ts'
import type { PoolReading } from '../../../../../src/relay/chain/pools/pool-queries.ts'
import type { PoolSetting } from '../../../../../src/relay/config/pool-settings.ts'
import { quoteNotes } from '../../../../../src/relay/notes/published-notes.ts'
import { APPLE, apple, NOON } from '../../tokens/stock-records.ts'
import { listEvent, openIngest, subscribedEvent } from '../reducer-fixture.ts'
import { pool, reading, USDC } from './pool-fixture.ts'

const second: Pool = { ...pool, kind: 'slipstream', id: `0x${'2'.repeat(40)}` }
const block = { number: 100, hash: null, timestamp: NOON / 1_000 }

const priced = (price: number, liquidity = 10n ** 16n): PoolReading => ({ ...reading(price), liquidity })
const read = (...pools: readonly (readonly [Pool, PoolReading])[]): PoolsRead => ({ type: 'pools', block, pools: new Map(pools) })
const oracle = (frozen: boolean | null) => ({ type: 'oracle', address: APPLE, frozen }) as const

const tell = (update: Update): string => {
  if (update.type === 'quote')
    return `quote ${update.venue.kind} ${update.state} ${update.price && Number(update.price).toFixed(2)} ${update.basis}`
  return update.type === 'nav' ? `nav ${update.nav.price} ${update.nav.state} ${update.nav.frozen}` : update.type
}

const quotesOf = (...pools: readonly PoolSetting[]) => ({
  quotes: { pools, mainCurrency: null, poolMinDepth: { units: 1_000n, scale: 0 } },
})
const openWithPools = async (...pools: readonly PoolSetting[]) => {
  const worth = quotesOf(...(pools.length > 0 ? pools : [pool, second]))
  const { restart, openedTape, ...ingest } = await openIngest(tell, { first: [listEvent(apple()), subscribedEvent], worth })
  return {
    ...ingest,
    tape: openedTape.tape,
    restart: () => restart(),
    restartWith: (...others: readonly PoolSetting[]) => restart({ worth: quotesOf(...others) }),
    restartWithoutRegistry: () => restart({ worth: { hasRegistry: false } }),
  }
}

describe('a quote', () => {
  it('is published when the price, state or basis of a pool changed, and not otherwise', async () => {
    const { publish } = await openWithPools()
    expect(await publish(read([pool, priced(330)]))).toEqual(['quote uniswap_v3 ok 330.00 premium'])
    expect(await publish(read([pool, { ...priced(330, 10n ** 17n), feeBps: '5' } as PoolReading]))).toEqual([])
    expect(await publish(read([pool, priced(331)], [second, priced(332)]))).toEqual([
      'quote uniswap_v3 ok 331.00 premium',
      'quote slipstream ok 332.00 premium',
    ])
    expect(await publish(read([pool, priced(331, 0n)]))).toEqual(['quote uniswap_v3 empty null null'])
    expect(await publish(read([pool, { kind: 'unreadable', reason: 'no answer' }]))).toEqual([
      'quote uniswap_v3 unreadable null null',
    ])
  })

  it('follows a NAV whose price, age or freeze changes its basis', async () => {
    const { publish, clock } = await openWithPools()
    await publish(read([pool, priced(330)], [second, priced(330, 0n)]))
    expect(await publish(oracle(false))).toEqual(['nav 324.3014 fresh false'])
    expect(await publish(oracle(true))).toEqual(['nav 324.3014 fresh true', 'quote uniswap_v3 ok 330.00 drift'])
    expect(await publish(oracle(true))).toEqual([])
    expect(await publish(oracle(null))).toEqual(['nav 324.3014 fresh null', 'quote uniswap_v3 ok 330.00 premium'])
    clock.now += 93_600_000
    expect(await publish(listEvent(apple()))).toEqual(['nav 324.3014 stale null', 'quote uniswap_v3 ok 330.00 drift'])
    const renewed = apple({ nav_price: 300, nav_price_updated_at: new Date(clock.now).toISOString() })
    expect(await publish(listEvent(renewed))).toEqual(['nav 300 fresh null', 'quote uniswap_v3 ok 330.00 premium'])
    const dearer = apple({ nav_price: 301, nav_price_updated_at: new Date(clock.now + 1).toISOString() })
    expect(await publish(listEvent(dearer))).toEqual(['nav 301 fresh null', 'quote uniswap_v3 ok 330.00 premium'])
    const again = apple({ nav_price: 301, nav_price_updated_at: new Date(clock.now + 2).toISOString() })
    expect(await publish(listEvent(again))).toEqual(['nav 301 fresh null'])
  })

  it('is not published for a token that is not listed', async () => {
    const { publish } = await openWithPools()
    expect(await publish(listEvent(), read([pool, priced(330)]))).toEqual(['token'])
  })

  it('is compared with the last one after a restart, and forgotten with its pool', async () => {
    const { publish, restart, restartWith, tape } = await openWithPools()
    await publish(read([pool, priced(330)], [second, priced(331)]))
    const again = await restart()
    expect(await again.publish(read([pool, priced(330)]))).toEqual([])
    expect(again.state.quotes.get(APPLE)?.map(({ venue }) => venue.kind)).toEqual(['uniswap_v3', 'slipstream'])
    const without = await restartWith(second)
    await without.publish(read([second, priced(331)]))
    expect(tape.notes.note(quoteNotes.at(APPLE))?.map(({ venue }) => venue.kind)).toEqual(['slipstream'])
    await (await restartWith()).publish(listEvent(apple()))
    expect(tape.notes.note(quoteNotes.at(APPLE))).toEqual([])
  })

  it('of the previous run follows a NAV before its pool is read', async () => {
    const { publish, restart } = await openWithPools()
    await publish(read([pool, priced(330)]))
    const again = await restart()
    again.clock.now += 93_600_000
    expect(await again.publish(listEvent(apple()))).toEqual(['nav 324.3014 stale null', 'quote uniswap_v3 ok 330.00 drift'])
    expect(await again.publish(read([pool, priced(330)]))).toEqual([])
  })

  it('ends with the listing of its token', async () => {
    const { publish, tape } = await openWithPools()
    await publish(read([pool, priced(330)]))
    expect(await publish(listEvent())).toEqual(['token'])
    expect(tape.notes.note(quoteNotes.at(APPLE))).toEqual([])
    expect(await publish(listEvent(apple()), subscribedEvent)).toEqual(['token', 'multiplier', 'nav 324.3014 fresh null'])
    expect(await publish(read([pool, priced(330)]))).toEqual(['quote uniswap_v3 ok 330.00 premium'])
  })

  it.each<[string, Partial<PoolSetting>]>([
    ['token', { token: '0xb2000000000000000000001e800a7f5189430cd0' }],
    ['kind', { kind: 'slipstream' }],
    ['currency', { currency: { ...USDC, address: `0x${'9'.repeat(40)}` } }],
  ])('is forgotten after a restart with another %s for its pool', async (_, other) => {
    const { publish, restart, restartWith } = await openWithPools(pool)
    await publish(read([pool, priced(330)]))
    expect((await restartWith({ ...pool, ...other })).state.quotes.size).toBe(0)
    expect((await restart()).state.quotes.size).toBe(1)
  })

  it('is no drift because of a registry that is not known any more', async () => {
    const { publish, restartWithoutRegistry } = await openWithPools()
    await publish(oracle(true))
    const without = await restartWithoutRegistry()
    expect(await without.publish(listEvent(apple()))).toEqual(['nav 324.3014 fresh null'])
    expect(await without.publish(read([pool, priced(330)]))).toEqual(['quote uniswap_v3 ok 330.00 premium'])
  })
})
