import { describe, expect, it } from 'vitest'
import { z } from 'zod'
import type { Devnet } from '../../../../src/devnet/devnet.ts'
import { startManualDevnet, ZERO } from '../devnet-client.ts'

const hasValidCheckDigit = (isin: string): boolean => {
  if (!/^[A-Z]{2}[0-9A-Z]{9}\d$/.test(isin)) return false
  const digits = [...isin].map((letter) => Number.parseInt(letter, 36)).join('')
  const sum = [...digits].toReversed().reduce((total, digit, at) => {
    const value = Number(digit) * (at % 2 === 0 ? 1 : 2)
    return total + (value > 9 ? value - 9 : value)
  }, 0)
  return sum % 10 === 0
}

const Record = z.strictObject({
  contract_address: z.string().regex(/^0x[0-9a-fA-F]{40}$/),
  symbol: z.string().min(1),
  name: z.string().min(1),
  decimals: z.int(),
  icon_url: z.url(),
  total_supply: z.number().positive(),
  isin: z.string().refine(hasValidCheckDigit, 'an ISIN with its check digit'),
  multiplier: z.number().positive(),
  paused_features: z.array(z.int()),
  nav_price: z.number().positive().optional(),
  nav_price_updated_at: z.iso.datetime().optional(),
})
const List = z.strictObject({ tokens: z.array(Record) })
const ErrorRecord = z.strictObject({ code: z.int(), message: z.string(), details: z.array(z.looseObject({ '@type': z.string() })) })

const textOf = async ({ stocksUrl }: Devnet) => (await fetch(stocksUrl)).text()
const tokensOf = async (devnet: Devnet) => List.parse(JSON.parse(await textOf(devnet))).tokens

describe('the token list', () => {
  it.each(['', '?page=2'])('is a JSON object with all tokens, without credentials: %s', async (query) => {
    const devnet = await startManualDevnet()
    const response = await fetch(devnet.stocksUrl + query)
    expect([response.status, response.headers.get('content-type')]).toEqual([200, 'application/json'])
    expect(response.headers.has('www-authenticate')).toBe(false)
    expect(List.parse(await response.json()).tokens).toHaveLength(13)
  })

  it('has one token without a reference value, and no other older than a heartbeat', async () => {
    const now = Date.UTC(2026, 10, 20, 15, 0, 7)
    const tokens = await tokensOf(await startManualDevnet({ now: () => now }))
    const without = (field: 'nav_price' | 'nav_price_updated_at') => tokens.filter((token) => token[field] === undefined)
    expect(without('nav_price').map(({ symbol }) => symbol)).toEqual(['INTCc'])
    expect(without('nav_price_updated_at').map(({ symbol }) => symbol)).toEqual(['INTCc'])
    const times = tokens.flatMap((token) => token.nav_price_updated_at ?? []).map(Date.parse)
    expect(Math.min(...times)).toBeGreaterThanOrEqual(now - 3_600_000)
    expect(Math.max(...times)).toBeLessThanOrEqual(now)
  })

  it.each([
    ['NVDAc', '1.000537939576369481'],
    ['GOOGLc', '1.000377118676784179'],
    ['METAc', '1.000313792289598084'],
  ])('writes the multiplier of %s with the digits %s', async (symbol, digits) => {
    const text = await textOf(await startManualDevnet())
    expect(text.slice(text.indexOf(symbol)).split('}')[0]).toContain(`"multiplier":${digits},`)
  })

  it('includes a mint and a burn in the total supply once they are sealed', async () => {
    const devnet = await startManualDevnet()
    const supply = async () => (await tokensOf(devnet)).find(({ symbol }) => symbol === 'AAPLc')?.total_supply ?? 0
    const before = await supply()
    devnet.transfer({ symbol: 'AAPLc', from: ZERO, raw: 300_000_000n })
    devnet.transfer({ symbol: 'AAPLc', to: ZERO, raw: 100_000_000n })
    devnet.makeFlashblock()
    expect(await supply()).toBe(before)
    devnet.seal()
    expect(await supply()).toBeCloseTo(before + 2, 8)
  })

  it.each([
    ['an unknown path', '/v1/tokenized-stock', 'GET', 404],
    ['another version', '/v2/tokenized-stocks', 'GET', 404],
    ['another method', '/v1/tokenized-stocks', 'POST', 405],
    ['a GET of the RPC path', '/rpc', 'GET', 405],
    ['a fault', '/v1/tokenized-stocks', 'GET', 429],
    ['a fault', '/v1/tokenized-stocks', 'GET', 500],
  ])('has an error record for %s: %s', async (what, path, method, status) => {
    const devnet = await startManualDevnet()
    if (what === 'a fault') devnet.faults.list = { status, retryAfterSeconds: 7 }
    const response = await fetch(devnet.url + path, { method })
    expect([response.status, response.headers.get('content-type')]).toEqual([status, 'application/json'])
    expect(ErrorRecord.parse(await response.json()).code).toBe(status)
    if (what !== 'a fault') return
    expect([response.headers.get('retry-after'), devnet.requests.list]).toEqual(['7', 1])
  })
})

describe('a test that controls the list', () => {
  it('adds, changes and removes records', async () => {
    const devnet = await startManualDevnet()
    devnet.list.add({ contract_address: `0xb2${'0'.repeat(37)}9`, symbol: 'NEWc', decimals: 8 })
    devnet.list.change('AAPLc', { symbol: 'AAPL', multiplier: '4.000000000000000001' })
    devnet.list.change('AAPL', { nav_price: undefined })
    devnet.list.remove('TSLAc')
    const symbols = devnet.list.records().map(({ symbol }) => symbol)
    expect(['NEWc', 'AAPL', 'TSLAc'].map((symbol) => symbols.includes(symbol))).toEqual([true, true, false])
    expect(await textOf(devnet)).toContain('"multiplier":4.000000000000000001')
    expect(devnet.list.records().find(({ symbol }) => symbol === 'AAPL')?.nav_price).toBeUndefined()
  })

  it.each([
    ['another body', '<html>', '<html>'],
    ['a part of the true body', (body: string) => body.slice(0, 9), '{"tokens"'],
  ])('serves %s', async (_, corruption, served) => {
    const devnet = await startManualDevnet()
    devnet.list.corrupt(corruption)
    expect(await textOf(devnet)).toBe(served)
    devnet.list.corrupt(undefined)
    expect(await tokensOf(devnet)).toHaveLength(13)
  })

  it('gets an error with the symbol that is not listed', async () => {
    const devnet = await startManualDevnet()
    expect(() => devnet.list.remove('XYZ')).toThrow('XYZ is not listed')
  })
})
