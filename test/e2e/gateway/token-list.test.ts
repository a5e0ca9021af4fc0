import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import { z } from 'zod'
import { type Devnet, startDevnet } from '../../../src/devnet/devnet.ts'
import { ErrorRecord } from '../../../src/protocol/refusal.ts'
import { openRelay, openRelayBeforeList, type TestRelay } from '../../support/in-process-relay.ts'
import { fetchDocumented, openDevnet, openRelayFor } from '../../support/test-stack.ts'

const PATH = '/v1/tokenized-stocks'
/** Longer than the relay takes to read its list again. */
const WAIT_OPTIONS = { timeout: 10_000, interval: 20 }

const List = z.strictObject({ tokens: z.array(z.looseObject({})) })

// One world for what only reads.
let devnet: Devnet
let relay: TestRelay
beforeAll(async () => {
  devnet = await startDevnet({ pace: 'manual' })
  relay = await openRelay(devnet, { STOCKS_REFRESH_MS: '15000' })
})
afterAll(async () => {
  await relay.stop()
  await devnet.stop()
})

/** A devnet and a relay of one's own that reads the list ten times in a second. */
async function open(before: (devnet: Devnet) => void = () => {}, settings: Record<string, string> = {}) {
  const own = await openDevnet()
  before(own)
  const { url } = await openRelayFor(own, settings)
  const list = async () => List.parse((await fetchDocumented(url + PATH)).json).tokens
  const truth = async () => List.parse((await fetchDocumented(own.stocksUrl)).json).tokens
  return { devnet: own, url, list, truth }
}

describe('the list through the relay', () => {
  it("is the upstream's own: one array of tokens, each as it came, in its order", async () => {
    const [published, direct] = [await fetchDocumented(relay.url + PATH), await fetchDocumented(devnet.stocksUrl)]
    expect(published.status).toBe(200)
    expect(published.headers.get('content-type')).toBe(direct.headers.get('content-type'))
    // As text, so that the order of tokens and of their fields counts.
    expect(JSON.stringify(published.json)).toBe(JSON.stringify(direct.json))
    expect(List.parse(published.json).tokens).toHaveLength(13)
  })

  it.each([
    ['contract_address', 'string'],
    ['symbol', 'string'],
    ['name', 'string'],
    ['decimals', 'number'],
    ['icon_url', 'string'],
    ['total_supply', 'number'],
    ['isin', 'string'],
    ['multiplier', 'number'],
    ['paused_features', 'object'],
    ['nav_price', 'number'],
    ['nav_price_updated_at', 'string'],
  ])('has the field %s of every token, a %s, as the upstream has it', async (field, type) => {
    const published = List.parse((await fetchDocumented(relay.url + PATH)).json).tokens
    const direct = List.parse((await fetchDocumented(devnet.stocksUrl)).json).tokens
    expect(published.map((token) => token[field])).toEqual(direct.map((token) => token[field]))
    const values = published.flatMap((token) => (field in token ? [token[field]] : []))
    expect(new Set(values.map((value) => typeof value))).toEqual(new Set([type]))
  })

  it('has no field that the upstream leaves out', async () => {
    const { list, truth } = await open((own) => {
      own.list.change('AAPLc', { name: undefined, isin: undefined, multiplier: undefined, total_supply: undefined })
      own.list.change('TSLAc', { symbol: undefined, decimals: undefined, paused_features: undefined })
    })
    expect(await list()).toEqual(await truth())
    const [apple = {}] = await list()
    expect(Object.keys(apple).toSorted()).toEqual([
      'contract_address',
      'decimals',
      'icon_url',
      'nav_price',
      'nav_price_updated_at',
      'paused_features',
      'symbol',
    ])
    const intel = (await list()).find(({ symbol }) => symbol === 'INTCc')
    expect(intel).toBeDefined()
    expect(intel).not.toHaveProperty('nav_price')
  })

  it('keeps fields that nobody knows, with their JSON types', async () => {
    const unknown = { region: { code: 'US', list: [1, 'two', null, { deep: false }] }, flag: false, note: null, n: 0.1 }
    const { list, truth } = await open((own) => own.list.change('AAPLc', unknown))
    expect(await list()).toEqual(await truth())
    expect((await list())[0]).toMatchObject(unknown)
  })

  it('keeps what is of another type than it should be, and what is at the edge', async () => {
    const { list, truth } = await open((own) => {
      own.list.change('AAPLc', { total_supply: 0, nav_price: 1e-9, paused_features: [0, 3, 1, 99] })
      own.list.change('AMZNc', { total_supply: 1.7976931348623157e308, nav_price: -5, decimals: 0 })
      own.list.change('COINc', { nav_price: '12' as unknown as number, nav_price_updated_at: 'yesterday' })
      own.list.change('CRCLc', { name: '“ß” 🍎 \u2028 <b>', isin: '', symbol: 'CR/CL c' })
    })
    expect(await list()).toEqual(await truth())
  })

  it('needs neither a query nor a credential, and minds neither', async () => {
    const [plain, more] = [
      await fetchDocumented(relay.url + PATH),
      await fetchDocumented(`${relay.url}${PATH}?page=2&limit=1&symbols=AAPLc`),
    ]
    expect(more.json).toEqual(plain.json)
    const bearer = await fetchDocumented(relay.url + PATH, {
      headers: { authorization: 'Bearer nobody', cookie: 'a=b' },
    })
    expect(bearer.json).toEqual(plain.json)
    expect(plain.headers.has('www-authenticate')).toBe(false)
    expect(plain.headers.has('set-cookie')).toBe(false)
  })

  it('answers HEAD with the headers of GET and nothing else', async () => {
    const [get, head] = [
      await fetchDocumented(relay.url + PATH),
      await fetchDocumented(relay.url + PATH, { method: 'HEAD' }),
    ]
    expect({ status: head.status, text: head.text }).toEqual({ status: 200, text: '' })
    for (const name of ['etag', 'content-type', 'cache-control', 'access-control-allow-origin'])
      expect(head.headers.get(name)).toBe(get.headers.get(name))
    expect(head.headers.get('age')).toMatch(/^\d+$/)
  })

  it('may be read by the pages of every origin, which may see its tag and its age', async () => {
    const headers = { origin: 'https://wallet.example' }
    const { headers: published } = await fetchDocumented(relay.url + PATH, { headers })
    expect(published.get('access-control-allow-origin')).toBe('*')
    const exposed = published.get('access-control-expose-headers')?.toLowerCase().split(/, */)
    expect(exposed).toEqual(expect.arrayContaining(['etag', 'age', 'retry-after']))
    expect(published.has('access-control-allow-credentials')).toBe(false)
    const asked = {
      ...headers,
      'access-control-request-method': 'GET',
      'access-control-request-headers': 'content-type',
    }
    const preflight = await fetchDocumented(relay.url + PATH, { method: 'OPTIONS', headers: asked })
    expect(preflight.status).toBe(204)
    expect(preflight.headers.get('access-control-allow-origin')).toBe('*')
    expect(preflight.headers.get('access-control-allow-methods')).toContain('GET')
    expect(preflight.headers.get('access-control-allow-headers')).toContain('content-type')
  })
})

describe('the list, asked for again', () => {
  it.each<[string, (tag: string) => string]>([
    ['its tag', (tag) => tag],
    ['its tag said weakly', (tag) => `W/${tag}`],
    ['any tag', () => '*'],
    ['its tag among others', (tag) => `"other", W/"third" , ${tag},"last"`],
    ['its weak tag among others', (tag) => `"other",W/${tag}`],
  ])('is not sent to whoever knows it by %s', async (_, known) => {
    const { headers } = await fetchDocumented(relay.url + PATH)
    const tag = headers.get('etag') ?? ''
    expect(tag).toMatch(/^"[!-~]+"$/)
    const again = await fetchDocumented(relay.url + PATH, { headers: { 'if-none-match': known(tag) } })
    expect({ status: again.status, text: again.text }).toEqual({ status: 304, text: '' })
    for (const name of ['etag', 'cache-control', 'access-control-allow-origin'])
      expect(again.headers.get(name)).toBe(headers.get(name))
    expect(again.headers.get('age')).toMatch(/^\d+$/)
  })

  it.each<[string, (tag: string) => string]>([
    ['another tag', () => '"other"'],
    ['a tag without quotes', (tag) => tag.replaceAll('"', '')],
    ['a part of its tag', (tag) => `${tag.slice(0, -2)}"`],
    ['nothing', () => ''],
  ])('is sent to whoever knows %s', async (_, known) => {
    const tag = (await fetchDocumented(relay.url + PATH)).headers.get('etag') ?? ''
    const again = await fetchDocumented(relay.url + PATH, { headers: { 'if-none-match': known(tag) } })
    expect(again.status).toBe(200)
    expect(List.parse(again.json).tokens).toHaveLength(13)
  })

  it('has the same tag as long as it is the same, and another as soon as it is not', async () => {
    const { devnet: own, url, list } = await open()
    const tag = async () => (await fetchDocumented(url + PATH)).headers.get('etag') ?? ''
    const before = await tag()
    const read = own.requests.list
    await own.until(() => own.requests.list >= read + 2)
    expect(await tag()).toBe(before)
    own.list.change('AAPLc', { nav_price: 325.5 })
    await expect.poll(async () => (await list())[0]?.nav_price, WAIT_OPTIONS).toBe(325.5)
    expect(await tag()).not.toBe(before)
    expect((await fetchDocumented(url + PATH, { headers: { 'if-none-match': before } })).status).toBe(200)
  })
})

describe('how old the list is', () => {
  const ageOf = async (url: string) => Number((await fetchDocumented(url + PATH)).headers.get('age'))

  it('is said in whole seconds, grows while nobody can read it, and begins anew when somebody can', async () => {
    const { devnet: own, url } = await open()
    expect(await ageOf(url)).toBe(0)
    own.faults.list = { status: 503 }
    await expect.poll(() => ageOf(url), WAIT_OPTIONS).toBeGreaterThanOrEqual(2)
    own.faults.clear()
    await expect.poll(() => ageOf(url), WAIT_OPTIONS).toBe(0)
  })

  it('begins anew where the upstream says the same again', async () => {
    const { devnet: own, url } = await open(() => {}, { STOCKS_REFRESH_MS: '1500' })
    await expect.poll(() => ageOf(url), WAIT_OPTIONS).toBe(1)
    const { list } = own.requests
    await own.until(() => own.requests.list > list)
    await expect.poll(() => ageOf(url), WAIT_OPTIONS).toBe(0)
  })

  it('tells everybody who keeps it how long it is good', async () => {
    const cachingOf = async (url: string, headers = {}) =>
      (await fetchDocumented(url + PATH, { headers })).headers.get('cache-control')
    expect(await cachingOf(relay.url)).toBe('public, max-age=15')
    const { url } = await open(() => {}, { API_KEYS: 'mine', STOCKS_REFRESH_MS: '60000' })
    expect(await cachingOf(url, { authorization: 'Bearer mine' })).toBe('private, max-age=60')
  })
})

describe("what becomes of the upstream's list", () => {
  it('shows up: a token more, one that changed, and all in their order', async () => {
    const { devnet: own, list, truth } = await open()
    own.list.add({ contract_address: `0xB2${'0'.repeat(37)}9`, symbol: 'AAAc', decimals: 8, total_supply: 1 })
    own.list.change('TSLAc', { total_supply: 1.5, name: 'Tesla, Inc.' })
    await expect.poll(async () => (await list()).length, WAIT_OPTIONS).toBe(14)
    expect(await list()).toEqual(await truth())
  })

  it('shows up: a token less, once the upstream has said so for long enough', async () => {
    const { devnet: own, list, truth } = await open()
    own.list.remove('TSLAc')
    await expect.poll(async () => (await list()).length, { timeout: 30_000, interval: 100 }).toBe(12)
    expect(await list()).toEqual(await truth())
  })

  it('is the last one that could be read while the upstream gives none', async () => {
    const { devnet: own, list } = await open()
    const before = await list()
    for (const wrong of ['<html>', '{"tokens":', '{"code":500,"message":"no","details":[]}', '[]']) {
      own.list.corrupt(wrong)
      const { list: read } = own.requests
      await own.until(() => own.requests.list >= read + 2)
      expect(await list()).toEqual(before)
    }
    own.faults.list = { status: 500 }
    const { list: read } = own.requests
    await own.until(() => own.requests.list >= read + 2)
    expect(await list()).toEqual(before)
  })
})

describe('anything else is the error record', () => {
  const recordOf = async (url: string, init: RequestInit = {}) => {
    const { status, headers, json } = await fetchDocumented(url, init)
    expect(headers.get('content-type')).toBe('application/json')
    expect(headers.get('access-control-allow-origin')).toBe('*')
    const record = ErrorRecord.parse(json)
    expect(record.code).toBe(status)
    expect(record.message).toMatch(/\S/)
    return { ...record, headers }
  }

  it.each(['POST', 'PUT', 'PATCH', 'DELETE'])('405 for %s', async (method) => {
    const { code, headers } = await recordOf(relay.url + PATH, { method })
    expect(code).toBe(405)
    expect(headers.get('allow')).toContain('GET')
  })

  it.each(['/v1/tokenized-stock', '/v2/tokenized-stocks', '/tokenized-stocks', '/v1/tokenized-stocks/AAPLc/nav'])(
    '404 for the path %s',
    async (path) => {
      expect((await recordOf(relay.url + path)).code).toBe(404)
    },
  )

  it.each(['', '/AAPLc'])('503 no_list before the first list, for the path …%s', async (path) => {
    const own = await openDevnet()
    own.faults.list = { status: 503 }
    const early = await openRelayBeforeList(own)
    try {
      const { code, details, headers } = await recordOf(early.url + PATH + path)
      expect({ code, details }).toEqual({ code: 503, details: [{ '@type': 'stocktape/no_list' }] })
      expect(headers.get('retry-after')).toMatch(/^\d+$/)
      own.faults.clear()
      await early.listed
      expect((await fetchDocumented(early.url + PATH + path)).status).toBe(200)
    } finally {
      await early.stop()
    }
  })
})
