import { writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { DuckDBInstance } from '@duckdb/node-api'
import { expect, it, onTestFinished } from 'vitest'
import { program } from '../../../src/docs/snippets.ts'
import type { StoredBar } from '../../../src/protocol/bars/bars-query.ts'
import { SeededRandom } from '../../simulation/seeded-random.ts'
import { createTempFolder } from '../../support/child-program.ts'
import { isNightly } from '../../support/test-length.ts'
import { makeBlock, openTradedMinutes, startMinute, type TradedMinutes, trade, waitForBar } from '../bars/traded-minutes.ts'
import { readLines } from '../history-reader.ts'

const MINUTES = isNightly ? 400 : 40
const BLOCKS_PER_MINUTE = 3
const MOST_SWAPS = 3
/** Deeper than a minute, so that bars change after they were published. */
const MOST_REPLACED = 8

const kinds = ['uniswap_v3', 'uniswap_v4', 'slipstream'] as const

/** Makes minutes of swaps, some of which are dropped, moved, late, or replaced after their minute. */
async function makeMinutes(opened: TradedMinutes, random: SeededRandom): Promise<void> {
  const { devnet, listener } = opened
  const recent: `0x${string}`[] = []
  for (let nth = 0; nth < MINUTES * BLOCKS_PER_MINUTE; nth += 1) {
    // Some minutes have no trade.
    const swaps = random.chance(60) ? random.int(1, MOST_SWAPS) : 0
    if (random.chance(10)) devnet.faults.lostFlashes = 1
    const hashes = Array.from({ length: swaps }, () => {
      const [symbol, least] = random.pick([
        ['AAPLc', 280],
        ['TSLAc', 380],
      ])
      const kind = random.pick(kinds)
      return devnet.swap(symbol, { kind, price: `${least + random.int(0, 60)}.${random.int(100_000, 999_999)}` })
    })
    devnet.makeFlashblock()
    for (const hash of hashes) {
      const fate = random.int(1, 10)
      if (fate === 1) devnet.faults.drop(hash)
      if (fate === 2) devnet.faults.move(hash)
    }
    recent.push(...hashes)
    const { number, logs } = devnet.seal()
    if (logs.length > 0) await listener.until(() => listener.messagesOf('seal').some(({ block }) => block.number === number))
    if (random.chance(8))
      devnet.reorg(
        random.int(1, MOST_REPLACED),
        recent.slice(-8).filter(() => random.chance(50)),
      )
  }
}

/** Integers of 128 bits: DuckDB divides decimals as doubles. A sum or a product that overflows is an error. */
const PLACES = 18
const macros = `
CREATE MACRO ten_to(places) AS ('1' || repeat('0', places))::HUGEINT;
CREATE MACRO units(text, places) AS (split_part(text, '.', 1) || rpad(split_part(text, '.', 2), places, '0'))::HUGEINT;
CREATE MACRO half_even(n, d) AS n // d + (2 * (n % d) > d OR (2 * (n % d) = d AND (n // d) % 2 = 1))::INTEGER;
CREATE MACRO fraction_of(u, places) AS rtrim(lpad((u % ten_to(places))::VARCHAR, places, '0'), '0');
CREATE MACRO text_of(u, places) AS
  (u // ten_to(places))::VARCHAR || CASE fraction_of(u, places) WHEN '' THEN '' ELSE '.' || fraction_of(u, places) END;`

/** The messages of a saved export, in the order of their positions. */
const messagesIn = (file: string) => `
SELECT json AS message, json->>'$.type' AS type, split_part(json->>'$.id', '.', 2)::BIGINT AS position
FROM read_ndjson_objects('${file}')`

/** The trades that hold and are sealed: the newest fact of each key, unless it is a retract. */
const trades = `
CREATE TABLE trades AS
WITH facts AS (
  SELECT message->>'$.key' AS key, message->>'$.symbol' AS symbol, position,
    CASE type WHEN 'trade' THEN message WHEN 'amend' THEN message->'$.update' END AS trade
  FROM messages WHERE type IN ('trade', 'amend', 'retract')
  QUALIFY row_number() OVER (PARTITION BY key ORDER BY position DESC) = 1
), seals AS (
  SELECT unnest(from_json(message->'$.keys', '["VARCHAR"]')) AS key, position FROM messages WHERE type = 'seal'
)
SELECT symbol, epoch((trade->>'$.block.timestamp')::TIMESTAMPTZ)::BIGINT AS seconds,
  (trade->>'$.block.number')::INTEGER AS block,
  (trade->>'$.block.number')::HUGEINT * 1000000 + (trade->>'$.tx.log_index')::HUGEINT AS place,
  trade->>'$.venue.pool' AS pool, trade->>'$.side' = 'buy' AS is_buy, trade->>'$.price' AS price,
  units(trade->>'$.amount', ${PLACES}) AS amount, units(trade->>'$.shares', ${PLACES}) AS shares,
  units(trade->>'$.currency_amount', ${PLACES}) AS paid,
  struct_pack(bps := trade->>'$.basis_bps', basis := trade->>'$.basis', nav := trade->'$.nav') AS value
FROM facts
WHERE trade->>'$.type' = 'trade' AND (
  trade->>'$.stage' = 'sealed' OR EXISTS (FROM seals WHERE seals.key = facts.key AND seals.position > facts.position)
)`

const timeOf = (seconds: string) => `strftime(make_timestamp(1000000 * (${seconds})), '%Y-%m-%dT%H:%M:%S.000Z')`
const barsOf = (seconds: number) => `
SELECT symbol, ${timeOf('start')} AS start, ${timeOf(`start + ${seconds}`)} AS "end",
  arg_min(price, place) FILTER (price IS NOT NULL) AS open, arg_max(price, units(price, 8)) AS high,
  arg_min(price, units(price, 8)) AS low, arg_max(price, place) FILTER (price IS NOT NULL) AS close,
  text_of(half_even(sum(paid) * ten_to(8), sum(amount)), 8) AS vwap, count(*)::INTEGER AS trades,
  text_of(sum(amount), ${PLACES}) AS volume, text_of(sum(shares), ${PLACES}) AS shares,
  text_of(sum(paid), ${PLACES}) AS currency_volume,
  text_of(sum(CASE WHEN is_buy THEN amount ELSE 0 END), ${PLACES}) AS buy_volume,
  text_of(sum(CASE WHEN is_buy THEN paid ELSE 0 END), ${PLACES}) AS buy_currency_volume,
  arg_max(value, place).bps AS basis_bps, arg_max(value, place).basis AS basis, arg_max(value, place).nav AS nav,
  list_sort(list(DISTINCT pool)) AS venues, struct_pack("first" := min(block), "last" := max(block)) AS blocks
FROM (SELECT *, seconds - seconds % ${seconds} AS start FROM trades)
GROUP BY symbol, start ORDER BY start, symbol`

/** The newest message of each bar. */
const lastBars = `
SELECT message FROM messages WHERE type = 'bar'
QUALIFY row_number() OVER (PARTITION BY message->>'$.symbol', message->>'$.start' ORDER BY position DESC) = 1
ORDER BY message->>'$.start', message->>'$.symbol'`

async function openDatabase(file: string) {
  const connection = await (await DuckDBInstance.create()).connect()
  onTestFinished(() => connection.closeSync())
  await connection.run(`${macros} CREATE TABLE messages AS ${messagesIn(file)}; ${trades}`)
  return async (sql: string) => (await connection.runAndReadAll(sql)).getRowObjectsJson()
}

it('SQL over the exported trades and their fates makes each bar, and each last revision that was published', async () => {
  const opened = await openTradedMinutes()
  const { devnet, relay, listener } = opened
  await makeMinutes(opened, new SeededRandom('bars in SQL'))
  devnet.faults.clear()
  startMinute(devnet)
  const last = devnet.chain.pending.timestamp
  await trade(opened, '341.5')
  for (let block = 0; block <= BLOCKS_PER_MINUTE; block += 1) makeBlock(devnet)
  await waitForBar(listener, last)

  const folder = await createTempFolder({ onTestFinished })
  const file = join(folder, 'events.ndjson')
  const exported = await readLines({ relay }, '/v1/events?types=trade,retract,amend,seal&format=ndjson')
  const published = await readLines({ relay }, '/v1/events?types=bar&format=ndjson')
  await writeFile(file, [...exported, ...published].map((line) => `${line}\n`).join(''))
  const query = await openDatabase(file)
  const readBars = async (interval: string): Promise<readonly StoredBar[]> =>
    (await readLines({ relay }, `/v1/bars?interval=${interval}&format=ndjson`)).map((line) => JSON.parse(line))
  const rowsOf = async (seconds: number, until = '9') =>
    (await query(`SELECT * FROM (${barsOf(seconds)}) WHERE "end" <= '${until}' ORDER BY start, symbol`)).map((row) => ({
      ...row,
      nav: JSON.parse(String(row.nav)),
    }))

  const minutes = await readBars('1m')
  const withTrades = minutes.filter(({ trades: count }) => count > 0)
  expect((await rowsOf(60)).length).toBeGreaterThan(MINUTES / 2)
  expect(withTrades.map(({ revision, partial, state, ...bar }) => bar)).toEqual(await rowsOf(60))
  const messages = (await query(lastBars)).map(({ message }) => JSON.parse(String(message)))
  expect(messages.map(({ type, id, prev, address, time, ...bar }) => bar)).toEqual(minutes.map(({ state, ...bar }) => bar))
  // The reorgs changed bars that were published, and removed all trades of some.
  expect(minutes.filter(({ revision }) => revision > 1).length).toBeGreaterThan(2)
  expect(exported.filter((line) => line.includes('"type":"retract"')).length).toBeGreaterThan(10)

  // The last hour and the last five minutes are not over.
  for (const [interval, seconds] of [
    ['5m', 300],
    ['1h', 3_600],
  ] as const) {
    const bars = (await readBars(interval)).filter(({ trades: count }) => count > 0)
    const closedUntil = new Date(1_000 * (devnet.chain.head.timestamp - (devnet.chain.head.timestamp % seconds))).toISOString()
    expect(
      bars.map(({ revision, partial, state, ...bar }) => bar),
      interval,
    ).toEqual(await rowsOf(seconds, closedUntil))
  }

  // The table of the recipe has the same hours.
  const saved = join(folder, 'bars.csv')
  await writeFile(saved, await (await fetch(`${relay.url}/v1/bars/AAPLc?format=csv`)).text())
  const ofTable = await query(program('bars.sql').replaceAll("'bars.csv'", `'${saved}'`))
  const folded = await readLines({ relay }, '/v1/bars/AAPLc?interval=1h&open=true&format=ndjson')
  const hours = folded.map((line): StoredBar => JSON.parse(line)).filter(({ trades: count }) => count > 0)
  expect(hours.length).toBeGreaterThan(0)
  const shortened = (value: unknown) =>
    String(value)
      .replace(/(\.\d*?)0+$/, '$1')
      .replace(/\.$/, '')
  expect(ofTable.map(({ hour, ...row }) => [Date.parse(String(hour)), ...Object.values(row).map(shortened)])).toEqual(
    hours.map(({ symbol, start, open, high, low, close, trades: count, volume }) => [
      ...[Date.parse(start), symbol, open, high, low, close, String(count), volume],
    ]),
  )
})
