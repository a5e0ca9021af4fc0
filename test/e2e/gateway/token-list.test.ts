import { describe, expect, it } from 'vitest'
import { z } from 'zod'
import type { Devnet } from '../../../src/devnet/devnet.ts'
import { ErrorRecord } from '../../../src/protocol/refusal.ts'
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
const fetchList = (init?: RequestInit, query = '') => fetchDocumented(`${shared().url}${PATH}${query}`, init)
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
  it('is the text of the upstream, with its order of tokens and fields', async () => {
    const [ours, direct] = [await fetchList(), await fetchDocumented(shared().devnet.stocksUrl)]
    expect([ours.status, ours.headers.get('content-type')]).toEqual([200, direct.headers.get('content-type')])
    expect(JSON.stringify(ours.json)).toBe(JSON.stringify(direct.json))
    expect(List.parse(ours.json).tokens).toHaveLength(13)
  })

  it('keeps unknown fields, unexpected types and extreme values', async () => {
    const unknown = { region: { code: 'US', list: [1, 'two', null, { deep: false }] }, flag: false, note: null, n: 0.1 }
    const { list, expectSameList } = await open((devnet) => {
      devnet.list.change('AAPLc', { ...unknown, total_supply: 0, nav_price: 1e-9, paused_features: [0, 3, 1, 99] })
      devnet.list.change('AMZNc', { total_supply: 1.7976931348623157e308, nav_price: -5, decimals: 0 })
      devnet.list.change('COINc', { nav_price: '12' as unknown as number, nav_price_updated_at: 'yesterday' })
      devnet.list.change('CRCLc', { name: '“ß” 🍎 \u2028 <b>', isin: '', symbol: 'CR/CL c' })
    })
    await expectSameList()
    expect((await list())[0]).toMatchObject(unknown)
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

  it('ignores queries and credentials, and answers HEAD with the headers of GET', async () => {
    const plain = await fetchList()
    const headers = { authorization: 'Bearer unknown', cookie: 'a=b' }
    expect((await fetchList({ headers }, '?page=2&limit=1&symbols=AAPLc')).json).toEqual(plain.json)
    for (const name of ['www-authenticate', 'set-cookie']) expect(plain.headers.has(name)).toBe(false)
    const head = await fetchList({ method: 'HEAD' })
    expect({ status: head.status, text: head.text }).toEqual({ status: 200, text: '' })
    for (const name of ['etag', 'content-type', 'cache-control', 'access-control-allow-origin'])
      expect(head.headers.get(name), name).toBe(plain.headers.get(name))
    expect((await fetchList({ method: 'HEAD' }, '/AAPLc')).text).toBe('')
  })

  it('allows the pages of every origin, with its ETag and its age', async () => {
    const origin = { origin: 'https://wallet.example' }
    const { headers } = await fetchList({ headers: origin })
    expect(headers.get('access-control-allow-origin')).toBe('*')
    const exposed = headers.get('access-control-expose-headers')?.toLowerCase().split(/, */)
    expect(exposed).toEqual(expect.arrayContaining(['etag', 'age', 'retry-after']))
    expect(headers.has('access-control-allow-credentials')).toBe(false)
  })
})

describe('the ETag of the token list', () => {
  it.each<[string, (tag: string) => string, number]>([
    ['the tag', (tag) => tag, 304],
    ['the weak tag', (tag) => `W/${tag}`, 304],
    ['any tag', () => '*', 304],
    ['the tag among others', (tag) => `"other", W/"third" , ${tag},"last"`, 304],
    ['another tag', () => '"other"', 200],
    ['a tag without quotes', (tag) => tag.replaceAll('"', ''), 200],
    ['a part of the tag', (tag) => `${tag.slice(0, -2)}"`, 200],
    ['nothing', () => '', 200],
  ])('decides whether If-None-Match sends the list: %s', async (_, matchOf, status) => {
    const { headers } = await fetchList()
    const tag = headers.get('etag') ?? ''
    expect(tag).toMatch(/^"[!-~]+"$/)
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
    const { url } = await open(() => {}, { API_KEYS: 'mine', STOCKS_REFRESH: '1m' })
    const { headers } = await fetchDocumented(url + PATH, { headers: { authorization: 'Bearer mine' } })
    expect(headers.get('cache-control')).toBe('private, max-age=60')
  })
})

describe('a change of the token list', () => {
  it('appears: a new token, a changed one, and their order', async () => {
    const { devnet, list, expectSameList } = await open()
    devnet.list.add({ contract_address: `0xB2${'0'.repeat(37)}9`, symbol: 'AAAc', decimals: 8, total_supply: 1 })
    devnet.list.change('TSLAc', { total_supply: 1.5, name: 'Tesla, Inc.' })
    await expect.poll(async () => (await list()).length).toBe(14)
    await expectSameList()
  })

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

  it('to an unreadable list leaves the last readable one', async () => {
    const { devnet, list, waitForRefresh } = await open()
    const before = await list()
    for (const text of ['<html>', null]) {
      if (text === null) devnet.faults.list = { status: 500 }
      else devnet.list.corrupt(text)
      await waitForRefresh()
      expect(await list()).toEqual(before)
    }
  })
})

describe('the error record', () => {
  const recordOf = async (url: string, init: RequestInit = {}) => {
    const { status, headers, json } = await fetchDocumented(url, init)
    expect(headers.get('content-type')).toBe('application/json')
    expect(headers.get('access-control-allow-origin')).toBe('*')
    const record = ErrorRecord.parse(json)
    expect(record.code).toBe(status)
    expect(record.message).toMatch(/\S/)
    return { ...record, headers }
  }

  it.each([
    ['POST', PATH],
    ['DELETE', `${PATH}/AAPLc`],
  ])('has 405 for %s %s', async (method, path) => {
    const { code, headers } = await recordOf(shared().url + path, { method })
    expect(code).toBe(405)
    expect(headers.get('allow')).toContain('GET')
  })

  it.each(['/v1/tokenized-stock', '/v1/tokenized-stocks/AAPLc/nav'])('has 404 for the path %s', async (path) => {
    expect((await recordOf(shared().url + path)).code).toBe(404)
  })

  it.each(['', '/AAPLc'])('has 503 no_list before the first list, for the path …%s', async (path) => {
    const devnet = await openDevnet()
    devnet.faults.list = { status: 503 }
    const relay = await openRelayBeforeList(devnet)
    try {
      const { code, details, headers } = await recordOf(relay.url + PATH + path)
      expect({ code, details }).toEqual({ code: 503, details: [{ '@type': 'stocktape/no_list' }] })
      expect(headers.get('retry-after')).toMatch(/^\d+$/)
      devnet.faults.clear()
      await relay.listed
      expect((await fetchDocumented(relay.url + PATH + path)).status).toBe(200)
    } finally {
      await relay.stop()
    }
  })
})

describe('one token', () => {
  it.each<[string, string]>([
    ['its symbol', 'AAPLc'],
    ['its symbol in any case', 'aaplC'],
    ['its symbol without the c', 'aapl'],
    ['its address', APPLE],
    ['its address with a checksum', '0xb200000000000000000000C2e324d24d7eEcd1fb'],
    ['its address in capitals', `0x${APPLE.slice(2).toUpperCase()}`],
    ['its ISIN', 'isin:US0378331005'],
    ['its ISIN in any case', 'ISIN:us0378331005'],
  ])('is found by %s', async (_, selector) => {
    const { status, headers, json } = await fetchToken(shared().url, selector)
    expect({ status, type: headers.get('content-type') }).toEqual({ status: 200, type: 'application/json' })
    expect(headers.get('access-control-allow-origin')).toBe('*')
    expect(json).toMatchObject({ symbol: 'AAPLc', address: APPLE })
  })

  it('has the fields of a snapshot from symbol on and then last, in this order', async () => {
    const state = ['multiplier', 'multiplier_source', 'scheduled', 'paused', 'supply', 'nav', 'quote', 'session']
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

describe('a name of a token', () => {
  it.each<[string, string, readonly string[]]>([
    ['with a typing error', 'APPL', ['AAPLc']],
    ['that is like no other', 'QQQQQQQQ', []],
    ['that is an unlisted address', `0x${'1'.repeat(40)}`, []],
    ['that is an unlisted ISIN', 'isin:US0000000000', []],
    ['that is an invalid ISIN', 'isin:', []],
    ['that means all tokens', '*', []],
  ])('%s leads to 404 with suggestions', async (_, selector, suggest) => {
    const { status, json } = await fetchToken(shared().url, selector)
    expect(status).toBe(404)
    const hint = suggest.length > 0 ? ` Did you mean ${suggest.join(' or ')}?` : ''
    const details = [{ '@type': 'stocktape/unknown_symbol', suggest }]
    if (selector === '*') expect(json).toMatchObject({ code: 404, message: expect.stringContaining("'*'") })
    else expect(json).toEqual({ code: 404, reason: 'unknown_symbol', message: `No tokenized stock '${selector}'.${hint}`, details })
  })

  it('that several tokens have leads to 404 with their addresses', async () => {
    const twin = `0xb2${'0'.repeat(36)}77`
    const { url } = await open((devnet) =>
      devnet.list.add({ contract_address: twin, symbol: 'AAPLc', decimals: 8, isin: 'US0378331005' }),
    )
    const Details = z.object({ details: z.array(z.object({ suggest: z.array(z.string()) })) })
    for (const selector of ['AAPLc', 'aapl', 'isin:US0378331005']) {
      const { status, json } = await fetchToken(url, selector)
      expect(status).toBe(404)
      expect(json).toMatchObject({ code: 404, details: [{ '@type': 'stocktape/ambiguous_symbol' }] })
      expect(Details.parse(json).details[0]?.suggest.toSorted()).toEqual([APPLE, twin].toSorted())
    }
    expect(await tokenOf(url, twin)).toMatchObject({ address: twin })
  })

  it('that a token had before still finds it', async () => {
    const { devnet, url } = await open()
    devnet.list.change('TSLAc', { symbol: 'TLAc' })
    await expect.poll(async () => (await fetchToken(url, 'TLAc')).status).toBe(200)
    expect(await tokenOf(url, 'TSLAc')).toMatchObject({ symbol: 'TLAc', token: { symbol: 'TLAc' } })
  })
})
