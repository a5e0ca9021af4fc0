import { statSync } from 'node:fs'
import { get } from 'node:http'
import { join } from 'node:path'
import { expect, it, vi } from 'vitest'
import type { Hex } from '../../src/lib/hex.ts'
import { barTimesNote } from '../../src/relay/notes/bar-notes.ts'
import { type BarRow, barRowOf } from '../../src/relay/tape/bars/bar-row.ts'
import { Notes } from '../../src/relay/tape/notes.ts'
import { median } from '../bench/percentiles.ts'
import { createTempFolder, spawnRelay, upstreamOf } from '../support/child-program.ts'
import { openLocalTape } from '../support/local-tape.ts'
import { isNightly } from '../support/test-length.ts'
import { openDevnet } from '../support/test-stack.ts'

/** Eleven million minutes take some minutes to write. */
vi.setConfig({ testTimeout: 1_800_000 })

const DAYS = isNightly ? 400 : 3
const TOKENS = 20
const DAY_MINUTES = 1_440
const REQUESTS = 101
/** Each page has one slice of rows, and a day's bar is one row: how long the past is changes nothing. */
const pages = ['?limit=100', '?limit=100&order=desc', '?interval=1h&limit=100&order=desc', '?interval=1d&limit=100&order=desc', '']
const PAGE_BOUND_MS = 10

/** The row of a minute with trades in one pool. */
function rowOf(address: Hex, start: number, nth: number): BarRow {
  const price = `${300 + (nth % 50)}.${10_000_000 + ((nth * 7_919) % 90_000_000)}`
  const place = { block: 20_000_000 + nth * 30, logIndex: 17, price }
  const [amount, paid] = [
    { units: BigInt(1_000_000 + nth), scale: 8 },
    { units: BigInt(3_000_000 + nth), scale: 6 },
  ]
  const nav = { price, updated_at: new Date((start - 30) * 1_000).toISOString(), age_s: 60, stale_after_s: 93_600, frozen: null }
  const part = {
    ...{ open: place, close: place, high: price, low: price, trades: 1 + (nth % 9), volume: amount, shares: amount },
    ...{ currencyVolume: paid, buyVolume: amount, buyCurrencyVolume: paid, firstBlock: place.block },
    last: { ...place, basisBps: '3.25', basis: 'premium', nav: { ...nav, state: 'fresh' } },
  } as const
  const pools = [{ pool: `0x${'a1'.repeat(20)}` as Hex, isMain: true, part }]
  return barRowOf({ address, start, edition: 1, revision: 1, partial: null, closedBy: place.block + 30, pools })
}

const timeOf = (url: string): Promise<number> =>
  new Promise((resolve, reject) => {
    const startedAt = performance.now()
    get(url, (answer) => answer.resume().once('end', () => resolve(performance.now() - startedAt))).once('error', reject)
  })

it(`pages of bars take a few milliseconds in ${DAYS} days of minutes of ${TOKENS} tokens`, async (test) => {
  const devnet = await openDevnet({ pace: 'manual' }, test)
  const dataDir = await createTempFolder(test)
  const { address } = devnet.tokens.find(({ symbol }) => symbol === 'AAPLc') ?? expect.unreachable()
  const others = Array.from({ length: TOKENS - 1 }, (_, nth): Hex => `0x${(nth + 1).toString(16).padStart(2, '0').repeat(20)}`)
  const end = Math.floor(Date.now() / 60_000) * 60
  const clock = { now: Date.now, random: Math.random }
  const tape = openLocalTape({ dataDir, tapeRetentionMs: 86_400_000, tapeMaxMessages: 10_000, ...clock })
  for (let day = 0; day < DAYS; day += 1) {
    const bars = [address, ...others].flatMap((token) =>
      Array.from({ length: DAY_MINUTES }, (_, minute) => {
        const nth = day * DAY_MINUTES + minute
        return rowOf(token, end - (DAYS * DAY_MINUTES - nth) * 60, nth)
      }),
    )
    const notes = new Notes().set(barTimesNote, { keptFrom: end, openFrom: end })
    await tape.writer.append({ first: tape.next, updates: [], notes, bars, keepAfter: 0 })
  }
  await tape.close()
  const relay = spawnRelay(test, { ...upstreamOf(devnet), PORT: '0', DATA_DIR: dataDir, BARS_RETENTION: '500d' })
  const url = `${await relay.listeningUrl()}/v1/bars/AAPLc`
  const times: Record<string, number> = {}
  for (const page of pages) {
    const all: number[] = []
    for (let request = 0; request < REQUESTS; request += 1) all.push(await timeOf(url + page))
    times[page] = median(all)
  }
  const bytes = statSync(join(dataDir, 'tape.sqlite')).size
  const figures = pages.map((page) => `${page || 'the default page'} ${times[page]?.toFixed(1)} ms`)
  process.stdout.write(`${DAYS * DAY_MINUTES * TOKENS} minutes, ${(bytes / 1e6).toFixed(0)} MB: ${figures.join(', ')}\n`)
  const { bars } = (await (await fetch(url)).json()) as { readonly bars: readonly unknown[] }
  expect(bars).toHaveLength(500)
  if (!isNightly) return
  for (const page of pages) expect(times[page], page).toBeLessThan(PAGE_BOUND_MS)
})
