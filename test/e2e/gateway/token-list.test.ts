import { describe, expect, it, onTestFinished } from 'vitest'
import { z } from 'zod'
import type { Devnet } from '../../../src/devnet/devnet.ts'
import { apiKey } from '../../support/api-keys.ts'
import { openRelayBeforeList } from '../../support/in-process-relay.ts'
import { listenNdjson } from '../../support/test-listener.ts'
import { fetchDocumented, openDevnet, openRelayFor, openTestStack, transfer } from '../../support/test-stack.ts'
import { openedOnce } from './node-and-gateway.ts'

const PATH = '/v1/tokenized-stocks'
const APPLE = '0xb200000000000000000000c2e324d24d7eecd1fb'

const List = z.strictObject({ tokens: z.array(z.looseObject({})) })
const Token = z.looseObject({ symbol: z.string(), address: z.string(), token: z.looseObject({}) })

const shared = openedOnce(async (lifecycle) => {
  const devnet = await openDevnet({ pace: 'manual' }, lifecycle)
  const relay = await openRelayFor(devnet, { STOCKS_REFRESH: '15s' }, lifecycle)
  return { devnet, url: relay.url }
})
const fetchList = (init?: RequestInit) => fetchDocumented(shared().url + PATH, init)
const fetchToken = (url: string, selector: string) => fetchDocumented(`${url}${PATH}/${encodeURIComponent(selector)}`)
const tokenOf = async (url: string, selector: string) => Token.parse((await fetchToken(url, selector)).json)
const tokensAt = async (url: string) => List.parse((await fetchDocumented(url)).json).tokens

/** A devnet and a relay that reads the list ten times a second, for one test. */
async function open(prepare: (devnet: Devnet) => void = () => {}, settings: Record<string, string> = {}) {
  const devnet = await openDevnet()
  prepare(devnet)
  const { url } = await openRelayFor(devnet, settings)
  /** Resolves once the relay has read the list again for sure. */
  const waitForRefresh = async () => {
    const { list } = devnet.requests
    await devnet.until(() => devnet.requests.list >= list + 2)
  }
  const list = () => tokensAt(url + PATH)
  const expectSameList = async () => expect(await list()).toEqual(await tokensAt(devnet.stocksUrl))
  return { devnet, url, list, expectSameList, waitForRefresh }
}

describe('the token list', () => {
  it('is that of the upstream, with its order, unknown fields, unexpected types and extreme values', async () => {
    const unknown = { region: { code: 'US', list: [1, 'two', null, { deep: false }] }, flag: false, note: null, n: 0.1 }
    const { url, devnet } = await open((devnet) => {
      devnet.list.change('AAPLc', { ...unknown, total_supply: 0, nav_price: 1e-9, paused_features: [0, 3, 1, 99] })
      devnet.list.change('AMZNc', { total_supply: 1.7976931348623157e308, nav_price: -5, decimals: 0 })
      devnet.list.change('COINc', { nav_price: '12' as unknown as number, nav_price_updated_at: 'yesterday' })
      devnet.list.change('CRCLc', { name: '“ß” 🍎 \u2028 <b>', isin: '', symbol: 'CR/CL c' })
    })
    const [ours, direct] = [await fetchDocumented(url + PATH), await fetchDocumented(devnet.stocksUrl)]
    expect([ours.status, ours.headers.get('content-type')]).toEqual([200, direct.headers.get('content-type')])
    expect(JSON.stringify(ours.json)).toBe(JSON.stringify(direct.json))
    expect(List.parse(ours.json).tokens[0]).toMatchObject(unknown)
  })

  it('keeps names that mislead exactly, and the snapshots warn of them', async () => {
    const { devnet, url, expectSameList } = await open((devnet) => {
      devnet.list.change('CRCLc', { symbol: 'AAPL\u0441' })
      devnet.list.change('COINc', { name: '\u202eesabnioC\u202c' })
      devnet.list.change('AMZNc', { symbol: 'AM\u200bZNc', name: 'Amazon\u0000' })
    })
    await expectSameList()
    const { json } = await fetchDocumented(`${url}/v1/snapshot?symbols=*`)
    const { snapshots } = z.object({ snapshots: z.array(Token.extend({ token_warnings: z.array(z.string()) })) }).parse(json)
    const warned = snapshots.filter(({ token_warnings }) => token_warnings.length > 0)
    expect(Object.fromEntries(warned.map(({ symbol, token_warnings }) => [symbol, token_warnings]))).toEqual({
      AAPLc: ['looks_like_another'],
      'AAPL\u0441': ['mixed_scripts', 'looks_like_another'],
      COINc: ['direction_override'],
      'AM\u200bZNc': ['hidden_characters'],
    })
    const { address } = await tokenOf(url, 'AAPLc')
    expect(address).toBe(devnet.list.addressOf('AAPLc').toLowerCase())
    expect((await fetchToken(url, 'AAPLc')).json).toMatchObject({ token_warnings: ['looks_like_another'] })
    expect(await tokenOf(url, 'COINc')).toMatchObject({ token: { name: '\u202eesabnioC\u202c' } })
  })
})

describe('the ETag of the token list', () => {
  it.each<[string, (tag: string) => string, number]>([
    ['the tag', (tag) => tag, 304],
    ['a part of the tag', (tag) => `${tag.slice(0, -2)}"`, 200],
    ['nothing', () => '', 200],
  ])('decides whether If-None-Match sends the list: %s', async (_, matchOf, status) => {
    const { headers } = await fetchList()
    const tag = headers.get('etag') ?? ''
    expect(tag).toMatch(/^W\/"[!-~]+"$/)
    const again = await fetchList({ headers: { 'if-none-match': matchOf(tag) } })
    expect(again.status).toBe(status)
    if (status === 200) return expect(List.parse(again.json).tokens).toHaveLength(13)
    expect(again.text).toBe('')
    for (const name of ['etag', 'cache-control', 'access-control-allow-origin'])
      expect(again.headers.get(name), name).toBe(headers.get(name))
    expect(again.headers.get('age')).toMatch(/^\d+$/)
  })

  it('changes with the list and not otherwise', async () => {
    const { devnet, url, list, waitForRefresh } = await open()
    const tag = async () => (await fetchDocumented(url + PATH)).headers.get('etag') ?? ''
    const before = await tag()
    await waitForRefresh()
    expect(await tag()).toBe(before)
    devnet.list.change('AAPLc', { nav_price: 325.5 })
    await expect.poll(async () => (await list())[0]?.nav_price).toBe(325.5)
    expect(await tag()).not.toBe(before)
    expect((await fetchDocumented(url + PATH, { headers: { 'if-none-match': before } })).status).toBe(200)
  })
})

describe('the age of the token list', () => {
  const ageOf = async (url: string) => Number((await fetchDocumented(url + PATH)).headers.get('age'))

  it('grows in whole seconds while the list is unreadable, and is zero once it is readable', async () => {
    const { devnet, url } = await open()
    expect(await ageOf(url)).toBe(0)
    devnet.faults.list = { status: 503 }
    await expect.poll(() => ageOf(url)).toBeGreaterThanOrEqual(2)
    devnet.faults.clear()
    await expect.poll(() => ageOf(url)).toBe(0)
  })

  it('is bounded in Cache-Control, which is private where there are keys', async () => {
    expect((await fetchList()).headers.get('cache-control')).toBe('public, max-age=15')
    const { url } = await open(() => {}, { API_KEYS: apiKey, STOCKS_REFRESH: '1m' })
    const { headers } = await fetchDocumented(url + PATH, { headers: { authorization: `Bearer ${apiKey}` } })
    expect(headers.get('cache-control')).toBe('private, max-age=60')
  })
})

describe('a change of the token list', () => {
  it('removes a token once the upstream repeats it for ten seconds; its last state can still be read', async () => {
    const { devnet, url, list, expectSameList } = await open()
    const before = await tokenOf(url, 'TSLAc')
    devnet.list.remove('TSLAc')
    await expect.poll(async () => (await list()).length, { timeout: 30_000, interval: 100 }).toBe(12)
    await expectSameList()
    const after = await tokenOf(url, 'TSLAc')
    expect(after.token).toEqual(before.token)
    const { json } = await fetchDocumented(`${url}/v1/events?symbols=TSLAc&types=token&order=desc&limit=1`)
    expect(json).toMatchObject({ events: [{ change: 'delisted', id: after.last }] })
  })
})

it.each(['', '/AAPLc'])('before the first list, …%s is answered with 503 no_list', async (path) => {
  const devnet = await openDevnet()
  devnet.faults.list = { status: 503 }
  const relay = await openRelayBeforeList(devnet)
  onTestFinished(() => relay.stop())
  const { status, headers, json } = await fetchDocumented(relay.url + PATH + path)
  expect([status, json]).toEqual([503, expect.objectContaining({ code: 503, details: [{ '@type': 'stocktape/no_list' }] })])
  expect(headers.get('retry-after')).toMatch(/^\d+$/)
  devnet.faults.clear()
  await relay.listed
  expect((await fetchDocumented(relay.url + PATH + path)).status).toBe(200)
})

describe('one token', () => {
  it.each(['aaplC', '0xb200000000000000000000C2e324d24d7eEcd1fb', 'isin:US0378331005'])('is found by %s', async (selector) => {
    const { status, headers, json } = await fetchToken(shared().url, selector)
    expect([status, headers.get('content-type')]).toEqual([200, 'application/json'])
    expect(json).toMatchObject({ symbol: 'AAPLc', address: APPLE })
  })

  it('has the fields of a snapshot from symbol on and then last, in this order', async () => {
    const state = [
      'multiplier',
      'multiplier_source',
      'scheduled',
      'paused',
      'supply',
      'nav',
      'quote',
      'last_trade',
      'venues',
      'session',
    ]
    const { json } = await fetchToken(shared().url, 'AAPLc')
    expect(Object.keys(Object(json))).toEqual(['symbol', 'address', 'as_of', 'token', 'token_warnings', ...state, 'last'])
  })

  it.each(['AAPLc', 'NVDAc', 'INTCc'])('has the values of the snapshot of %s in a stream', async (symbol) => {
    const listener = await listenNdjson(`${shared().url}/v1/stream?symbols=${symbol}`)
    const { type, id, as_of, nav, ...snapshot } = await listener.waitFor('snapshot')
    listener.close()
    const token = await tokenOf(shared().url, symbol)
    expect(token).toMatchObject(snapshot)
    expect(token.nav).toMatchObject({ ...nav, age_s: nav.age_s === null ? null : expect.any(Number) })
    expect([type, typeof id, typeof as_of, typeof token.as_of]).toEqual(['snapshot', 'string', 'string', 'string'])
    expect(token.token).toEqual((await tokensAt(shared().devnet.stocksUrl)).find((record) => record.symbol === symbol))
  })

  it('has the position of its newest message of any type as last', async () => {
    // A finality has the symbol *, which is that of every token, and would be the newest.
    const stack = await openTestStack({ FINALITY_POLL: '1h' })
    const { url } = stack.relay
    const newest = async (symbol: string) => {
      const { json } = await fetchDocumented(`${url}/v1/events?symbols=${symbol}&types=*&order=desc&limit=1`)
      return z.object({ events: z.array(z.object({ id: z.string(), type: z.string() })) }).parse(json).events[0]
    }
    const positions = new Set<string | undefined>()
    const expectLast = async (symbol: string, type: string) => {
      await expect.poll(async () => (await newest(symbol))?.type, { timeout: 30_000, interval: 50 }).toBe(type)
      const { id } = (await newest(symbol)) ?? {}
      expect((await tokenOf(url, symbol)).last).toBe(id)
      positions.add(id)
    }
    const quiet = (await tokenOf(url, 'TSLAc')).last
    transfer(stack, 'AAPLc')
    await expectLast('AAPLc', 'transfer')
    stack.devnet.seal()
    await expectLast('AAPLc', 'seal')
    stack.devnet.list.change('AAPLc', { name: 'Apple, Inc.' })
    await expectLast('AAPLc', 'token')
    expect(positions.size).toBe(3)
    expect((await tokenOf(url, 'TSLAc')).last).toBe(quiet)
  })
})

// How a name finds tokens is proved by the tests of the selection.
describe('a name of a token', () => {
  it('with a typing error leads to 404 with a suggestion, and * is no name', async () => {
    expect(await fetchToken(shared().url, 'APPL')).toMatchObject({
      status: 404,
      json: { message: "No tokenized stock 'APPL'. Did you mean AAPLc?", details: [{ suggest: ['AAPLc'] }] },
    })
    expect(await fetchToken(shared().url, '*')).toMatchObject({ status: 404, json: { message: expect.stringContaining("'*'") } })
  })

  it('that several tokens have leads to 404 with their addresses', async () => {
    const twin = `0xb2${'0'.repeat(36)}77`
    const { url } = await open((devnet) =>
      devnet.list.add({ contract_address: twin, symbol: 'AAPLc', decimals: 8, isin: 'US0378331005' }),
    )
    const { status, json } = await fetchToken(url, 'aapl')
    expect([status, json]).toMatchObject([404, { details: [{ '@type': 'stocktape/ambiguous_symbol' }] }])
    for (const address of [APPLE, twin]) expect(JSON.stringify(json)).toContain(address)
    expect(await tokenOf(url, twin)).toMatchObject({ address: twin })
  })
})
