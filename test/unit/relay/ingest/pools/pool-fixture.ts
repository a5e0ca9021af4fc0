import type { Hex } from '../../../../../src/lib/hex.ts'
import type { Update } from '../../../../../src/protocol/updates.ts'
import { MANAGER_SWAP_TOPIC } from '../../../../../src/relay/chain/logs/event-decoder.ts'
import type { ReadFilter } from '../../../../../src/relay/chain/logs/log-filter.ts'
import type { Pool } from '../../../../../src/relay/chain/pools/pool.ts'
import type { PoolReading } from '../../../../../src/relay/chain/pools/pool-queries.ts'
import type { PoolSetting } from '../../../../../src/relay/config/pool-settings.ts'
import type { IngestEvent } from '../../../../../src/relay/ingest/fold-batch.ts'
import { word } from '../../chain/node-json.ts'
import { APPLE, apple, NOON } from '../../tokens/stock-records.ts'
import { headEvent, type LogPosition, listEvent, openIngest, statusEvent, transactionEvent } from '../reducer-fixture.ts'
import { managerSwap, swap } from '../token-logs.ts'

/** An ingest of one token with one pool. */

export const USDC = { symbol: 'USDC', address: '0x833589fcd6edb6e08f4c7c32d4f71b54bda02913', decimals: 6 } as const
const EURC = { symbol: 'EURC', address: '0x60a3e35cc302bfa44cb288bc5a4f316fdb1adb42', decimals: 6 } as const
export const POOL: Hex = `0x${'1'.repeat(40)}`
export const pool: Pool = { token: APPLE as Hex, kind: 'uniswap_v3', id: POOL, manager: null, currency: USDC }

/** The square root of this price of the token, which stands after the currency in the pool. */
const rootOf = (price: number): bigint => BigInt(Math.round(Math.sqrt(100 / price) * 2 ** 40)) << 56n
export const reading = (price: number): Extract<PoolReading, { kind: 'read' }> => ({
  kind: 'read',
  sqrtPriceX96: rootOf(price),
  liquidity: 10n ** 16n,
  feeBps: '30',
})
export const wrong: PoolReading = { kind: 'unreadable', reason: 'it trades other tokens', isWrong: true }
export const refused: PoolReading = { kind: 'unreadable', reason: 'the method does not exist', isRefused: true }
export const readOf = (read: Pool, answer: PoolReading): IngestEvent => ({
  ...{ type: 'pools', block: { number: 100, hash: null, timestamp: NOON / 1_000 } },
  pools: new Map([[read, answer]]),
})
export const read = (answer: PoolReading): IngestEvent => readOf(pool, answer)
export const received = (...addresses: readonly Hex[]): IngestEvent => ({ type: 'subscribed', filters: [{ addresses }] })
export const bothReceived = received(APPLE as Hex, POOL)

/** Somebody buys 1.5 tokens for this many dollars. */
export const bought = (location: LogPosition, dollars = 487.356584, price = 324.9) =>
  swap({ ...location, address: POOL }, [BigInt(Math.round(dollars * 1e6)), -150_000_000n], rootOf(price))
export const pushed = (location: LogPosition, ...sale: [number?, number?]) => transactionEvent([bought(location, ...sale)])
export const everything = [APPLE as Hex, POOL]

/** A pool of Uniswap v4, the contract of its swaps, and the filters that match its token and its swaps. */
export const MANAGER: Hex = `0x${'4'.repeat(40)}`
export const managedPool: Pool = { ...pool, kind: 'uniswap_v4', id: word(44), manager: MANAGER }
export const boughtOfManager = (location: LogPosition) =>
  managerSwap({ ...location, address: MANAGER }, managedPool.id, [-487_356_584n, 150_000_000n], rootOf(324.9))
export const ofManager: ReadFilter = { addresses: [MANAGER], topics: [[MANAGER_SWAP_TOPIC], [managedPool.id]] }
export const ofTokens: ReadFilter = { addresses: [APPLE as Hex] }

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
    case 'bar': {
      const { revision, trades, close, blocks, partial } = update
      return `bar r${revision} ${trades} at ${close} in ${blocks && `${blocks.first}-${blocks.last}`}${partial === null ? '' : ` partial ${partial}`}`
    }
    default:
      return update.type
  }
}

/** Makes a pool one against another currency than that of the bars. */
export const secondary = (one: Pool): Pool => ({ ...one, currency: EURC })

export const settingsOf = (...pools: readonly PoolSetting[]) => ({
  quotes: { pools, mainCurrency: USDC.address as Hex, poolMinDepth: { units: 1_000n, scale: 0 } },
})
export const open = async (...first: readonly IngestEvent[]) => openWith(pool, ...first)
export const openWith = async (pools: PoolSetting | readonly PoolSetting[], ...first: readonly IngestEvent[]) => {
  const worth = settingsOf(...[pools].flat())
  return openIngest(tell, { first: [listEvent(apple()), statusEvent('pendingLogs'), headEvent(100), ...first], worth })
}
/** The pool is followed. */
export const openFollowed = () => open(received(APPLE as Hex), read(reading(324.9)), bothReceived)
