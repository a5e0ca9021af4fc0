import { describe, expect, it } from 'vitest'
import { z } from 'zod'
import { startManualDevnet } from '../devnet-client.ts'

const Record = z.strictObject({
  contract_address: z.string().regex(/^0x[0-9a-fA-F]{40}$/),
  symbol: z.string().min(1),
  name: z.string().min(1),
  decimals: z.int(),
  icon_url: z.url(),
  total_supply: z.number().positive(),
  isin: z.string().refine((isin) => hasValidCheckDigit(isin), 'an ISIN with its check digit'),
  multiplier: z.number().positive(),
  paused_features: z.array(z.int()),
  nav_price: z.number().positive().optional(),
  nav_price_updated_at: z.iso.datetime().optional(),
})
const List = z.strictObject({ tokens: z.array(Record) })
const ErrorRecord = z.strictObject({ code: z.int(), message: z.string(), details: z.array(z.looseObject({ '@type': z.string() })) })

const hasValidCheckDigit = (isin: string): boolean => {
  if (!/^[A-Z]{2}[0-9A-Z]{9}\d$/.test(isin)) return false
  const digits = [...isin].map((letter) => Number.parseInt(letter, 36)).join('')
  const sum = [...digits].toReversed().reduce((total, digit, at) => {
    const value = Number(digit) * (at % 2 === 0 ? 1 : 2)
    return total + (value > 9 ? value - 9 : value)
  }, 0)
  return sum % 10 === 0
}

const get = async (url: string) => {
  const response = await fetch(url)
  return { response, json: await response.json() }
}

describe('the token list', () => {
  it('is a JSON object with an array of tokens', async () => {
    const devnet = await startManualDevnet()
    const { response, json } = await get(devnet.stocksUrl)
    expect(response.status).toBe(200)
    expect(response.headers.get('content-type')).toBe('application/json')
    expect(List.parse(json).tokens).toHaveLength(13)
  })

  it.each(Object.keys(Record.shape))('has a valid field %s', async (field) => {
    const devnet = await startManualDevnet()
    const { json } = await get(devnet.stocksUrl)
    const values = z
      .object({ tokens: z.array(z.looseObject({})) })
      .parse(json)
      .tokens.map((record) => record[field])
    const schema = z.object(Record.shape).shape[field as keyof typeof Record.shape]
    expect(values.some((value) => value !== undefined)).toBe(true)
    for (const value of values) expect(() => schema.parse(value)).not.toThrow()
  })

  it('ignores query parameters and contains every token in one answer', async () => {
    const devnet = await startManualDevnet()
    const { json } = await get(`${devnet.stocksUrl}?page=2`)
    expect(List.parse(json).tokens).toHaveLength(13)
  })

  it('needs no credentials', async () => {
    const devnet = await startManualDevnet()
    expect((await fetch(devnet.stocksUrl)).headers.has('www-authenticate')).toBe(false)
  })

  it('has a token without a reference value', async () => {
    const devnet = await startManualDevnet()
    const { tokens } = List.parse((await get(devnet.stocksUrl)).json)
    const withoutNav = tokens.filter((token) => token.nav_price === undefined)
    expect(withoutNav.map((token) => token.symbol)).toEqual(['INTCc'])
    expect(withoutNav[0]).not.toHaveProperty('nav_price_updated_at')
  })

  it.each([
    ['NVDAc', '1.000537939576369481'],
    ['GOOGLc', '1.000377118676784179'],
    ['METAc', '1.000313792289598084'],
  ])('writes the multiplier of %s with the digits %s', async (symbol, digits) => {
    const devnet = await startManualDevnet()
    const text = await (await fetch(devnet.stocksUrl)).text()
    const record = text.slice(text.indexOf(symbol)).split('}')[0]
    expect(record).toContain(`"multiplier":${digits},`)
  })

  it('includes a mint and a burn in the total supply once they are sealed', async () => {
    const devnet = await startManualDevnet()
    const supply = async () =>
      List.parse((await get(devnet.stocksUrl)).json).tokens.find((token) => token.symbol === 'AAPLc')?.total_supply
    const before = (await supply()) ?? 0
    devnet.transfer({ symbol: 'AAPLc', from: `0x${'0'.repeat(40)}`, raw: 300_000_000n })
    devnet.transfer({ symbol: 'AAPLc', to: `0x${'0'.repeat(40)}`, raw: 100_000_000n })
    devnet.makeFlashblock()
    expect(await supply()).toBe(before)
    devnet.seal()
    expect(await supply()).toBeCloseTo(before + 2, 8)
  })

  it('has reference values no older than a heartbeat', async () => {
    const now = Date.UTC(2026, 10, 20, 15, 0, 7)
    const devnet = await startManualDevnet({ now: () => now })
    const { tokens } = List.parse((await get(devnet.stocksUrl)).json)
    const times = tokens.flatMap((token) => token.nav_price_updated_at ?? []).map(Date.parse)
    expect(Math.min(...times)).toBeGreaterThanOrEqual(now - 3_600_000)
    expect(Math.max(...times)).toBeLessThanOrEqual(now)
  })
})

describe('the list server answers an error record', () => {
  it.each([
    ['an unknown path', '/v1/tokenized-stock', 'GET', 404],
    ['another version', '/v2/tokenized-stocks', 'GET', 404],
    ['another method', '/v1/tokenized-stocks', 'POST', 405],
    ['a GET of the RPC path', '/rpc', 'GET', 405],
  ])('for %s', async (_, path, method, status) => {
    const devnet = await startManualDevnet()
    const response = await fetch(devnet.url + path, { method })
    expect(response.status).toBe(status)
    expect(response.headers.get('content-type')).toBe('application/json')
    expect(ErrorRecord.parse(await response.json()).code).toBe(status)
  })

  it.each([429, 500, 503])('when a fault refuses the list with %i', async (status) => {
    const devnet = await startManualDevnet()
    devnet.faults.list = { status, retryAfterSeconds: 7 }
    const { response, json } = await get(devnet.stocksUrl)
    expect(response.status).toBe(status)
    expect(response.headers.get('retry-after')).toBe('7')
    expect(ErrorRecord.parse(json).code).toBe(status)
    expect(devnet.requests.list).toBe(1)
  })
})

describe('a test that controls the list', () => {
  it('adds, changes and removes records', async () => {
    const devnet = await startManualDevnet()
    devnet.list.add({ contract_address: `0xb2${'0'.repeat(37)}9`, symbol: 'NEWc', decimals: 8 })
    devnet.list.change('AAPLc', { symbol: 'AAPL', multiplier: '4.000000000000000001', nav_price: undefined })
    devnet.list.remove('TSLAc')
    const text = await (await fetch(devnet.stocksUrl)).text()
    const symbols = devnet.list.records().map((record) => record.symbol)
    expect(symbols).toContain('NEWc')
    expect(symbols).toContain('AAPL')
    expect(symbols).not.toContain('TSLAc')
    expect(text).toContain('"multiplier":4.000000000000000001')
    expect(devnet.list.records().find((record) => record.symbol === 'AAPL')?.nav_price).toBeUndefined()
  })

  it.each([
    ['another body', '<html>', '<html>'],
    ['a part of the true body', (body: string) => body.slice(0, 9), '{"tokens"'],
  ])('serves %s', async (_, corruption, served) => {
    const devnet = await startManualDevnet()
    devnet.list.corrupt(corruption)
    expect(await (await fetch(devnet.stocksUrl)).text()).toBe(served)
    devnet.list.corrupt(undefined)
    expect(List.safeParse((await get(devnet.stocksUrl)).json).success).toBe(true)
  })

  it('gets an error with the symbol that is not listed', async () => {
    const devnet = await startManualDevnet()
    expect(() => devnet.list.remove('XYZ')).toThrow('XYZ is not listed')
  })
})
