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
  isin: z.string().regex(/^[A-Z]{2}[0-9A-Z]{9}\d$/),
  multiplier: z.number().positive(),
  paused_features: z.array(z.int()),
  nav_price: z.number().positive().optional(),
  nav_price_updated_at: z.iso.datetime().optional(),
})
const List = z.strictObject({ tokens: z.array(Record) })
const ErrorRecord = z.strictObject({ code: z.int(), message: z.string(), details: z.array(z.never()) })

describe('the token list', () => {
  it('is a JSON object with all tokens and exact multipliers; one has no reference value, and no other an old one', async () => {
    const now = Date.UTC(2026, 10, 20, 15, 0, 7)
    const devnet = await startManualDevnet({ now: () => now })
    const response = await fetch(`${devnet.stocksUrl}?page=2`)
    expect([response.status, response.headers.get('content-type')]).toEqual([200, 'application/json'])
    const text = await response.text()
    expect(text.slice(text.indexOf('NVDAc')).split('}')[0]).toContain('"multiplier":1.000537939576369481,')
    const { tokens } = List.parse(JSON.parse(text))
    expect(tokens).toHaveLength(13)
    const priced = tokens.filter((token) => token.nav_price && token.nav_price_updated_at)
    expect(tokens.filter((token) => !priced.includes(token)).map(({ symbol }) => symbol)).toEqual(['INTCc'])
    const ages = priced.map((token) => now - Date.parse(token.nav_price_updated_at ?? ''))
    expect(ages.filter((age) => !(age >= 0 && age <= 3_600_000))).toEqual([])
  })

  it.each([
    ['an unknown path', '/v1/tokenized-stock', 'GET', 404],
    ['another method', '/v1/tokenized-stocks', 'POST', 405],
    ['a GET of the RPC path', '/rpc', 'GET', 405],
    ['a fault', '/v1/tokenized-stocks', 'GET', 429],
  ])('has an error record for %s', async (what, path, method, status) => {
    const devnet = await startManualDevnet()
    if (what === 'a fault') devnet.faults.list = { status }
    const response = await fetch(devnet.url + path, { method })
    expect([response.status, response.headers.get('content-type')]).toEqual([status, 'application/json'])
    expect(ErrorRecord.parse(await response.json()).code).toBe(status)
  })
})
