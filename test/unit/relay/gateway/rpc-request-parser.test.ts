import fc from 'fast-check'
import { describe, expect, it } from 'vitest'
import { isInvalidRequest, parseRpcBody } from '../../../../src/relay/gateway/rpc-request-parser.ts'

const chain = '"jsonrpc":"2.0","method":"eth_chainId"'
const longId = '12345678901234567890'

/** Each request of a body in short: its id as written, and its method or error code. */
const read = (text: string) =>
  parseRpcBody(text).requests.map((one) => [one.id, isInvalidRequest(one) ? one.error.code : one.method])
/** The id of a request, by itself and in a batch. */
const both = (id: string) => [...read(`{"id":${id},${chain}}`), ...read(`[{${chain},"id":${id}}]`)].map(([one]) => one)

it('a request has its params, and none where they are null or absent', () => {
  const paramsOf = (more: string) => parseRpcBody(`{${chain}${more}}`).requests.map((one) => 'params' in one && one.params)
  expect(['', ',"params":null', ',"params":[1,{"a":null}]'].flatMap(paramsOf)).toEqual([[], [], [1, { a: null }]])
})

describe('an id', () => {
  it('makes a notification if it is missing, and does not if it is null', () => {
    expect(read(`{${chain}}`)).toEqual([[null, 'eth_chainId']])
    expect(both('null')).toEqual(['null', 'null'])
  })

  it.each([
    ...['0', '-1', '1.5', '9007199254740991'],
    // No double holds these.
    ...['9007199254740993', longId, '0.12345678901234567891', '1e400', '1.00000000000000000001'],
  ])('keeps its text: %s', (id) => expect(both(id)).toEqual([id, id]))

  it('is that of the request, not of its params', () => {
    const text = `{"params":[{"id":98765432109876543210}],"id":${longId},${chain}}`
    expect(read(text)).toEqual([[longId, 'eth_chainId']])
    expect(read(`[${text},{${chain},"id":1,"params":[{"id":98765432109876543210}]}]`).map(([one]) => one)).toEqual([longId, '1'])
  })

  it.each([
    ['an escaped quote', String.raw`"a":"\"id\":2",`],
    ['backslashes before a quote', String.raw`"a\\":"\\","b":"\\\"",`],
    ['an escaped key', String.raw`"\u0069d":3.0,`],
    ['a nested id', '"a":[{"id":4.5}],'],
    ['deep nesting', `"a":${'['.repeat(50_000)}${']'.repeat(50_000)},`],
  ])('is found behind %s', (_, before) => {
    const text = `{${before}"id":1.50e0,${chain}}`
    expect(read(text)).toEqual([['1.50e0', 'eth_chainId']])
    expect(read(`[ ${text} ,{${chain},"id" : -7E1 }]`).map(([one]) => one)).toEqual(['1.50e0', '-7E1'])
  })

  it('that is a string comes back as the same string', () => {
    const anyText = fc.string({ unit: fc.nat(0xffff).map((code) => String.fromCharCode(code)) })
    fc.assert(
      fc.property(anyText, (id) => {
        for (const one of both(JSON.stringify(id))) expect(JSON.parse(String(one))).toBe(id)
      }),
    )
    expect(both('"\\ud800"').map((one) => JSON.parse(String(one)))).toEqual(['\ud800', '\ud800'])
  })
})
