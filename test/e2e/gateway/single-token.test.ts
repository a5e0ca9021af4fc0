import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import { z } from 'zod'
import { type Devnet, startDevnet } from '../../../src/devnet/devnet.ts'
import { openRelay, type TestRelay } from '../../support/in-process-relay.ts'
import { listenNdjson } from '../../support/test-listener.ts'
import { fetchDocumented, openDevnet, openRelayFor, openTestStack, transfer } from '../../support/test-stack.ts'

const PATH = '/v1/tokenized-stocks'
const WAIT_OPTIONS = { timeout: 30_000, interval: 50 }
const APPLE = '0xb200000000000000000000c2e324d24d7eecd1fb'

// One world for what only reads.
let devnet: Devnet
let relay: TestRelay
beforeAll(async () => {
  devnet = await startDevnet({ pace: 'manual' })
  relay = await openRelay(devnet)
})
afterAll(async () => {
  await relay.stop()
  await devnet.stop()
})

const TokenAnswer = z.looseObject({ symbol: z.string(), address: z.string(), token: z.looseObject({}) })
const fetchTokenRaw = (url: string, selector: string) =>
  fetchDocumented(`${url}${PATH}/${encodeURIComponent(selector)}`)
const fetchToken = async (url: string, selector: string) => TokenAnswer.parse((await fetchTokenRaw(url, selector)).json)

describe('one token', () => {
  it.each<[string, string]>([
    ['its symbol', 'AAPLc'],
    ['its symbol in any case', 'aaplC'],
    ['its symbol without the c', 'aapl'],
    ['its address', APPLE],
    ['its address as the list writes it', '0xb200000000000000000000C2e324d24d7eEcd1fb'],
    ['its address in capitals', `0x${APPLE.slice(2).toUpperCase()}`],
    ['its ISIN', 'isin:US0378331005'],
    ['its ISIN in any case', 'ISIN:us0378331005'],
  ])('is found by %s', async (_, selector) => {
    const { status, headers } = await fetchTokenRaw(relay.url, selector)
    expect({ status, type: headers.get('content-type') }).toEqual({ status: 200, type: 'application/json' })
    expect(headers.get('access-control-allow-origin')).toBe('*')
    expect(await fetchToken(relay.url, selector)).toMatchObject({ symbol: 'AAPLc', address: APPLE })
  })

  it('is found by an ISIN as it is, without escapes', async () => {
    expect((await fetchDocumented(`${relay.url}${PATH}/isin:US0378331005`)).json).toMatchObject({ symbol: 'AAPLc' })
  })

  it('has the fields of a snapshot from symbol on, and last, in this order', async () => {
    expect(Object.keys(Object((await fetchTokenRaw(relay.url, 'AAPLc')).json))).toEqual([
      'symbol',
      'address',
      'as_of',
      'token',
      'multiplier',
      'multiplier_source',
      'scheduled',
      'paused',
      'supply',
      'nav',
      'last',
    ])
  })

  it.each(['AAPLc', 'NVDAc', 'INTCc'])('is told of %s as a listener is told of it', async (symbol) => {
    const listener = await listenNdjson(`${relay.url}/v1/stream?symbols=${symbol}`)
    const { type, id, as_of, nav, ...snapshot } = await listener.waitFor('snapshot')
    listener.close()
    const published = await fetchToken(relay.url, symbol)
    expect(published).toMatchObject(snapshot)
    expect(published.nav).toMatchObject({ ...nav, age_s: nav.age_s === null ? null : expect.any(Number) })
    expect([type, typeof id, typeof as_of, typeof published.as_of]).toEqual(['snapshot', 'string', 'string', 'string'])
  })

  it("holds the upstream's own record, unchanged", async () => {
    const { tokens } = z
      .object({ tokens: z.array(z.looseObject({})) })
      .parse((await fetchDocumented(devnet.stocksUrl)).json)
    for (const token of tokens) expect((await fetchToken(relay.url, String(token.symbol))).token).toEqual(token)
  })

  it('answers HEAD', async () => {
    const { status, text } = await fetchDocumented(`${relay.url}${PATH}/AAPLc`, { method: 'HEAD' })
    expect({ status, text }).toEqual({ status: 200, text: '' })
  })

  it('is only read', async () => {
    const { status, headers, json } = await fetchDocumented(`${relay.url}${PATH}/AAPLc`, { method: 'DELETE' })
    expect({ status, json }).toMatchObject({ status: 405, json: { code: 405 } })
    expect(headers.get('allow')).toContain('GET')
  })
})

describe('the last of a token', () => {
  it('is the position of its newest message, of whatever type', async () => {
    const stack = await openTestStack()
    const { url } = stack.relay
    const newest = async (symbol: string) => {
      const { json } = await fetchDocumented(`${url}/v1/events?symbols=${symbol}&types=*&order=desc&limit=1`)
      return z.object({ events: z.array(z.object({ id: z.string(), type: z.string() })) }).parse(json).events[0]
    }
    const seen = new Set<string | undefined>()
    const agrees = async (symbol: string, type: string) => {
      await expect.poll(async () => (await newest(symbol))?.type, WAIT_OPTIONS).toBe(type)
      const { id } = (await newest(symbol)) ?? {}
      expect((await fetchToken(url, symbol)).last).toBe(id)
      seen.add(id)
    }
    const quiet = (await fetchToken(url, 'TSLAc')).last
    transfer(stack, 'AAPLc')
    await agrees('AAPLc', 'transfer')
    stack.devnet.seal()
    await agrees('AAPLc', 'seal')
    stack.devnet.list.change('AAPLc', { name: 'Apple, Inc.' })
    await agrees('AAPLc', 'token')
    expect(seen.size).toBe(3)
    expect((await fetchToken(url, 'TSLAc')).last).toBe(quiet)
  })
})

describe('a name', () => {
  it.each<[string, string, readonly string[]]>([
    ['with a slip of the fingers', 'APPL', ['AAPLc']],
    ['like no other', 'QQQQQQQQ', []],
    ['of an address that is not listed', `0x${'1'.repeat(40)}`, []],
    ['of an ISIN that is not listed', 'isin:US0000000000', []],
    ['of an ISIN that is none', 'isin:', []],
  ])('%s leads to 404 with what was meant', async (_, selector, suggest) => {
    const { status, json } = await fetchTokenRaw(relay.url, selector)
    expect(status).toBe(404)
    const hint = suggest.length > 0 ? ` Did you mean ${suggest.join(' or ')}?` : ''
    expect(json).toEqual({
      code: 404,
      message: `No tokenized stock '${selector}'.${hint}`,
      details: [{ '@type': 'stocktape/unknown_symbol', suggest }],
    })
  })

  it('that means all of them is none of one: the refusal says which name', async () => {
    const { status, json } = await fetchTokenRaw(relay.url, '*')
    expect({ status, json }).toMatchObject({
      status: 404,
      json: { code: 404, message: expect.stringContaining("'*'") },
    })
  })

  it('that several bear leads to 404 with their addresses', async () => {
    const twin = `0xb2${'0'.repeat(36)}77`
    const own = await openDevnet()
    own.list.add({ contract_address: twin, symbol: 'AAPLc', decimals: 8, isin: 'US0378331005' })
    const { url } = await openRelayFor(own)
    for (const selector of ['AAPLc', 'aapl', 'isin:US0378331005']) {
      const { status, json } = await fetchTokenRaw(url, selector)
      expect(status).toBe(404)
      expect(json).toMatchObject({ code: 404, details: [{ '@type': 'stocktape/ambiguous_symbol' }] })
      const { details } = z.object({ details: z.array(z.object({ suggest: z.array(z.string()) })) }).parse(json)
      expect(details[0]?.suggest.toSorted()).toEqual([APPLE, twin].toSorted())
    }
    expect(await fetchToken(url, twin)).toMatchObject({ address: twin })
  })

  it('that a token bore before still finds it', async () => {
    const own = await openDevnet()
    const { url } = await openRelayFor(own)
    own.list.change('TSLAc', { symbol: 'TLAc' })
    await expect.poll(async () => (await fetchTokenRaw(url, 'TLAc')).status, WAIT_OPTIONS).toBe(200)
    expect(await fetchToken(url, 'TSLAc')).toMatchObject({ symbol: 'TLAc', token: { symbol: 'TLAc' } })
  })
})

describe('a token that is not listed any more', () => {
  it('is told as it was last, and is not on the list', async () => {
    const own = await openDevnet()
    const { url } = await openRelayFor(own)
    const before = await fetchToken(url, 'TSLAc')
    own.list.remove('TSLAc')
    const symbols = async () =>
      z.object({ tokens: z.array(z.object({ symbol: z.string() })) }).parse((await fetchDocumented(url + PATH)).json)
        .tokens
    await expect.poll(async () => (await symbols()).length, WAIT_OPTIONS).toBe(12)
    const after = await fetchToken(url, 'TSLAc')
    expect(after.token).toEqual(before.token)
    const { json } = await fetchDocumented(`${url}/v1/events?symbols=TSLAc&types=token&order=desc&limit=1`)
    expect(json).toMatchObject({ events: [{ change: 'delisted', id: after.last }] })
  })
})
