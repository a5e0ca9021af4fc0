import { describe, expect, it } from 'vitest'
import type { Hex } from '../../../../../src/lib/hex.ts'
import { MANAGER_SWAP_TOPIC } from '../../../../../src/relay/chain/logs/event-decoder.ts'
import type { Log } from '../../../../../src/relay/chain/logs/log-parser.ts'
import { blockHash, keyOf } from '../../chain/node-json.ts'
import { APPLE } from '../../tokens/stock-records.ts'
import { play, push, sealedEvent, sealedEventOfLogs } from '../reducer-fixture.ts'
import { transfer } from '../token-logs.ts'
import { bought, everything, openFollowed, POOL, pushed, read, reading, refused, USDC } from './pool-fixture.ts'

describe('a trade', () => {
  it('has the numbers of its swap, and the NAV at that time', async () => {
    const ingest = await openFollowed()
    await ingest.publish(pushed({ block: 101, index: 2 }))
    const trade = (await ingest.updates()).find(({ type }) => type === 'trade')
    expect(trade).toMatchObject({
      ...{ symbol: 'AAPLc', address: APPLE, key: keyOf({ block: 101, index: 2 }), stage: 'preconfirmed', late: false },
      venue: {
        ...{ kind: 'uniswap_v3', pool: POOL, fee_bps: '30', hooks: 'none' },
        currency: { symbol: 'USDC', address: USDC.address },
      },
      ...{ side: 'buy', raw: '150000000', amount: '1.5', multiplier: '1', shares: '1.5', currency_amount: '487.356584' },
      ...{ price: '324.90438933', reference_value: '486.45', basis_bps: '18.59', basis: 'premium', nav: { price: '324.3014' } },
      ...{ tx: { index: 2, log_index: 2 }, ingest: { source: 'pendingLogs' } },
    })
  })

  it('is late if it was never pushed, and alone it gives its token a seal', async () => {
    const ingest = await openFollowed()
    const late = bought({ block: 101 }, 487.5, 325)
    const told = await ingest.publish(sealedEventOfLogs(101, [late], { addresses: everything }))
    expect(told).toEqual(['buy 1.5 at 325 sealed late', 'quote 325.0 in 101', 'seal trade'])
  })

  it('is retracted if its block lacks it, but only if the logs of its pool were read', async () => {
    const ingest = await openFollowed()
    await play(ingest, [
      [pushed({ block: 101 }), 'buy 1.5 at 324.90438933 preconfirmed'],
      [sealedEvent(101, [{ index: 1 }], { addresses: [APPLE as Hex] }), 'transfer, seal transfer'],
      [sealedEvent(101, [{ index: 1 }], { addresses: everything }), 'retract trade not_sealed'],
    ])
  })

  it.each<[string, readonly [dollars: number | undefined, price: number], string]>([
    ['another price, even for the same amounts', [undefined, 330], 'amend pool_price, quote 330.0 in 101, seal trade'],
    ['another amount', [480, 320], 'amend currency_amount,price,pool_price,basis_bps, quote 320.0 in 101, seal trade'],
  ])('is amended if its swap has %s, and not if it repeats', async (_, sale, told) => {
    await play(await openFollowed(), [
      [pushed({ block: 101 }), 'buy 1.5 at 324.90438933 preconfirmed'],
      [pushed({ block: 101 }), ''],
      [sealedEventOfLogs(101, [bought({ block: 101 }, ...sale)], { addresses: everything }), told],
    ])
  })

  it('is followed by the quote that it leaves, unless this says the same or a newer block is known', async () => {
    const ingest = await openFollowed()
    await play(ingest, [
      [pushed({ block: 101 }, 487.5, 324.9), 'buy 1.5 at 325 preconfirmed'],
      [pushed({ block: 101, index: 1 }, 487.5, 326), 'buy 1.5 at 325 preconfirmed, quote 326.0 in 101'],
      [
        sealedEventOfLogs(100, [bought({ block: 100, index: 1 }, 487.5, 300)], { addresses: everything, newest: 100 }),
        'buy 1.5 at 325 sealed late, seal trade',
      ],
    ])
  })

  it('is not made of another event of the pool, nor of a swap of another layout, nor of one as a manager emits it', async () => {
    const ingest = await openFollowed()
    const [minted, cut, managed] = [0, 1, 2].map((index) => bought({ block: 101, index })) as [Log, Log, Log]
    const words = [1n, 1n, 2n ** 96n, 1n, 1n, 1n].map((value) => value.toString(16).padStart(64, '0'))
    const logs: readonly Log[] = [
      { ...minted, topics: [blockHash(1), ...minted.topics.slice(1)] },
      { ...cut, data: cut.data.slice(0, -64) as Hex },
      { ...managed, topics: [MANAGER_SWAP_TOPIC, blockHash(3), ...managed.topics.slice(1, 2)], data: `0x${words.join('')}` },
    ]
    expect(await ingest.publish(push(...logs))).toEqual([])
    expect(ingest.counts).toEqual({ repeated: 0, unlisted: 0, unreadable: 2 })
  })

  it('leaves no quote if a later one of its block did, until that one is retracted', async () => {
    const ingest = await openFollowed()
    const [early, late] = [bought({ block: 101, index: 5 }, 480, 320), bought({ block: 101, index: 20 }, 495, 330)]
    await play(ingest, [
      [push(late), 'buy 1.5 at 330 preconfirmed, quote 330.0 in 101'],
      [sealedEventOfLogs(101, [early, late], { addresses: everything }), 'buy 1.5 at 320 sealed late, seal trade+trade'],
      [{ type: 'reorg', from: 101 }, ''],
      [sealedEventOfLogs(101, [early], { addresses: everything, hash: blockHash(7) }), 'retract trade reorg, seal trade'],
      [read(reading(320)), 'quote 320.0 in 100'],
    ])
  })

  it('is newer than a reading of a block before it, and than none', async () => {
    const ingest = await openFollowed()
    await play(ingest, [
      [pushed({ block: 101 }, 495, 330), 'buy 1.5 at 330 preconfirmed, quote 330.0 in 101'],
      [read(reading(324.9)), ''],
      [read(refused), ''],
      [read({ kind: 'unreadable', reason: 'no answer' }), 'quote null in 100'],
    ])
  })
})

describe('the last trade', () => {
  const lastOf = ({ state }: Awaited<ReturnType<typeof openFollowed>>) => {
    const last = state.lastTrades.get(APPLE as Hex)
    return last && `${last.raw} ${last.stage} in ${last.block.number} ${last.block.hash}`
  }
  const first = bought({ block: 101 })
  const sealedFirst = `150000000 sealed in 101 ${blockHash(101)}`

  it('is sealed with its block, and again with the block that replaces it', async () => {
    const ingest = await openFollowed()
    await ingest.publish(push(first))
    expect(lastOf(ingest)).toBe('150000000 preconfirmed in 101 null')
    await ingest.publish(sealedEventOfLogs(101, [first], { addresses: everything }))
    expect(lastOf(ingest)).toBe(sealedFirst)
    await ingest.publish({ type: 'reorg', from: 101 })
    await ingest.publish(sealedEventOfLogs(101, [first], { addresses: everything, hash: blockHash(7) }))
    expect(lastOf(ingest)).toBe(`150000000 sealed in 101 ${blockHash(7)}`)
  })

  it.each<[string, readonly Log[], string]>([
    ['retracted', [], sealedFirst],
    ['a transfer after all', [transfer({ block: 102, index: 3 }, 7n)], sealedFirst],
    [
      'sealed after a later one that was missed',
      [bought({ block: 102, index: 3 }), bought({ block: 102, index: 9 })],
      `150000000 sealed in 102 ${blockHash(102)}`,
    ],
  ])('is the one before if it is %s', async (_, logs, told) => {
    const ingest = await openFollowed()
    await ingest.publish(push(first))
    await ingest.publish(sealedEventOfLogs(101, [first], { addresses: everything }))
    await ingest.publish(pushed({ block: 102, index: 3 }))
    await ingest.publish(sealedEventOfLogs(102, logs, { addresses: everything }))
    expect(lastOf(ingest)).toBe(told)
  })

  it('may be a transfer before its block is sealed', async () => {
    const ingest = await openFollowed()
    await ingest.publish(push(transfer({ block: 101, index: 0 }, 7n)))
    await ingest.publish(sealedEventOfLogs(101, [first], { addresses: everything }))
    expect(lastOf(ingest)).toBe(sealedFirst)
  })
})
