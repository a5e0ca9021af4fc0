import { describe, expect, it, onTestFinished } from 'vitest'
import { EventsPage, OneFact } from '../../src/protocol/history.ts'
import { listenNdjson, listenSse, listenWs, type TestListener } from '../support/test-listener.ts'
import { fetchDocumented, openTestStack, type TestStack, tapeUpdatesOf, transfer } from '../support/test-stack.ts'
import { pageTexts, readAllPages, readLines, tapeTexts } from './history-reader.ts'

/** Longer replays than this are left out. */
const REPLAY_BOUND = 3

const closeAfterTest = async (opening: Promise<TestListener>): Promise<TestListener> => {
  const listener = await opening
  onTestFinished(() => listener.close())
  await listener.waitFor('live')
  return listener
}
describe('what happened before', () => {
  it('is read page by page in the bytes of the stream, in both views', async () => {
    const stack = await openTestStack()
    for (const query of ['symbols=*&types=*', 'symbols=AAPLc,TSLAc', 'symbols=*&stage=sealed']) {
      const listener = await closeAfterTest(
        listenNdjson(`${stack.relay.url}/v1/stream?${query}&snapshot=false&since=start`),
      )
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

  it('is all tokens where none is named, and may come newest first', async () => {
    const stack = await openTestStack()
    const listener = await closeAfterTest(listenNdjson(`${stack.relay.url}/v1/stream?symbols=*&types=transfer`))
    transfer(stack, 'AAPLc', 2)
    transfer(stack, 'TSLAc', 1)
    await listener.until(() => tapeUpdatesOf(listener).length === 3)
    const { text, json } = await fetchDocumented(`${stack.relay.url}/v1/events?types=transfer&order=desc&limit=2`)
    const page = EventsPage.parse(json)
    expect(pageTexts(text, page)).toEqual(tapeTexts(listener).slice(1).toReversed())
    const rest = await fetchDocumented(
      `${stack.relay.url}/v1/events?types=transfer&order=desc&limit=2&before=${page.next}`,
    )
    expect(rest.json).toMatchObject({ events: [tapeUpdatesOf(listener)[0]], next: null })
  })

  it('of one fact is everything about it, and how firm it is', async () => {
    const stack = await openTestStack()
    const listener = await closeAfterTest(listenNdjson(`${stack.relay.url}/v1/stream/AAPLc?snapshot=false`))
    transfer(stack)
    const { key } = await listener.waitFor('transfer')
    const factNow = async () => {
      const { status, json, text } = await fetchDocumented(`${stack.relay.url}/v1/events/${key}`)
      expect(status).toBe(200)
      const fact = OneFact.parse(json)
      expect(text).toBe(JSON.stringify(fact))
      return { stage: fact.stage, texts: fact.updates.map((update) => JSON.stringify(update)) }
    }
    expect(await factNow()).toEqual({ stage: 'preconfirmed', texts: tapeTexts(listener) })
    stack.devnet.seal()
    await listener.waitFor('seal', ({ keys }) => keys.includes(key))
    expect(await factNow()).toEqual({ stage: 'sealed', texts: tapeTexts(listener) })
  })
})

describe('the door to history', () => {
  it.each(['/v1/events', '/v1/events?types=status', '/v1/events/7'])('is open to every origin: %s', async (path) => {
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

  it('lets nobody keep what may be more in a moment', async () => {
    const { relay } = await openTestStack()
    expect((await fetchDocumented(`${relay.url}/v1/events`)).headers.get('cache-control')).toBe('no-store')
  })

  it.each([
    ['/v1/events?limit=0', 400, 'bad_parameter'],
    ['/v1/events?after=k.1&after=k.2', 400, 'bad_parameter'],
    ['/v1/events?after=zzzzz9.1', 410, 'epoch'],
    ['/v1/events?symbols=APPL', 404, 'unknown_symbol'],
    ['/v1/events/7', 400, 'bad_parameter'],
    ['/v1/events/%E0%A4%A', 400, 'bad_parameter'],
    [`/v1/events/7-0x${'a'.repeat(64)}-0`, 404, 'unknown_key'],
  ])('says what is wrong with %s', async (path, code, reason) => {
    const { relay } = await openTestStack()
    const { status, json } = await fetchDocumented(`${relay.url}${path}`)
    expect(status).toBe(code)
    expect(json).toMatchObject({ code, details: [{ '@type': `stocktape/${reason}` }] })
  })
})

describe('what a too long replay left out', () => {
  const carriers = {
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

  it.each(Object.entries(carriers).flatMap(([name, open]) => selections.map((query) => [name, query, open] as const)))(
    'is found where the gap says, page by page and as lines, and with what comes live is the whole tape: %s, %s',
    async (_, query, open) => {
      const stack = await openTestStack({ REPLAY_BOUND: String(REPLAY_BOUND) })
      const all = await closeAfterTest(listenNdjson(`${stack.relay.url}/v1/stream?symbols=*&types=*&snapshot=false`))
      const steady = await closeAfterTest(listenNdjson(`${stack.relay.url}/v1/stream?${query}&snapshot=false`))
      const { id: start } = await steady.waitFor('live')
      const transfers = () => all.messagesOf('transfer').length
      /** Some of every kind, in a block that is then sealed; resolves once all of it is told. */
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
      // In the sealed view this is open where the stream goes on, and belongs to what comes live.
      transfer(stack, 'AAPLc', 2, 900_000_000n)
      await all.until(() => transfers() === 14)
      const back = await closeAfterTest(open(stack, `${query}&snapshot=false&since=${start}`))
      const gap = await back.waitFor('gap')
      expect(gap).toMatchObject({ reason: 'long', from: start })
      expect(await back.waitFor('live')).toMatchObject({ replayed: 0, id: gap.to })
      // The tape goes on while what was left out is read: now seals what was open, now tells more.
      let fillings = 0
      const between = async () => {
        fillings += 1
        const before = transfers()
        if (fillings === 2) stack.devnet.seal()
        transfer(stack, 'AAPLc', 1, 700_000_000n)
        await all.until(() => transfers() > before)
      }
      const leftOut = await readAllPages(stack, `${gap.backfill}&limit=3`, between)
      expect([fillings > 0, leftOut.length > REPLAY_BOUND]).toEqual([true, true])
      expect(await readLines(stack, `${gap.backfill}&format=ndjson`)).toEqual(leftOut)
      await round()
      expect(await readLines(stack, `${gap.backfill}&format=ndjson`)).toEqual(leftOut)
      // Whatever is selected, the seal of what was told comes.
      const last = all.messagesOf('seal').findLast(({ symbol }) => symbol === 'AAPLc')?.id
      const heardOf = async (listener: TestListener) => {
        await listener.waitFor('seal', ({ id }) => id === last)
        return tapeTexts(listener).slice(0, tapeUpdatesOf(listener).findIndex(({ id }) => id === last) + 1)
      }
      expect([...leftOut, ...(await heardOf(back))]).toEqual(await heardOf(steady))
    },
  )

  it('is asked for by addresses, so that a token may change its name meanwhile', async () => {
    const stack = await openTestStack({ REPLAY_BOUND: String(REPLAY_BOUND) })
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
