import { describe, expect, it } from 'vitest'
import type { Hex } from '../../../../../src/lib/hex.ts'
import type { Update } from '../../../../../src/protocol/updates.ts'
import type { Pool } from '../../../../../src/relay/chain/pools/pool.ts'
import type { PoolReading } from '../../../../../src/relay/chain/pools/pool-queries.ts'
import type { PoolSetting } from '../../../../../src/relay/config/pool-settings.ts'
import type { IngestEvent } from '../../../../../src/relay/ingest/fold-batch.ts'
import { blockHash, keyOf } from '../../chain/node-json.ts'
import { APPLE, apple, NOON } from '../../tokens/stock-records.ts'
import {
  headEvent,
  type LogPosition,
  listEvent,
  logAt,
  openIngest,
  play,
  sealedEvent,
  sealedEventOfLogs,
  statusEvent,
  transactionEvent,
} from '../reducer-fixture.ts'
import { swap } from '../token-logs.ts'

const USDC = { symbol: 'USDC', address: '0x833589fcd6edb6e08f4c7c32d4f71b54bda02913', decimals: 6 } as const
const POOL: Hex = `0x${'1'.repeat(40)}`
const pool: Pool = { token: APPLE as Hex, kind: 'uniswap_v3', id: POOL, manager: null, currency: USDC }

/** The square root of this price of the token, which stands after the currency in the pool. */
const rootOf = (price: number): bigint => BigInt(Math.round(Math.sqrt(100 / price) * 2 ** 40)) << 56n
const reading = (price: number): Extract<PoolReading, { kind: 'read' }> => ({
  kind: 'read',
  sqrtPriceX96: rootOf(price),
  liquidity: 10n ** 16n,
  feeBps: '30',
})
const wrong: PoolReading = { kind: 'unreadable', reason: 'it trades other tokens', isWrong: true }
const refused: PoolReading = { kind: 'unreadable', reason: 'the method does not exist', isRefused: true }
const read = (...readings: readonly PoolReading[]): IngestEvent => ({
  ...{ type: 'pools', block: { number: 100, hash: null, timestamp: NOON / 1_000 } },
  pools: new Map(readings.map((answer) => [pool, answer])),
})
const received = (...addresses: readonly Hex[]): IngestEvent => ({ type: 'subscribed', addresses })
const bothReceived = received(APPLE as Hex, POOL)

/** Somebody buys 1.5 tokens for this many dollars. */
const bought = (location: LogPosition, dollars = 487.356584, price = 324.9) =>
  swap({ ...location, address: POOL }, [BigInt(Math.round(dollars * 1e6)), -150_000_000n], rootOf(price))
const pushed = (location: LogPosition, ...sale: [number?, number?]) => transactionEvent([bought(location, ...sale)])
const everything = [APPLE as Hex, POOL]

const tell = (update: Update): string => {
  switch (update.type) {
    case 'trade':
      return `${update.side} ${update.amount} at ${update.price} ${update.stage}${update.late ? ' late' : ''}${update.venue.fee_bps === null ? ' for a fee of null' : ''}`
    case 'venue':
      return `${update.change} from ${update.from_block}${update.reason === null ? '' : ` ${update.reason}`}`
    case 'quote':
      return `quote ${update.price && Number(update.price).toFixed(1)} in ${update.block.number}`
    case 'seal':
      return `seal ${update.types.join('+')}`
    case 'retract':
      return `retract ${update.fact_type} ${update.reason}`
    case 'amend':
      return `amend ${update.changed.join()}`
    default:
      return update.type
  }
}

const settingsOf = (...pools: readonly PoolSetting[]) => ({ quotes: { pools, poolMinDepth: { units: 1_000n, scale: 0 } } })
const open = async (...first: readonly IngestEvent[]) => {
  const worth = settingsOf(pool)
  return openIngest(tell, { first: [listEvent(apple()), statusEvent('pendingLogs'), headEvent(100), ...first], worth })
}
/** The pool is followed. */
const openFollowed = () => open(received(APPLE as Hex), read(reading(324.9)), bothReceived)

describe('a pool', () => {
  it('is followed once its tokens were read and its logs are received, and this is said once', async () => {
    const ingest = await open(received(APPLE as Hex))
    await play(ingest, [
      [sealedEvent(101, []), ''],
      [read({ kind: 'unreadable', reason: 'no answer' }), 'quote null in 101'],
      [read({ ...reading(324.9), areTokensUnread: true }), 'quote 324.9 in 100'],
      [bothReceived, ''],
      [read(reading(324.9)), ''],
      [received(APPLE as Hex), ''],
      [bothReceived, 'followed from 102'],
      [[bothReceived, read(reading(324.9))], ''],
      'restart',
      [[bothReceived, read(reading(324.9))], ''],
    ])
  })

  it('is dropped if it trades other tokens, and followed again if it no longer does', async () => {
    const ingest = await open(received(APPLE as Hex))
    await play(ingest, [
      [read(wrong), 'dropped from 101 wrong_tokens, quote null in 100'],
      [read(wrong), ''],
      'restart',
      [read(wrong), ''],
      [read(reading(324.9)), 'quote 324.9 in 100'],
      [bothReceived, 'followed from 101'],
    ])
  })

  it('is followed on the word of the settings where the node answers no calls', async () => {
    const ingest = await open(received(APPLE as Hex))
    await play(ingest, [
      [read(refused), 'quote null in 100'],
      [bothReceived, 'followed from 101'],
      [pushed({ block: 101 }), 'buy 1.5 at 324.90438933 preconfirmed for a fee of null, quote 324.9 in 101'],
      [read(reading(324.9)), ''],
      [pushed({ block: 101, index: 1 }), 'buy 1.5 at 324.90438933 preconfirmed'],
      [read(wrong), 'dropped from 101 wrong_tokens, quote null in 100'],
      [read(refused), ''],
      [bothReceived, ''],
    ])
  })

  it('is dropped with its token, and followed again with it', async () => {
    const ingest = await openFollowed()
    await play(ingest, [
      [listEvent(), 'token, dropped from 101 delisted'],
      [pushed({ block: 101 }), ''],
      [listEvent(apple()), ''],
      [[received(APPLE as Hex), read(reading(324.9))], 'token, multiplier, nav, quote 324.9 in 100'],
      [bothReceived, 'followed from 101'],
    ])
  })

  it('is dropped if the settings no longer name it, and its open trades are settled all the same', async () => {
    const ingest = await openFollowed()
    await ingest.publish(pushed({ block: 101 }))
    const without = await ingest.restart({ worth: settingsOf() })
    expect(await without.publish(listEvent(apple()))).toEqual(['dropped from 101 settings'])
    expect(await without.publish(pushed({ block: 102, index: 1 }))).toEqual([])
    expect(await without.publish(sealedEventOfLogs(101, [bought({ block: 101 })], { addresses: everything }))).toEqual([
      'seal trade',
    ])
  })
})

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

  it('is sealed with the logs of its token, in log order', async () => {
    const ingest = await openFollowed()
    const logs = [bought({ block: 101, index: 0 }), logAt({ block: 101, index: 1 }), bought({ block: 101, index: 2 }, 490)]
    await play(ingest, [
      [transactionEvent(logs), 'buy 1.5 at 324.90438933 preconfirmed, transfer, buy 1.5 at 326.66666667 preconfirmed'],
      [sealedEventOfLogs(101, logs, { addresses: everything }), 'seal trade+transfer+trade'],
      [sealedEventOfLogs(101, logs, { addresses: everything }), ''],
    ])
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

  it('is retracted by a reorg, and again sealed in the block that has it', async () => {
    const ingest = await openFollowed()
    await play(ingest, [
      [pushed({ block: 101 }), 'buy 1.5 at 324.90438933 preconfirmed'],
      [sealedEventOfLogs(101, [bought({ block: 101 })], { addresses: everything }), 'seal trade'],
      [{ type: 'reorg', from: 101 }, ''],
      [sealedEventOfLogs(101, [], { addresses: everything, hash: blockHash(7) }), 'retract trade reorg'],
    ])
  })

  it('is amended if its pool had another price, even for the same amounts', async () => {
    const ingest = await openFollowed()
    await play(ingest, [
      [pushed({ block: 101 }), 'buy 1.5 at 324.90438933 preconfirmed'],
      [sealedEventOfLogs(101, [bought({ block: 101 }, undefined, 330)], { addresses: everything }), 'amend pool_price, seal trade'],
    ])
  })

  it('is amended if its transaction swaps another amount, and not if it repeats', async () => {
    const ingest = await openFollowed()
    await play(ingest, [
      [pushed({ block: 101 }), 'buy 1.5 at 324.90438933 preconfirmed'],
      [pushed({ block: 101 }), ''],
      [
        sealedEventOfLogs(101, [bought({ block: 101 }, 480, 320)], { addresses: everything }),
        'amend currency_amount,price,pool_price,basis_bps, seal trade',
      ],
    ])
  })

  it('survives a restart, and is settled once', async () => {
    const ingest = await openFollowed()
    await play(ingest, [
      [pushed({ block: 101 }), 'buy 1.5 at 324.90438933 preconfirmed'],
      'crash',
      [pushed({ block: 101 }), ''],
      [sealedEventOfLogs(101, [bought({ block: 101 })], { addresses: everything }), 'seal trade'],
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

  it('is not made of another event of the pool, nor of a swap of another layout', async () => {
    const ingest = await openFollowed()
    const [minted, cut] = [bought({ block: 101 }), bought({ block: 101, index: 1 })]
    const logs = [
      { ...minted, topics: [blockHash(1), ...minted.topics.slice(1)] },
      { ...cut, data: cut.data.slice(0, -64) as Hex },
    ]
    expect(await ingest.publish(transactionEvent(logs))).toEqual([])
    expect(ingest.counts).toEqual({ repeated: 0, unlisted: 0, unreadable: 1 })
  })
})
