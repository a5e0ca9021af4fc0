import fc from 'fast-check'
import { describe, expect, it } from 'vitest'
import { RpcError } from '../../../../src/relay/gateway/rpc-error.ts'
import { isInvalidRequest, parseRpcBody } from '../../../../src/relay/gateway/rpc-request-parser.ts'

const chain = '"jsonrpc":"2.0","method":"eth_chainId"'

/** Each request of a body in short: its id as written, and its method or error code. */
const read = (text: string) =>
  parseRpcBody(text).requests.map((one) => [one.id, isInvalidRequest(one) ? one.error.code : one.method])

const codeOf = (text: string): number => {
  try {
    parseRpcBody(text)
  } catch (failure) {
    if (failure instanceof RpcError) return failure.code
    throw failure
  }
  throw new Error('it was read')
}

describe('a body', () => {
  it('holds one request', () => {
    expect(parseRpcBody(`{${chain},"params":[1,{"a":null}],"id":7}`)).toEqual({
      isBatch: false,
      requests: [{ id: '7', method: 'eth_chainId', params: [1, { a: null }] }],
    })
  })

  it('holds a batch', () => {
    const { isBatch, requests } = parseRpcBody(`[{${chain},"id":7},{${chain}},3]`)
    expect(isBatch).toBe(true)
    expect(requests.map((one) => [one.id, isInvalidRequest(one)])).toEqual([
      ['7', false],
      [null, false],
      ['null', true],
    ])
  })

  it.each(['', ' ', '{', 'nothing', '[1,]', '\ufeff{}', "{'a':1}", `[{${chain}`])('%j is no JSON', (text) => {
    expect(codeOf(text)).toBe(-32700)
  })

  it('holds at least one request, and at most 50', () => {
    const batch = (count: number) => `[${Array.from({ length: count }, () => `{${chain}}`).join()}]`
    expect(codeOf(batch(0))).toBe(-32600)
    expect(parseRpcBody(batch(1)).requests.length).toBe(1)
    expect(parseRpcBody(batch(50)).requests.length).toBe(50)
  })

  it('of more than 50 gets an error per request, as libraries expect, and a single one beyond 1,000', () => {
    const batch = (count: number) => `[${Array.from({ length: count }, (_, id) => `{${chain},"id":${id}}`).join()}]`
    expect(read(batch(101))).toEqual(Array.from({ length: 101 }, (_, id) => [String(id), -32600]))
    expect(read(batch(1_000))).toHaveLength(1_000)
    expect(codeOf(batch(1_001))).toBe(-32600)
  })

  it('without params has none, like one with null', () => {
    for (const text of [`{${chain}}`, `{${chain},"params":null}`])
      expect(parseRpcBody(text).requests).toEqual([{ id: null, method: 'eth_chainId', params: [] }])
  })

  it('is read or refused with an error for any input', () => {
    fc.assert(
      fc.property(fc.oneof(fc.json(), fc.string()), (text) => {
        try {
          for (const one of parseRpcBody(text).requests)
            if (one.id !== null) expect(['string', 'number', 'object']).toContain(typeof JSON.parse(one.id))
        } catch (failure) {
          expect(failure).toBeInstanceOf(RpcError)
        }
      }),
    )
  })
})

describe('an invalid request', () => {
  it.each([
    ['1', null],
    ['null', null],
    ['"text"', null],
    ['{}', null],
    [`{${chain.replace('2.0', '1.0')},"id":1}`, 1],
    ['{"method":"eth_chainId","id":1}', 1],
    ['{"jsonrpc":"2.0","id":"a"}', 'a'],
    ['{"jsonrpc":"2.0","method":1,"id":"a"}', 'a'],
    ['{"jsonrpc":"2.0","method":["eth_chainId"],"id":null}', null],
    [`{${chain},"params":"latest","id":5}`, 5],
    [`{${chain},"params":false}`, null],
    [`{"__proto__":{${chain},"id":1}}`, null],
  ])('gets the error under its id if it has one: %s', (text, id) => {
    expect(read(text)).toEqual([[JSON.stringify(id), -32600]])
    expect(read(`[${text},{${chain},"id":9}]`)).toEqual([
      [JSON.stringify(id), -32600],
      ['9', 'eth_chainId'],
    ])
  })

  it.each(['true', 'false', '{}', '[]', '[1]', '{"id":1}'])('has the id %s', (id) => {
    expect(read(`{${chain},"id":${id}}`)).toEqual([['null', -32600]])
  })

  it('has no method that only its prototype has', () => {
    expect(read('{"jsonrpc":"2.0","id":1,"method":{"toString":1}}')).toEqual([['1', -32600]])
    expect(read('{"jsonrpc":"2.0","id":1}')).toEqual([['1', -32600]])
  })
})

describe('an id', () => {
  const both = (id: string) => [...read(`{"id":${id},${chain}}`), ...read(`[{${chain},"id":${id}}]`)].map(([one]) => one)

  it('makes a notification if it is missing, and does not if it is null', () => {
    expect(read(`{${chain}}`)).toEqual([[null, 'eth_chainId']])
    expect(both('null')).toEqual(['null', 'null'])
  })

  it.each(['0', '-1', '1.5', '0.1', '9007199254740991', '-9007199254740991'])('keeps its text: %s', (id) => {
    expect(both(id)).toEqual([id, id])
  })

  it.each(['9007199254740993', '12345678901234567890', '1000000000000000000000001', '0.12345678901234567891'])(
    'keeps digits that no double holds: %s',
    (id) => expect(both(id)).toEqual([id, id]),
  )

  it.each(['1e400', '-1e400', '1e-400', '1.00000000000000000001', '0.10000000000000000001', '4503599627370496.25'])(
    'keeps what a double would lose silently: %s',
    (id) => expect(both(id)).toEqual([id, id]),
  )

  it('is that of the request, not of its params', () => {
    const id = '12345678901234567890'
    const text = `{"params":[{"id":98765432109876543210}],"id":${id},${chain}}`
    expect(read(text)).toEqual([[id, 'eth_chainId']])
    expect(read(`[${text},{${chain},"id":1,"params":[{"id":98765432109876543210}]}]`).map(([one]) => one)).toEqual([id, '1'])
  })

  it('keeps its digits beside deep nesting', () => {
    const nested = `${'['.repeat(50_000)}${']'.repeat(50_000)}`
    const text = `{${chain},"id":12345678901234567890,"params":${nested}}`
    expect(read(text)).toEqual([['12345678901234567890', 'eth_chainId']])
    expect(read(`[${text}]`)).toEqual([['12345678901234567890', 'eth_chainId']])
  })

  it.each([
    ['an escaped quote', String.raw`"a":"\"id\":2",`],
    ['backslashes before a quote', String.raw`"a\\":"\\","b":"\\\"",`],
    ['an escaped key', String.raw`"\u0069d":3.0,`],
    ['a nested id', '"a":[{"id":4.5}],'],
  ])('is found behind %s', (_, before) => {
    const text = `{${before}"id":1.50e0,${chain}}`
    expect(read(text)).toEqual([['1.50e0', 'eth_chainId']])
    expect(read(`[ ${text} ,{${chain},"id" : -7E1 }]`).map(([one]) => one)).toEqual(['1.50e0', '-7E1'])
  })

  it('that is a string comes back as the same string', () => {
    fc.assert(
      fc.property(fc.string({ unit: fc.nat(0xffff).map((code) => String.fromCharCode(code)) }), (id) => {
        for (const one of both(JSON.stringify(id))) expect(JSON.parse(String(one))).toBe(id)
      }),
    )
    expect(both('"\\ud800"').map((one) => JSON.parse(String(one)))).toEqual(['\ud800', '\ud800'])
  })

  it('that is an integer comes back as written, however long', () => {
    const integer = fc.bigInt({ min: -(10n ** 40n), max: 10n ** 40n }).map(String)
    fc.assert(
      fc.property(integer, (id) => {
        expect(both(id)).toEqual([id, id])
      }),
    )
  })
})
