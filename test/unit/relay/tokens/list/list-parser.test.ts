import fc from 'fast-check'
import { describe, expect, it } from 'vitest'
import { findRecords, ListError } from '../../../../../src/relay/tokens/list/find-records.ts'
import { APPLE, apple, listBody, parsedList, parseText, type StockRecord, TESLA, tesla, tokenOf } from '../stock-records.ts'

const readOne = (record: StockRecord | string) => {
  const [token, ...others] = parsedList(record)
  if (!token || others.length > 0) throw new Error('not one token')
  return token
}

describe('a list', () => {
  it.each(['{"tokens":[]}', `{"tokens":[],"x":${'['.repeat(30_000)}${']'.repeat(30_000)}}`])('may be empty: %.30s', (text) => {
    expect(parseText(text)).toEqual({ tokens: [], skipped: [] })
  })

  it.each<[string, string]>([
    ['HTML', '<!doctype html><title>maintenance</title>'],
    ['an error record', '{"code":13,"message":"internal","details":[]}'],
    ['truncated', listBody(apple()).slice(0, -20)],
    ['empty', ''],
    ['null', 'null'],
    ['an array', '[]'],
    ['tokens that are no array', '{"tokens":{"0":{}}}'],
    ['beyond the bound of records', `{"tokens":[${Array(100_001).fill('{}').join()}]}`],
  ])('is refused if it is %s', (_, text) => {
    expect(() => parseText(text)).toThrow(ListError)
  })

  it('skips bad records with a reason, and keeps the others', () => {
    const { tokens, skipped } = parseText(
      listBody('null', '7', '[]', '"AAPLc"', '{}', apple(), apple({ symbol: 'again' }), tesla({ contract_address: '0x12' })),
    )
    expect(tokens.map(({ symbol }) => symbol)).toEqual(['AAPLc'])
    expect(skipped).toHaveLength(7)
    expect(skipped[0]).toBe('record 0: not an object')
    expect(skipped[4]).toBe('record 4: no usable contract_address')
    expect(skipped[5]).toBe(`record 6: ${APPLE} is listed twice`)
  })

  const nested = (levels: number) => JSON.stringify(apple()).replace('"Apple"', `${'['.repeat(levels)}${']'.repeat(levels)}`)
  const long = (bytes: number) =>
    JSON.stringify(apple({ website: 'x'.repeat(bytes - JSON.stringify(apple({ website: '' })).length) }))

  it.each<[string, string, string | null]>([
    ['nested 32 levels deep', nested(31), null],
    ['nested 33 levels deep', nested(32), 'nested deeper than 32 levels'],
    ['nested 1,000 levels deep', nested(1_000), 'nested deeper than 32 levels'],
    ['nested 30,000 levels deep', nested(30_000), 'nested deeper than 32 levels'],
    ['an array nested 1,000 levels deep', `${'['.repeat(1_000)}${']'.repeat(1_000)}`, 'nested deeper than 32 levels'],
    ['64 KiB long', long(65_536), null],
    ['longer than 64 KiB', long(65_537), 'longer than 65536 bytes'],
    ['too long and nested too deep', nested(500_000), 'longer than 65536 bytes'],
  ])('skips a record that is too large, and keeps the others: %s', (_, record, reason) => {
    const { tokens, skipped } = parseText(listBody(tesla(), record, apple({ contract_address: `0x${'1'.repeat(40)}` })))
    expect(tokens.map(({ address }) => address).includes(APPLE)).toBe(reason === null)
    expect(tokens).toHaveLength(reason === null ? 3 : 2)
    expect(skipped).toEqual(reason === null ? [] : [`record 1: ${reason}`])
  })

  it.each<[string, unknown]>([
    ['missing', undefined],
    ['null', null],
    ['zero', `0x${'0'.repeat(40)}`],
    ['short', '0xb2'],
    ['a number', 178],
    ['without 0x', 'b200000000000000000000C2e324d24d7eEcd1fb'],
    ['not hex', `0x${'g'.repeat(40)}`],
  ])('skips a record whose address is %s', (_, contract_address) => {
    expect(parsedList(apple({ contract_address }))).toEqual([])
  })

  it('keeps the first of two records with the same address, ignoring case', () => {
    const list = parsedList(apple(), apple({ contract_address: APPLE, symbol: 'second' }))
    expect(list.map(({ symbol }) => symbol)).toEqual(['AAPLc'])
  })

  it('keeps two tokens with the same symbol', () => {
    expect(parsedList(apple(), tesla({ symbol: 'AAPLc' })).map(({ address }) => address)).toEqual([APPLE, TESLA])
  })
})

describe('a record', () => {
  it('is kept unchanged, with its JSON types and unknown fields', () => {
    const record = { ...apple(), icon_url: 'https://icons.example/a.svg', nested: { a: [1, { b: null }] }, flag: false }
    expect(readOne(record).record).toEqual(record)
  })

  it.each<[string, unknown]>([
    ['a script', 'javascript:alert(1)'],
    ['a disguised script', ' \tJaVaScript:alert(1)//https://icons.example'],
    ['a data URL', 'data:image/svg+xml,<svg onload="alert(1)"/>'],
    ['not encrypted', 'http://icons.example/a.svg'],
    ['without a scheme', '//icons.example/a.svg'],
    ['a path', '/a.svg'],
    ['only a scheme', 'https://'],
    ['https without slashes', 'https:icons.example'],
    ['after a space', ' https://icons.example/a.svg'],
    ['empty', ''],
    ['null', null],
    ['a number', 7],
    ['a list', ['https://icons.example/a.svg']],
    ['too long', `https://icons.example/${'a'.repeat(2_027)}`],
    ['too long in bytes, not in characters', `https://icons.example/${'é'.repeat(1_014)}`],
    ['huge', `https://icons.example/${'a'.repeat(64_000)}`],
  ])('is kept without its icon if that is %s', (_, icon_url) => {
    const { icon_url: _icon, ...others } = { ...apple(), website: 'http://example.com', icon_url }
    expect(readOne({ ...others, icon_url }).record).toEqual(others)
  })

  it.each(['https://icons.example/a.svg', 'HTTPS://icons.example', `https://icons.example/${'a'.repeat(2_026)}`])(
    'keeps a valid icon: %s',
    (icon_url) => {
      expect(readOne(apple({ icon_url })).record.icon_url).toBe(icon_url)
    },
  )

  it('keeps a field named __proto__ as a plain field', () => {
    const { record } = readOne(`{"contract_address":"${APPLE}","__proto__":{"polluted":1}}`)
    expect(Object.keys(record)).toEqual(['contract_address', '__proto__'])
    expect(({} as { polluted?: number }).polluted).toBeUndefined()
  })

  it('needs only its address', () => {
    expect(readOne({ contract_address: APPLE })).toEqual({
      address: APPLE,
      symbol: APPLE,
      isin: null,
      decimals: null,
      multiplier: null,
      supply: null,
      paused: [],
      nav: { price: null, updatedAt: null },
      record: { contract_address: APPLE },
    })
  })

  it.each(['', '   ', '*', ' * ', null, 7, ['AAPLc']])('has its address as symbol if its symbol is %j', (symbol) => {
    expect(readOne(apple({ symbol })).symbol).toBe(APPLE)
  })

  it.each(['BRK.B', 'a b', 'é€😀', 'x\ny', 'A>B', '../../..'])('may have the symbol %j', (symbol) => {
    expect(readOne(apple({ symbol })).symbol).toBe(symbol)
  })

  it('has its symbol cut to a bound', () => {
    expect(readOne(apple({ symbol: 'x'.repeat(10_000) })).symbol).toHaveLength(128)
  })

  it.each([
    [`${'x'.repeat(127)}😀`, `${'x'.repeat(127)}\ufffd`],
    ['\ud800AAPL', '\ufffdAAPL'],
  ])('has lone surrogates in its symbol replaced', (symbol, wellFormed) => {
    expect(readOne(apple({ symbol })).symbol).toBe(wellFormed)
  })

  it.each([null, '8', -1, 78, 8.5, 1e21, true])('has unknown decimals if they are %j', (decimals) => {
    expect(readOne(apple({ decimals })).decimals).toBeNull()
    expect([0, 77].map((known) => readOne(apple({ decimals: known })).decimals)).toEqual([0, 77])
  })

  it.each<[string, string]>([
    ['1.000537939576369481', '1.000537939576369481'],
    ['1', '1'],
    ['1.0', '1'],
    ['2.50', '2.5'],
    ['1e0', '1'],
    ['5e-1', '0.5'],
    ['1.5E+1', '15'],
    ['0.000000000000000001', '0.000000000000000001'],
    ['123456789012345678901234567890.123456789', '123456789012345678901234567890.123456789'],
  ])('keeps every digit of the multiplier %s', (digits, exact) => {
    const text = JSON.stringify(apple({ multiplier: 'placeholder' })).replace('"placeholder"', digits)
    expect(readOne(text).multiplier).toBe(exact)
  })

  it.each(['0', '-1', '0.0', '-0', '"1"', 'null', 'true', '[1]', '1e-999', '1e999'])(
    'has an unknown multiplier if it is %s',
    (digits) => {
      expect(readOne(JSON.stringify(apple({ multiplier: 'placeholder' })).replace('"placeholder"', digits)).multiplier).toBeNull()
    },
  )

  it.each([
    ['[0,1,7]', '0,1,7'],
    ['null', ''],
    ['"TRANSFER"', ''],
    ['[0,"MINT",null,1.5,2]', '0,2'],
    ['[2,0,0,-1,1.5]', '0,2'],
  ])('reads the paused features %s as %s', (features, paused) => {
    expect(tokenOf(apple({ paused_features: JSON.parse(features) })).paused.join()).toBe(paused)
  })

  it.each<[unknown, string | null]>([
    [19_893.91, '19893.91'],
    [0, '0'],
    [-1, null],
    ['7', null],
    [undefined, null],
  ])('reads the supply %j as %j', (total_supply, supply) => {
    expect(readOne(apple({ total_supply })).supply).toBe(supply)
  })

  it('has every digit of the last one of two numbers with one name', () => {
    const record = JSON.stringify(apple()).replace('}', ',"m\\u0075ltiplier":12345678901234567890.5}')
    expect(readOne(record).multiplier).toBe('12345678901234567890.5')
  })

  it('keeps every digit of its NAV', () => {
    const text = JSON.stringify(apple({ nav_price: 'placeholder' })).replace('"placeholder"', '324.30140000000000001')
    expect(readOne(text).nav.price).toBe('324.30140000000000001')
  })

  it.each<[unknown, number | null]>([
    ['2026-11-20T11:30:03Z', Date.parse('2026-11-20T11:30:03Z')],
    ['2026-11-20T11:30:03.123456Z', Date.parse('2026-11-20T11:30:03.123Z')],
    ['2026-11-20T06:30:03-05:00', Date.parse('2026-11-20T11:30:03Z')],
    ['1970-01-01T00:00:00Z', 0],
    ['2026-11-20T11:30:03', null],
    ['2026-11-20', null],
    ['20 November 2026', null],
    ['2026-13-40T99:99:99Z', null],
    [1_795_000_000, null],
    [null, null],
    [undefined, null],
    ['', null],
    ['2026-02-30T10:00:00Z', null],
    ['2026-02-28T10:00:00Z', Date.parse('2026-02-28T10:00:00Z')],
    ['2026-11-20T24:00:00Z', null],
    ['2026-00-10T10:00:00Z', null],
  ])('reads the NAV time %j as %j', (nav_price_updated_at, updatedAt) => {
    expect(readOne(apple({ nav_price_updated_at })).nav.updatedAt).toBe(updatedAt)
  })
})

it('a list with any JSON is parsed or refused with a ListError', () => {
  const Value = fc.oneof(fc.jsonValue(), fc.double(), fc.string())
  const CorruptRecord = fc
    .record(Object.fromEntries(Object.keys(apple()).map((name) => [name, fc.option(Value)])))
    .map((wrong) => JSON.stringify({ ...apple(), ...wrong }))
  fc.assert(
    fc.property(
      fc.array(
        fc.oneof(
          CorruptRecord,
          fc.jsonValue().map((value) => JSON.stringify(value)),
        ),
        { maxLength: 5 },
      ),
      (records) => {
        const { tokens, skipped } = parseText(listBody(...records, tesla()))
        expect(tokens.length + skipped.length).toBe(records.length + 1)
        for (const { record, multiplier, decimals } of tokens) {
          expect(record).toEqual(JSON.parse(JSON.stringify(record)))
          if (multiplier !== null) expect(multiplier).toMatch(/^(0|[1-9]\d*)(\.\d*[1-9])?$/)
          if (decimals !== null) expect(Number.isInteger(decimals)).toBe(true)
        }
      },
    ),
  )
  fc.assert(
    fc.property(fc.oneof(fc.json(), fc.string()), (text) => {
      try {
        parseText(text)
      } catch (failure) {
        expect(failure).toBeInstanceOf(ListError)
      }
    }),
  )
})

it('a list is cut into records wherever they end, as if it were parsed whole', () => {
  const name = fc.constantFrom('"tokens"', '"token"', '"x"', '"\\"tokens"')
  const space = fc.constantFrom('', ' ', '\n\t')
  const value = fc.json({ depthSize: 'small' })
  const list = fc
    .tuple(fc.array(value, { maxLength: 4 }), space)
    .map(([items, gap]) => `[${gap}${items.join(`${gap},${gap}`)}${gap}]`)
  const member = fc.tuple(name, space, fc.oneof(list, value)).map(([key, gap, inner]) => `${key}${gap}:${gap}${inner}`)
  const text = fc.tuple(fc.array(member, { minLength: 1, maxLength: 3 }), space).map(([all, gap]) => `{${all.join(`,${gap}`)}}`)
  fc.assert(
    fc.property(text, (answer) => {
      const { tokens }: { tokens?: unknown } = JSON.parse(answer)
      const steps = findRecords(Buffer.from(answer))
      const { envelope, ranges } = steps.next().value ?? { envelope: '', ranges: [] }
      if (!Array.isArray(tokens)) return void expect(Array.isArray(JSON.parse(envelope).tokens)).toBe(false)
      expect(JSON.parse(envelope).tokens).toEqual([])
      const body = Buffer.from(answer)
      expect(ranges.map(({ from, to }) => JSON.parse(body.toString('utf8', from, to)))).toEqual(tokens)
    }),
  )
})
