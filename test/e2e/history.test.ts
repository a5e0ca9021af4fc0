import { describe, expect, it, onTestFinished } from 'vitest'
import { EventsPage, OneFact } from '../../src/protocol/history.ts'
import { Snapshots } from '../../src/protocol/token-list.ts'
import { listenNdjson, listenSse, listenWs, type TestListener } from '../support/test-listener.ts'
import { fetchDocumented, openTestStack, type TestStack, tapeUpdatesOf, transfer } from '../support/test-stack.ts'
import { pageTexts, readAllPages, readLines, tapeTexts } from './history-reader.ts'
import { closeAfterTest } from './listeners.ts'

/** Longer replays than this become a gap. */
const MAX_REPLAY = 3

describe('history', () => {
  it('has the bytes of the stream page by page, in both views', async () => {
    const stack = await openTestStack()
    for (const query of ['symbols=*&types=*', 'symbols=AAPLc,TSLAc', 'symbols=*&stage=sealed']) {
      const listener = await closeAfterTest(listenNdjson(`${stack.relay.url}/v1/stream?${query}&snapshot=false&since=start`))
      const before = listener.messagesOf('seal').length
      transfer(stack, 'AAPLc', 3)
      transfer(stack, 'TSLAc', 2)
      stack.devnet.seal()
      await listener.until(() => listener.messagesOf('seal').length >= before + 2)
      const published = tapeTexts(listener)
      const read = await readAllPages(stack, `/v1/events?${query}&limit=4`)
      expect(read.slice(0, published.length)).toEqual(published)
    }
  })

  it('covers all tokens where the query names none, and may start with the newest', async () => {
    const stack = await openTestStack()
    const listener = await closeAfterTest(listenNdjson(`${stack.relay.url}/v1/stream?symbols=*&types=transfer`))
    transfer(stack, 'AAPLc', 2)
    transfer(stack, 'TSLAc', 1)
    await listener.until(() => tapeUpdatesOf(listener).length === 3)
    const { text, json } = await fetchDocumented(`${stack.relay.url}/v1/events?types=transfer&order=desc&limit=2`)
    const page = EventsPage.parse(json)
    expect(pageTexts(text, page)).toEqual(tapeTexts(listener).slice(1).toReversed())
    const rest = await fetchDocumented(`${stack.relay.url}/v1/events?types=transfer&order=desc&limit=2&before=${page.next}`)
    expect(rest.json).toMatchObject({ events: [tapeUpdatesOf(listener)[0]], next: null })
  })

  it('of one fact has all its updates and its stage', async () => {
    const stack = await openTestStack()
    const listener = await closeAfterTest(listenNdjson(`${stack.relay.url}/v1/stream/AAPLc?snapshot=false&types=transfer,seal`))
    transfer(stack)
    const { key } = await listener.waitFor('transfer')
    const factNow = async () => {
      const { status, json, text } = await fetchDocumented(`${stack.relay.url}/v1/events/${key}`)
      expect(status).toBe(200)
      const fact = OneFact.parse(json)
      expect(text).toBe(JSON.stringify(fact))
      return { stage: fact.stage, texts: fact.events.map((update) => JSON.stringify(update)) }
    }
    expect(await factNow()).toEqual({ stage: 'preconfirmed', texts: tapeTexts(listener) })
    stack.devnet.seal()
    await listener.waitFor('seal', ({ keys }) => keys.includes(key))
    expect(await factNow()).toEqual({ stage: 'sealed', texts: tapeTexts(listener) })
  })
})

describe('the history routes', () => {
  it.each(['/v1/events', '/v1/events?types=status', '/v1/events/7'])('allow every origin: %s', async (path) => {
    const { relay } = await openTestStack()
    const url = `${relay.url}${path}`
    const got = await fetchDocumented(url, { headers: { origin: 'https://example.com' } })
    expect(got.headers.get('access-control-allow-origin')).toBe('*')
    expect(got.headers.get('content-type')).toBe('application/json')
    const head = await fetchDocumented(url, { method: 'HEAD' })
    expect([head.status, head.text]).toEqual([got.status, ''])
    const preflight = await fetchDocumented(url, {
      method: 'OPTIONS',
      headers: { origin: 'https://example.com', 'access-control-request-method': 'GET' },
    })
    expect(preflight.status).toBeLessThan(300)
    expect(preflight.headers.get('access-control-allow-origin')).toBe('*')
    const posted = await fetchDocumented(url, { method: 'POST', body: '{}' })
    expect([posted.status, posted.headers.get('allow')]).toEqual([405, 'GET, HEAD, OPTIONS'])
  })

  it('forbid caches to store an answer', async () => {
    const { relay } = await openTestStack()
    expect((await fetchDocumented(`${relay.url}/v1/events`)).headers.get('cache-control')).toBe('no-store')
  })

  it.each([
    ['/v1/events?limit=0', 400, 'bad_parameter'],
    ['/v1/events?after=k.1&after=k.2', 400, 'bad_parameter'],
    ['/v1/events?after=zzzzz9.1', 410, 'epoch'],
    ['/v1/events?symbols=APPL', 404, 'unknown_symbol'],
    ['/v1/events?symbol=AAPLc', 400, 'unknown_parameter'],
    [`/v1/events/7-0x${'a'.repeat(64)}-0?limit=1`, 400, 'unknown_parameter'],
    ['/v1/snapshot?symbols=APPL', 404, 'unknown_symbol'],
    ['/v1/snapshot?stage=sealed', 400, 'unknown_parameter'],
    ['/v1/stream?symbols=AAPLc&type=nav', 400, 'unknown_parameter'],
    ['/v1/events/7', 400, 'bad_parameter'],
    ['/v1/events/%E0%A4%A', 400, 'bad_parameter'],
    [`/v1/events/7-0x${'a'.repeat(64)}-0`, 404, 'unknown_key'],
  ])('refuse %s with a reason', async (path, code, reason) => {
    const { relay } = await openTestStack()
    const { status, json } = await fetchDocumented(`${relay.url}${path}`)
    expect(status).toBe(code)
    expect(json).toMatchObject({ code, details: [{ '@type': `stocktape/${reason}` }] })
  })
})

it('the snapshots of all tokens are one cut, from which a stream continues', async () => {
  const { devnet, relay } = await openTestStack()
  transfer({ devnet }, 'AAPLc', 1)
  const all = Snapshots.parse((await fetchDocumented(`${relay.url}/v1/snapshot`)).json)
  const listener = await listenNdjson(`${relay.url}/v1/stream?symbols=*&since=${all.as_of}&snapshot=always`)
  onTestFinished(() => listener.close())
  await listener.waitFor('live')
  expect(listener.messagesOf('subscribed')).toMatchObject([{ resume: 'full' }])
  const state = ({ symbol, token, multiplier }: (typeof all.snapshots)[number]) => ({ symbol, token, multiplier })
  expect(all.snapshots.map(state)).toEqual(listener.messagesOf('snapshot').map(state))
  for (const { id, as_of } of all.snapshots) expect([id, as_of]).toEqual([all.as_of, all.as_of])
  const some = Snapshots.parse((await fetchDocumented(`${relay.url}/v1/snapshot?symbols=tsla,APPL`)).json)
  expect(some.snapshots.map(({ symbol }) => symbol)).toEqual(['TSLAc'])
  expect(some.rejected).toEqual([{ symbol: 'APPL', reason: 'unknown_symbol', suggest: ['AAPLc'] }])
})

describe('a gap after a too long replay', () => {
  const transports = {
    SSE: ({ relay }: TestStack, query: string) => listenSse(`${relay.url}/v1/stream?${query}`),
    NDJSON: ({ relay }: TestStack, query: string) => listenNdjson(`${relay.url}/v1/stream?${query}`),
    WebSocket: ({ relay }: TestStack, query: string) => listenWs(`${relay.wsUrl}?${query}`),
  }
  const selections = [
    'symbols=*&types=*',
    'symbols=AAPLc,TSLAc',
    'symbols=AAPLc&types=transfer&min_shares=2',
    'symbols=*&types=transfer,nav&min_value=1000',
    'symbols=*&stage=sealed',
    'symbols=AAPLc&stage=sealed&types=transfer&min_value=1000',
  ]

  it.each(Object.entries(transports).flatMap(([name, open]) => selections.map((query) => [name, query, open] as const)))(
    'has a backfill link whose pages and lines complete the live updates: %s, %s',
    async (_, query, open) => {
      const stack = await openTestStack({ MAX_REPLAY: String(MAX_REPLAY) })
      const all = await closeAfterTest(listenNdjson(`${stack.relay.url}/v1/stream?symbols=*&types=*&snapshot=false`))
      const uninterrupted = await closeAfterTest(listenNdjson(`${stack.relay.url}/v1/stream?${query}&snapshot=false`))
      const { id: start } = await uninterrupted.waitFor('live')
      const transfers = () => all.messagesOf('transfer').length
      /** Transfers of two tokens and sizes in one sealed block; resolves once all seals are published. */
      const round = async () => {
        const before = all.messagesOf('seal').length
        for (const symbol of ['AAPLc', 'TSLAc']) {
          transfer(stack, symbol, 3)
          transfer(stack, symbol, 3, 500_000_000n)
        }
        stack.devnet.seal()
        await all.until(() => all.messagesOf('seal').length >= before + 2)
      }
      await round()
      // In the sealed view these are unsealed where the stream continues, so they arrive live.
      transfer(stack, 'AAPLc', 2, 900_000_000n)
      await all.until(() => transfers() === 14)
      const back = await closeAfterTest(open(stack, `${query}&snapshot=false&since=${start}`))
      const gap = await back.waitFor('gap')
      expect(gap).toMatchObject({ reason: 'long', after: start })
      expect(await back.waitFor('live')).toMatchObject({ replayed: 0, id: gap.through })
      // The tape grows while the gap is read, with a seal and with more transfers.
      let readPages = 0
      const between = async () => {
        readPages += 1
        const before = transfers()
        if (readPages === 2) stack.devnet.seal()
        transfer(stack, 'AAPLc', 1, 700_000_000n)
        await all.until(() => transfers() > before)
      }
      const missed = await readAllPages(stack, `${gap.backfill}&limit=3`, between)
      expect([readPages > 0, missed.length > MAX_REPLAY]).toEqual([true, true])
      expect(await readLines(stack, `${gap.backfill}&format=ndjson`)).toEqual(missed)
      await round()
      expect(await readLines(stack, `${gap.backfill}&format=ndjson`)).toEqual(missed)
      // Every selection receives the seal of what it received.
      const last = all.messagesOf('seal').findLast(({ symbol }) => symbol === 'AAPLc')?.id
      const updatesOf = async (listener: TestListener) => {
        await listener.waitFor('seal', ({ id }) => id === last)
        return tapeTexts(listener).slice(0, tapeUpdatesOf(listener).findIndex(({ id }) => id === last) + 1)
      }
      expect([...missed, ...(await updatesOf(back))]).toEqual(await updatesOf(uninterrupted))
    },
  )

  it('is backfilled by address, since a token may be renamed meanwhile', async () => {
    const stack = await openTestStack({ MAX_REPLAY: String(MAX_REPLAY) })
    const listener = await closeAfterTest(listenNdjson(`${stack.relay.url}/v1/stream/AAPLc?snapshot=false`))
    const { id: start } = await listener.waitFor('live')
    transfer(stack, 'AAPLc', 4)
    await listener.until(() => listener.messagesOf('transfer').length === 4)
    const back = await closeAfterTest(listenNdjson(`${stack.relay.url}/v1/stream/AAPLc?snapshot=false&since=${start}`))
    const { backfill } = await back.waitFor('gap')
    const { searchParams } = new URL(backfill ?? '', stack.relay.url)
    expect(searchParams.get('symbols')).toBe(listener.messagesOf('transfer')[0]?.address)
  })
})
