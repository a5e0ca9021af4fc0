import { statSync } from 'node:fs'
import { get } from 'node:http'
import { join } from 'node:path'
import { expect, it, vi } from 'vitest'
import type { Hex } from '../../src/lib/hex.ts'
import { barTimesNote } from '../../src/relay/notes/bar-notes.ts'
import { type BarRow, barRowOf, type MinuteBar } from '../../src/relay/tape/bars/bar-row.ts'
import { Notes } from '../../src/relay/tape/notes.ts'
import { median } from '../bench/percentiles.ts'
import { createTempFolder } from '../support/child-program.ts'
import { openRelay } from '../support/in-process-relay.ts'
import { openLocalTape } from '../support/local-tape.ts'
import { isNightly } from '../support/test-length.ts'
import { openDevnet } from '../support/test-stack.ts'

/** Eleven million minutes take minutes to write. */
vi.setConfig({ testTimeout: 1_800_000 })

const DAYS = isNightly ? 400 : 4
const TOKENS = 20
const MINUTES = DAYS * 1_440
const MINUTES_PER_BATCH = 500
const PAGE_BOUND_MS = 10
const REQUESTS = 21

/** A minute in which two pools traded. */
const minuteOf = (address: Hex, start: number, nth: number): BarRow => {
  const price = `${300 + (nth % 50)}.${10_000_000 + ((nth * 7_919) % 90_000_000)}`
  const nav = {
    price,
    updated_at: new Date((start - 30) * 1_000).toISOString(),
    age_s: 60,
    state: 'fresh',
    stale_after_s: 93_600,
    frozen: null,
  }
  const place = { block: 20_000_000 + nth * 30, logIndex: 17, price }
  const amount = { units: BigInt(1_000_000 + nth), scale: 8 }
  const paid = { units: BigInt(3_000_000 + nth), scale: 6 }
  const part = {
    ...{ open: place, close: place, high: price, low: price, trades: 1 + (nth % 9), volume: amount, shares: amount },
    ...{ currencyVolume: paid, buyVolume: amount, buyCurrencyVolume: paid, firstBlock: place.block },
    last: { block: place.block, logIndex: 17, basisBps: '3.25', basis: 'premium', nav },
  } as const
  const pools = ['a1', 'b2'].map((byte) => ({ pool: `0x${byte.repeat(20)}` as Hex, isMain: true, part }))
  const bar: MinuteBar = { address, start, edition: 1, revision: 1, partial: null, closedBy: place.block + 30, pools } as MinuteBar
  return barRowOf(bar)
}

it(`a first page of ${DAYS} days of minutes of ${TOKENS} tokens takes less than ${PAGE_BOUND_MS} ms`, async (test) => {
  const devnet = await openDevnet({ pace: 'manual' }, test)
  const dir = await createTempFolder(test)
  const { address } = devnet.tokens.find(({ symbol }) => symbol === 'AAPLc') ?? expect.unreachable()
  const others = Array.from({ length: TOKENS - 1 }, (_, nth): Hex => `0x${(nth + 1).toString(16).padStart(2, '0').repeat(20)}`)
  const end = Math.floor(Date.now() / 60_000) * 60
  const tape = openLocalTape({
    dataDir: dir,
    tapeRetentionMs: 86_400_000,
    tapeMaxMessages: 10_000,
    now: Date.now,
    random: Math.random,
  })
  for (let from = 0; from < MINUTES; from += MINUTES_PER_BATCH) {
    const numbers = Array.from({ length: Math.min(MINUTES_PER_BATCH, MINUTES - from) }, (_, index) => from + index)
    const rows = [address, ...others].flatMap((token) => numbers.map((nth) => minuteOf(token, end - (MINUTES - nth) * 60, nth)))
    const notes = new Notes().set(barTimesNote, { keptFrom: end, openFrom: end })
    await tape.writer.append({ first: tape.next, updates: [], notes, bars: rows, keepAfter: 0 })
  }
  await tape.close()
  const relay = await openRelay(devnet, { DATA_DIR: dir })
  test.onTestFinished(() => relay.stop())
  const figures: string[] = []
  for (const query of ['', '?order=desc', '?interval=5m&order=desc&limit=100', '?interval=1d', '?limit=5000'])
    for (const accept of ['identity', 'gzip']) {
      const times: number[] = []
      for (let request = 0; request < REQUESTS; request += 1) {
        const startedAt = performance.now()
        await new Promise<void>((resolve) =>
          get(`${relay.url}/v1/bars/AAPLc${query}`, { headers: { 'accept-encoding': accept } }, (answer) => {
            answer.resume()
            answer.once('end', resolve)
          }),
        )
        times.push(performance.now() - startedAt)
      }
      figures.push(`${query || 'default'} ${accept} ${median(times).toFixed(1)} ms`)
    }
  const bytes = statSync(join(dir, 'tape.sqlite')).size
  process.stdout.write(`${MINUTES * TOKENS} minutes, ${(bytes / 1e6).toFixed(0)} MB: ${figures.join(', ')}\n`)
})
