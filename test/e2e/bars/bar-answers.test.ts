import { describe, expect, it, onTestFinished } from 'vitest'
import { BarsPage, type StoredBar } from '../../../src/protocol/bars/bars-query.ts'
import { apiKey } from '../../support/api-keys.ts'
import { fetchDocumented, openRelayFor } from '../../support/test-stack.ts'
import { openedOnce } from '../gateway/node-and-gateway.ts'
import { readLines } from '../history-reader.ts'
import { exactBarsOf } from './exact-bars.ts'
import {
  BLOCK_S,
  barsAt,
  closeMinute,
  contentOf,
  fetchBars,
  listenFromStart,
  MINUTE_S,
  makeBlock,
  openTradedMinutes,
  poolSettings,
  poolsOf,
  startMinute,
  type TradedMinutes,
  timeText,
  trade,
  waitForBar,
  waitForPools,
} from './traded-minutes.ts'

/** Minutes of both tokens: AAPLc has a bar in all four, TSLAc in the first and the last one. */
async function makeFourMinutes(opened: TradedMinutes): Promise<number> {
  const { devnet, listener } = opened
  const start = devnet.chain.pending.timestamp
  for (const nth of [0, 1, 2, 3]) {
    await trade(opened, String(320 + nth), { kind: nth === 1 ? 'uniswap_v4' : 'uniswap_v3' })
    if (nth === 0 || nth === 3) await trade(opened, String(400 + nth), { symbol: 'TSLAc' })
    closeMinute(devnet)
  }
  await waitForBar(listener, start + 3 * MINUTE_S)
  return start
}

const four = openedOnce(async (lifecycle) => {
  const opened = await openTradedMinutes({}, {}, lifecycle)
  return { ...opened, start: await makeFourMinutes(opened) }
})
const readAll = (path: string) => fetchDocumented(`${four().relay.url}/v1/bars${path}`)

/** Follows `next` from a path on until it is null. Returns the bars of each page. */
async function readPages(path: string, order: 'asc' | 'desc'): Promise<readonly (readonly StoredBar[])[]> {
  const pages: (readonly StoredBar[])[] = []
  const url = new URL(`http://relay/v1/bars${path}`)
  url.searchParams.set('order', order)
  while (pages.length < 10) {
    const { bars, next } = await fetchBars(four().relay.url, `${url.pathname.slice('/v1/bars'.length)}${url.search}`)
    pages.push(bars)
    if (next === null) return pages
    url.searchParams.set(order === 'asc' ? 'since' : 'until', next)
  }
  throw new Error('the pages never end')
}

describe('pages of bars', () => {
  it.each(['asc', 'desc'] as const)('lead with next through the bars of one token, %s, each once', async (order) => {
    const { bars } = await fetchBars(four().relay.url, `/AAPLc?order=${order}`)
    expect(bars).toHaveLength(4)
    const pages = await readPages('/AAPLc?limit=3', order)
    expect(pages.map(({ length }) => length)).toEqual([3, 1])
    expect(pages.flat()).toEqual(bars)
  })

  it.each(['asc', 'desc'] as const)('have all bars of a start, %s, of several tokens too', async (order) => {
    const { bars } = await fetchBars(four().relay.url, `?order=${order}`)
    expect(bars).toEqual(
      exactBarsOf(four().listener.messages)
        .sort((a, b) => (a.start === b.start ? (a.symbol < b.symbol ? -1 : 1) : (order === 'asc') === a.start < b.start ? -1 : 1))
        .map((bar) => ({ ...bar, revision: 1, partial: null, state: 'closed' })),
    )
    for (const limit of [1, 2, 3, 5]) {
      const pages = await readPages(`?symbols=AAPLc,TSLAc&limit=${limit}`, order)
      expect(pages.flat(), `limit ${limit}`).toEqual(bars)
      for (const [at, page] of pages.entries()) {
        expect(page.length).toBeLessThanOrEqual(Math.max(limit, 2))
        expect(pages[at + 1]?.[0]?.start).not.toBe(page.at(-1)?.start)
      }
    }
  })

  it('are those between since and until, by the start of the bars and in chain time', async () => {
    const { start, devnet } = four()
    const startsOf = async (query: string) =>
      (await fetchBars(four().relay.url, `/AAPLc${query}`)).bars.map((bar) => (Date.parse(bar.start) / 1_000 - start) / MINUTE_S)
    const after = (seconds: number) => encodeURIComponent(timeText(start + seconds))
    // The newest block is the first one of the fifth minute.
    expect(devnet.chain.head.timestamp).toBe(start + 4 * MINUTE_S)
    for (const [query, starts] of [
      ['', [0, 1, 2, 3]],
      ['?since=start&until=now', [0, 1, 2, 3]],
      [`?since=${after(60)}`, [1, 2, 3]],
      [`?since=${after(61)}`, [2, 3]],
      [`?until=${after(60)}`, [0]],
      [`?until=${after(61)}`, [0, 1]],
      [`?since=${after(60)}&until=${after(180)}`, [1, 2]],
      ['?since=2m', [2, 3]],
      ['?until=2m', [0, 1]],
      ['?since=61s', [3]],
      [`?since=${after(600)}`, []],
    ] as const)
      expect(await startsOf(query), query).toEqual(starts)
  })
})

describe('exports of bars', () => {
  it('as NDJSON have a bar on each line, in both routes', async () => {
    for (const path of ['/AAPLc?', '?symbols=AAPLc,TSLAc&', '?order=desc&']) {
      const { bars } = await fetchBars(four().relay.url, path)
      expect(await readLines(four(), `/v1/bars${path}format=ndjson`)).toEqual(bars.map((bar) => JSON.stringify(bar)))
    }
    expect(await readLines(four(), '/v1/bars/AAPLc?format=ndjson&limit=2')).toHaveLength(2)
    expect(await readLines(four(), '/v1/bars/NVDAc?format=ndjson')).toEqual([])
  })

  it('as CSV have the fields that are one value, an empty cell for null', async () => {
    const { bars } = await fetchBars(four().relay.url, '')
    const { text, headers } = await readAll('?format=csv')
    expect(headers.get('content-type')).toBe('text/csv; charset=utf-8; header=present')
    const header =
      'symbol,start,end,revision,open,high,low,close,vwap,trades,volume,shares,currency_volume,buy_volume,buy_currency_volume,basis_bps,basis,partial,state'
    const lines = bars.map((bar) =>
      header
        .split(',')
        .map((name) => bar[name as keyof StoredBar] ?? '')
        .join(','),
    )
    expect(text).toBe([header, ...lines, ''].join('\n'))
    expect((await readAll('/NVDAc?format=csv')).text).toBe(`${header}\n`)
  })

  it('answer HEAD without a body', async () => {
    for (const format of ['json', 'ndjson', 'csv'])
      expect(await fetchDocumented(`${four().relay.url}/v1/bars/AAPLc?format=${format}`, { method: 'HEAD' })).toMatchObject({
        ...{ status: 200, text: '' },
      })
  })
})

describe('a request for bars', () => {
  it.each([
    ['interval', 'interval=2m'],
    ['since', 'since=yesterday'],
    ['since', 'since=k3f9a1.12'],
    ['until', 'until=2026-02-30T00:00:00Z'],
    ['limit', 'limit=0'],
    ['limit', 'limit=5001'],
    ['order', 'order=up'],
    ['pools', 'pools=0x12'],
    ['open', 'open=maybe'],
    ['format', 'format=xml'],
    ['interval', 'interval=1m&interval=5m'],
    ['resolution', 'resolution=1m'],
  ])('with a bad %s is a 400 that names it, in both routes: %s', async (parameter, query) => {
    for (const path of ['', '/AAPLc']) {
      const { status, json } = await readAll(`${path}?${query}`)
      expect(status).toBe(400)
      expect(json).toMatchObject({ details: [{ parameter }], message: expect.stringContaining(parameter) })
    }
  })

  it.each(['symbols=', 'symbols=,'])('of several tokens that names none is a 400: %s', async (query) => {
    const { status, json } = await readAll(`?${query}`)
    expect({ status, json }).toMatchObject({ status: 400, json: { details: [{ parameter: 'symbols' }] } })
  })

  it('of one token takes no symbols', async () => {
    const { status, json } = await readAll('/AAPLc?symbols=TSLAc')
    expect({ status, json }).toMatchObject({ status: 400, json: { details: [{ parameter: 'symbols' }] } })
  })

  it.each(['/NOPE', '?symbols=NOPE', '/NOPE?format=csv'])('for an unknown symbol is a 404: %s', async (path) => {
    const { status, json } = await readAll(path)
    expect({ status, json }).toMatchObject({ status: 404, json: { code: 404, reason: 'unknown_symbol' } })
  })

  it('for a token without pools is answered without bars', async () => {
    for (const path of ['/NVDAc', '/nvdac?interval=1d&open=true', '?symbols=NVDAc'])
      expect(await fetchBars(four().relay.url, path)).toMatchObject({ bars: [], next: null })
  })

  it('that names pools is answered with the bars of their trades alone', async () => {
    const { relay, listener, devnet } = four()
    const [v3 = '', v4 = ''] = ['uniswap_v3', 'uniswap_v4'].map(
      (kind) => devnet.pools.find((pool) => pool.symbol === 'AAPLc' && pool.kind === kind)?.id ?? '',
    )
    const other = poolsOf(devnet, 'TSLAc')
    for (const [pools, count] of [
      [[v3], 3],
      [[v4], 1],
      [[v3, v4], 4],
      [other, 0],
    ] as const) {
      const { bars } = await fetchBars(relay.url, `/AAPLc?pools=${pools.join(',')}`)
      expect(bars).toHaveLength(count)
      expect(bars).toEqual(
        exactBarsOf(listener.messages, { pools })
          .filter(({ symbol }) => symbol === 'AAPLc')
          .map((bar) => ({ ...bar, revision: 1, partial: null, state: 'closed' })),
      )
    }
  })
})

describe('bars', () => {
  it('are made of pools against the first of QUOTE_TOKENS; those of others are found with pools', async () => {
    const opened = await openTradedMinutes({}, { QUOTE_TOKENS: `EURC:0x${'5e'.repeat(20)}:6,${four().devnet.quoteTokens}` })
    const { devnet, relay, listener } = opened
    const start = devnet.chain.pending.timestamp
    await trade(opened, '320')
    closeMinute(devnet)
    const { key } = await trade(opened, '321')
    makeBlock(devnet)
    await listener.waitFor('seal', ({ keys }) => keys.includes(key))
    expect(listener.messagesOf('bar')).toEqual([])
    expect((await fetchBars(relay.url, '/AAPLc?open=true')).bars).toEqual([])
    const { bars } = await fetchBars(relay.url, `/AAPLc?open=true&pools=${poolsOf(devnet).join(',')}`)
    expect(bars.map(({ start: at, trades, state }) => [at, trades, state])).toEqual([
      [timeText(start), 1, 'closed'],
      [timeText(start + MINUTE_S), 1, 'open'],
    ])
  })

  it('of a delisted token stay readable, and a minute within which its pools are dropped says so', async () => {
    const opened = await openTradedMinutes()
    const { devnet, relay, listener } = opened
    const start = devnet.chain.pending.timestamp
    await trade(opened, '400', { symbol: 'TSLAc' })
    closeMinute(devnet)
    const bar = await waitForBar(listener, start, 1, 'TSLAc')
    devnet.list.remove('TSLAc')
    const { address } = await listener.waitFor('token', ({ change }) => change === 'delisted')
    for (const path of ['/TSLAc', `/${address}`, '?symbols=TSLAc', ''])
      expect((await fetchBars(relay.url, path)).bars.map(contentOf), path).toEqual([contentOf(bar)])
    // Blocks of the last seconds are read again, and without the pools: the clock tells from which one on.
    const { from_block } = await listener.waitFor('venue', ({ change }) => change === 'dropped')
    const blocks = Array.from({ length: MINUTE_S / BLOCK_S }, (_, nth) => (bar.blocks?.first ?? 0) + nth)
    await trade(opened, '321')
    const next = devnet.chain.pending.timestamp
    closeMinute(devnet)
    await waitForBar(listener, next - (next % MINUTE_S))
    const last = barsAt(listener, start, 'TSLAc').map(contentOf).at(-1)
    const changed = { ...contentOf(bar), revision: 2, partial: 'delisted' }
    expect(blocks.includes(from_block) ? [changed] : [changed, contentOf(bar)]).toContainEqual(last)
    expect((await fetchBars(relay.url, '/TSLAc')).bars.map(contentOf)).toEqual([last])
  })

  it('need a key where the relay has keys, in every format', async () => {
    const opened = await openTradedMinutes({}, { API_KEYS: apiKey })
    for (const path of ['/AAPLc', '', '/AAPLc?format=csv', '?format=ndjson']) {
      const url = `${opened.relay.url}/v1/bars${path}`
      expect((await fetchDocumented(url)).status, path).toBe(401)
      expect((await fetchDocumented(url, { headers: { authorization: `Bearer ${apiKey}` } })).status, path).toBe(200)
    }
  })
})

describe('the answer to a request for bars', () => {
  it('has an ETag of its bars, whatever else is published, and another one once they change', async () => {
    const opened = await openTradedMinutes()
    const { devnet, relay, listener } = opened
    const start = devnet.chain.pending.timestamp
    const url = `${relay.url}/v1/bars/AAPLc`
    await trade(opened, '320')
    closeMinute(devnet)
    await waitForBar(listener, start)
    const { headers, json } = await fetchDocumented(url)
    const etag = headers.get('etag') ?? ''
    expect([etag, headers.get('cache-control')]).toEqual([expect.stringMatching(/^W\/"\w+"$/), 'no-cache'])
    const revalidate = () => fetchDocumented(url, { headers: { 'if-none-match': `W/"0", ${etag}` } })
    // The tape grows by trades of another token, and of a minute that is not over.
    await trade(opened, '400', { symbol: 'TSLAc' })
    await trade(opened, '321')
    const same = await revalidate()
    expect({ ...same, etag: same.headers.get('etag') }).toMatchObject({ status: 304, text: '', etag })
    expect((await fetchDocumented(url)).json).toEqual({
      ...(json as object),
      as_of: expect.not.stringMatching((json as { as_of: string }).as_of),
    })
    for (const query of ['?interval=5m', '?open=true'])
      expect((await fetchDocumented(url + query, { headers: { 'if-none-match': etag } })).status, query).toBe(200)
    closeMinute(devnet)
    await waitForBar(listener, start + MINUTE_S)
    const changed = await revalidate()
    expect([changed.status, changed.headers.get('etag') === etag]).toEqual([200, false])
  })
})

/** More blocks than a reorg may replace. */
const FINAL_DEPTH = 1_030

it('a range whose bars are all final may be kept a day, privately where there are keys; any other one is asked for again', async () => {
  // A minute a block.
  const settings = { FINALITY_POLL: '100ms' }
  const opened = await openTradedMinutes({ blockMs: MINUTE_S * 1_000, safeDepth: 3, finalizedDepth: 3 }, settings)
  const { devnet, listener } = opened
  const headers = { authorization: `Bearer ${apiKey}` }
  const withKeys = await openRelayFor(devnet, { ...settings, ...poolSettings(devnet), API_KEYS: apiKey })
  const ofKeys = await listenFromStart(withKeys.url, { onTestFinished }, headers)
  await waitForPools(ofKeys, devnet)
  const ask = async (url: string, query: string, more: Record<string, string> = {}) => {
    const answer = await fetchDocumented(`${url}/v1/bars/AAPLc?${query}`, { headers: { ...headers, ...more } })
    const states = answer.status === 200 ? BarsPage.parse(answer.json).bars.map(({ state }) => state) : []
    return { ...answer, states, control: answer.headers.get('cache-control'), etag: answer.headers.get('etag') ?? '' }
  }
  const caches = [
    [opened.relay.url, 'public, max-age=86400'],
    [withKeys.url, 'private, max-age=86400'],
  ] as const
  const waitForBoth = (start: number) => Promise.all([listener, ofKeys].map((each) => waitForBar(each, start)))

  const start = startMinute(devnet)
  const upTo = (seconds: number) => `until=${encodeURIComponent(timeText(seconds))}`
  await trade(opened, '320')
  makeBlock(devnet)
  makeBlock(devnet)
  await waitForBoth(start)
  for (const [url] of caches) expect((await ask(url, upTo(start + MINUTE_S))).control).toBe('no-cache')
  for (let block = 0; block < FINAL_DEPTH; block += 1) makeBlock(devnet)
  // A relay reads blocks of the last seconds again, and does not forget them before.
  for (const [url, kept] of caches)
    await expect
      .poll(async () => {
        makeBlock(devnet)
        return (await ask(url, upTo(start + MINUTE_S))).control
      })
      .toBe(kept)

  await trade(opened, '321')
  const last = devnet.chain.pending.timestamp
  closeMinute(devnet)
  await waitForBoth(last)
  const { tx } = await trade(opened, '322')
  await ofKeys.waitFor('trade', (message) => message.tx.hash === tx.hash)
  for (const [url, kept] of caches)
    for (const [query, control, states] of [
      ['', 'no-cache', ['final', 'closed']],
      ['open=true', 'no-cache', ['final', 'closed', 'open']],
      ['order=desc&limit=1', 'no-cache', ['closed']],
      [upTo(start + MINUTE_S), kept, ['final']],
      [upTo(start), kept, []],
      // The next page begins where a reorg may change something.
      ['limit=1', 'no-cache', ['final']],
    ] as const) {
      const answer = await ask(url, query)
      expect([answer.control, answer.states], query).toEqual([control, states])
      const again = await ask(url, query, { 'if-none-match': answer.etag })
      expect([again.status, again.control, again.text], query).toEqual([304, control, ''])
    }
})
