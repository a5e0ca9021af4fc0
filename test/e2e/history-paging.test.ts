import { describe, expect, it } from 'vitest'
import { listenNdjson } from '../support/test-listener.ts'
import { openDevnet, openRelayFor } from '../support/test-stack.ts'
import { readAllPages, readLines, tapeTexts } from './history-reader.ts'
import { closeAfterTest } from './listeners.ts'

/** Updates on the tape before the first page is read, and more of them between two pages. */
const UPDATES_BEFORE = 40
const UPDATES_BETWEEN_PAGES = 2
const LIMITS = [7, 1, 20, 2, 100, 3, 1_000]

/** A busy market, and a listener that follows the tape with a query. */
async function openBusyRelay(query: string) {
  const devnet = await openDevnet({ blockMs: 100, flashblockMs: 20, transactionsPerFlashblock: 4, safeDepth: 2 })
  const relay = await openRelayFor(devnet, { FINALITY_POLL: '100ms' })
  const listener = await closeAfterTest(listenNdjson(`${relay.url}/v1/stream?${query}&since=start&format=ndjson&snapshot=false`))
  const waitForUpdates = async (count: number) => {
    const goal = tapeTexts(listener).length + count
    await listener.until(() => tapeTexts(listener).length >= goal)
  }
  await waitForUpdates(UPDATES_BEFORE)
  return { relay, listener, waitForUpdates }
}

const queries = ['symbols=*&types=*', 'symbols=*&stage=sealed', 'symbols=AAPLc,TSLAc,NVDAc&types=transfer,mint,burn&min_value=500']

describe('history that is read while the tape grows', () => {
  it.each(queries)('has each message exactly once, in pages of any size, as NDJSON and as a stream: %s', async (query) => {
    const { relay, listener, waitForUpdates } = await openBusyRelay(query)
    let pageCount = 0
    const path = `/v1/events?${query}`
    const pages = await readAllPages({ relay }, `${path}&limit=5`, async (url) => {
      url.searchParams.set('limit', String(LIMITS[pageCount % LIMITS.length]))
      pageCount += 1
      await waitForUpdates(UPDATES_BETWEEN_PAGES)
    })
    expect([pageCount > 2, pages.length > UPDATES_BEFORE]).toEqual([true, true])
    const { length } = pages
    await listener.until(() => tapeTexts(listener).length >= length)
    const published = tapeTexts(listener).slice(0, length)
    expect(pages).toEqual(published)
    expect((await readLines({ relay }, `${path}&format=ndjson`)).slice(0, length)).toEqual(published)
    const end = JSON.parse(published.at(-1) ?? '').id
    expect(await readLines({ relay }, `${path}&format=ndjson&before=${end}`)).toEqual(published.slice(0, -1))
    expect(await readLines({ relay }, `${path}&format=ndjson&order=desc&until=${end}`)).toEqual(published.slice(0, -1).toReversed())
    const back = await readAllPages({ relay }, `${path}&order=desc&limit=30`, () => waitForUpdates(UPDATES_BETWEEN_PAGES))
    const newest = back[0] ?? ''
    await listener.until(() => tapeTexts(listener).includes(newest))
    const known = tapeTexts(listener)
    expect(back).toEqual(known.slice(0, known.indexOf(newest) + 1).toReversed())
  })

  it('continues after the last line, and can be split by time', async () => {
    const { relay, listener } = await openBusyRelay('symbols=*&types=*')
    const path = '/v1/events?types=*&since=1h'
    const early = await readLines({ relay }, `${path}&format=ndjson&limit=20`)
    const rest = await readLines({ relay }, `${path}&format=ndjson&after=${JSON.parse(early.at(-1) ?? '').id}`)
    const published = [...early, ...rest]
    await listener.until(() => tapeTexts(listener).length >= published.length)
    expect(published).toEqual(tapeTexts(listener).slice(0, published.length))
    const middle = JSON.parse(published[30] ?? '')
    const since = await readLines({ relay }, `/v1/events?types=*&format=ndjson&since=${middle.time}`)
    const until = await readLines({ relay }, `/v1/events?types=*&format=ndjson&until=${middle.time}`)
    const isBefore = (text: string) => JSON.parse(text).time < middle.time
    expect(until).toEqual(published.filter(isBefore))
    expect(since.slice(0, published.length - until.length)).toEqual(published.slice(until.length))
    expect([...until, ...since].slice(0, published.length)).toEqual(published)
  })
})
