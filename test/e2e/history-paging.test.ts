import { describe, expect, it, onTestFinished } from 'vitest'
import { listenNdjson } from '../support/test-listener.ts'
import { openDevnet, relayOn } from '../support/test-stack.ts'
import { follow, linesAt, textsOf } from './history-reader.ts'

/** How much has happened before the first page is asked for, and how much more between two pages. */
const BEFORE = 40
const BETWEEN = 2
const LIMITS = [7, 1, 20, 2, 100, 3, 1_000]

/** A market that never rests, and one who hears the whole tape by some query. */
async function openMarket(query: string) {
  const devnet = await openDevnet({ blockMs: 100, flashMs: 20, transactionsPerFlash: 4, safeDepth: 2 })
  const relay = await relayOn(devnet, { FINALITY_POLL_MS: '100' })
  const ear = await listenNdjson(`${relay.url}/v1/stream?${query}&since=start&format=ndjson&snapshot=false`)
  onTestFinished(() => ear.close())
  const more = async (count: number) => {
    const goal = textsOf(ear).length + count
    await ear.until(() => textsOf(ear).length >= goal)
  }
  await more(BEFORE)
  return { relay, ear, more }
}

const queries = [
  'symbols=*&types=*',
  'symbols=*&stage=sealed',
  'symbols=AAPLc,TSLAc,NVDAc&types=transfer,mint,burn&min_value=500',
]

describe('history that is read while the tape goes on', () => {
  it.each(queries)(
    'is each message exactly once, by pages of any size, as lines and as a stream: %s',
    async (query) => {
      const { relay, ear, more } = await openMarket(query)
      let nth = 0
      const path = `/v1/events?${query}`
      const pages = await follow({ relay }, `${path}&limit=5`, async (url) => {
        url.searchParams.set('limit', String(LIMITS[nth % LIMITS.length]))
        nth += 1
        await more(BETWEEN)
      })
      expect([nth > 2, pages.length > BEFORE]).toEqual([true, true])
      const { length } = pages
      await ear.until(() => textsOf(ear).length >= length)
      const told = textsOf(ear).slice(0, length)
      expect(pages).toEqual(told)
      expect((await linesAt({ relay }, `${path}&format=ndjson`)).slice(0, length)).toEqual(told)
      const end = JSON.parse(told.at(-1) ?? '').id
      expect(await linesAt({ relay }, `${path}&format=ndjson&before=${end}`)).toEqual(told.slice(0, -1))
      expect(await linesAt({ relay }, `${path}&format=ndjson&order=desc&until=${end}`)).toEqual(
        told.slice(0, -1).toReversed(),
      )
      const back = await follow({ relay }, `${path}&order=desc&limit=30`, () => more(BETWEEN))
      const newest = back[0] ?? ''
      await ear.until(() => textsOf(ear).includes(newest))
      const known = textsOf(ear)
      expect(back).toEqual(known.slice(0, known.indexOf(newest) + 1).toReversed())
    },
  )

  it('goes on where the last line or page was, by time as well', async () => {
    const { relay, ear } = await openMarket('symbols=*&types=*')
    const path = '/v1/events?types=*&since=1h'
    const early = await linesAt({ relay }, `${path}&format=ndjson&limit=20`)
    const rest = await linesAt({ relay }, `${path}&format=ndjson&after=${JSON.parse(early.at(-1) ?? '').id}`)
    const told = [...early, ...rest]
    await ear.until(() => textsOf(ear).length >= told.length)
    expect(told).toEqual(textsOf(ear).slice(0, told.length))
    const middle = JSON.parse(told[30] ?? '')
    const since = await linesAt({ relay }, `/v1/events?types=*&format=ndjson&since=${middle.time}`)
    const until = await linesAt({ relay }, `/v1/events?types=*&format=ndjson&until=${middle.time}`)
    const isBefore = (text: string) => JSON.parse(text).time < middle.time
    expect(until).toEqual(told.filter(isBefore))
    expect(since.slice(0, told.length - until.length)).toEqual(told.slice(until.length))
    expect([...until, ...since].slice(0, told.length)).toEqual(told)
  })
})
