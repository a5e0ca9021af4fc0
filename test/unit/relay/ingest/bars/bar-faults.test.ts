import { expect, it } from 'vitest'
import type { Hex } from '../../../../../src/lib/hex.ts'
import type { ReadFilter } from '../../../../../src/relay/chain/logs/log-filter.ts'
import { minuteBarOf } from '../../../../../src/relay/tape/bars/bar-row.ts'
import { barFieldsOfMinute } from '../../../../../src/relay/tokens/minute-bars.ts'
import { APPLE, apple } from '../../tokens/stock-records.ts'
import {
  bothReceived,
  bought,
  boughtOfManager,
  EURC,
  everything,
  MANAGER,
  managedPool,
  ofManager,
  openWith,
  pool,
  pushed,
  read,
  reading,
  readOf,
  received,
  secondary,
  settingsOf,
} from '../pools/pool-fixture.ts'
import { listEvent, sealedEventOfLogs } from '../reducer-fixture.ts'

const BEGIN_S = 1_795_176_000
type Ingest = Awaited<ReturnType<typeof openWith>>

/** Seals a block of each minute. */
const sealed = (
  block: number,
  logs: Parameters<typeof sealedEventOfLogs>[1],
  filters: readonly ReadFilter[] = [{ addresses: everything }],
) => sealedEventOfLogs(block, logs, { filters, timestamp: BEGIN_S + 60 * (block - 101) })

const barsOf = ({ openedTape: { tape } }: Ingest) =>
  tape.readBars(APPLE as Hex, { since: 0, until: 1e12 }).map((row) => barFieldsOfMinute(minuteBarOf(row), 1))

it('a trade in a pool of another currency is in no bar after a restart either', async () => {
  const ingest = await openWith(secondary(pool), received(APPLE as Hex), readOf(secondary(pool), reading(324.9)), bothReceived)
  const again = await ingest.restart()
  await again.publish(pushed({ block: 101 }))
  await again.publish(sealed(101, [bought({ block: 101 })]))
  await again.publish(sealed(102, []))
  expect(barsOf(ingest)).toMatchObject([{ trades: 0, venues: [] }])
  expect((await ingest.updates()).filter(({ type }) => type === 'bar')).toEqual([])
})

it('a refused pool that the settings no longer name makes no later bar partial', async () => {
  const both = [pool, managedPool]
  const filters = [{ addresses: everything }, ofManager]
  const ingest = await openWith(pool, received(APPLE as Hex), read(reading(324.9)))
  const run = await ingest.restart({ worth: settingsOf(...both) })
  await run.publish(readOf(managedPool, reading(324.9)), { type: 'subscribed', filters })
  await run.publish(sealed(101, [bought({ block: 101 }), boughtOfManager({ block: 101, index: 1 })], filters))
  await run.publish({ type: 'refusal', contract: MANAGER, isOver: false })
  for (const block of [102, 103]) await run.publish(sealed(block, [bought({ block })]))
  const without = await ingest.restart({ worth: settingsOf(pool) })
  for (const block of [104, 105, 106, 107]) await without.publish(sealed(block, [bought({ block })]))
  // The minutes of the blocks beside those without the pool count too.
  const refused = Array.from({ length: 5 }, () => 'refused')
  expect(barsOf(ingest).map(({ partial }) => partial)).toEqual([...refused, null])
})

it('a refused pool whose currency is no longer that of the bars makes no bar partial after its refusal', async () => {
  const filters = [{ addresses: everything }, ofManager]
  const ingest = await openWith([pool, managedPool], received(APPLE as Hex), read(reading(324.9)))
  await ingest.publish(readOf(managedPool, reading(324.9)), { type: 'subscribed', filters })
  await ingest.publish(sealed(101, [bought({ block: 101 }), boughtOfManager({ block: 101, index: 1 })], filters))
  await ingest.publish({ type: 'refusal', contract: MANAGER, isOver: false })
  await ingest.publish(sealed(102, [bought({ block: 102 })]))
  const { quotes } = settingsOf(pool, managedPool)
  const run = await ingest.restart({ worth: { quotes: { ...quotes, mainCurrency: EURC.address } } })
  await run.publish({ type: 'subscribed', filters }, { type: 'refusal', contract: MANAGER, isOver: true })
  for (const block of [103, 104, 105, 106, 107]) await run.publish(sealed(block, [bought({ block })], filters))
  expect(barsOf(ingest).at(-1)?.partial).toBeNull()
})

it('a pool of another currency that the settings no longer name makes no bar partial', async () => {
  const other = { ...secondary(pool), id: `0x${'2'.repeat(40)}` as Hex }
  const all = [...everything, other.id]
  const ingest = await openWith([pool, other], received(APPLE as Hex), read(reading(324.9)))
  await ingest.publish(readOf(other, reading(324.9)), received(...all))
  await ingest.publish(sealed(101, [bought({ block: 101 })], [{ addresses: all }]))
  const run = await ingest.restart({ worth: settingsOf(pool) })
  await run.publish(listEvent(apple()))
  for (const block of [102, 103, 104, 105]) await run.publish(sealed(block, [bought({ block })]))
  expect((await ingest.updates()).findLast(({ type }) => type === 'venue')).toMatchObject({ change: 'dropped', reason: 'settings' })
  expect(barsOf(ingest).map(({ partial }) => partial)).toEqual(barsOf(ingest).map(() => null))
})
