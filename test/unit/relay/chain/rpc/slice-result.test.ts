import fc from 'fast-check'
import { describe, expect, it } from 'vitest'
import { sliceResult } from '../../../../../src/relay/chain/rpc/slice-result.ts'
import { openOne } from './fake-endpoint.ts'

const rawResultOf = (answer: string, id = 1): string | null => sliceResult(Buffer.from(answer), id)?.toString() ?? null

describe('the raw result', () => {
  it.each<[answer: string, result: string | null, id?: number]>([
    [' { "jsonrpc" : "2.0" , "id" : 1 ,\n"result" : 7 } \n', '7'],
    ['{"jsonrpc":"2.0","id":1,"result":{"id":1,"jsonrpc":"2.0"}}', '{"id":1,"jsonrpc":"2.0"}'],
    ['{"jsonrpc":"2.0","id":1,"result":"{\\"id\\":1}"}', '"{\\"id\\":1}"'],
    ['{"jsonrpc":"2.0","id":12,"result":1}', '1', 12],
    ['{"jsonrpc":"2.0","id":12,"result":1}', null],
    ['{"jsonrpc":"2.0","result":1,"id":12}', null],
    ['{"jsonrpc":"2.0","result":1}', null],
    ['{"jsonrpc":"2.0","id":1}', null],
    ['{"jsonrpc":"2.0","id":1,"error":{"code":1,"message":"x"}}', null],
    ['{"jsonrpc":"1.0","id":1,"result":1}', null],
    ['{"jsonrpc":"2.0","id":"1","result":1}', null],
    ['{"jsonrpc":"2.0","id":null,"result":1}', null],
    ['{"jsonrpc":"2.0","id":1,"more":1,"result":1}', null],
    ['[{"jsonrpc":"2.0","id":1,"result":1}]', null],
    ['{"jsonrpc":"2.0","id":1,"result":1}x', null],
    ['{"jsonrpc":"2.0","id":1,"result":1', null],
  ])('has the bytes of the answer to the request, and is not cut out of an unexpected one: %s', (answer, result, id) => {
    expect(rawResultOf(answer, id)).toBe(result)
  })

  const envelope = (result: string, id: number, order: readonly string[]) =>
    `{${order.map((name) => ({ jsonrpc: '"jsonrpc":"2.0"', id: `"id":${id}`, result: `"result":${result}` })[name]).join()}}`
  const orders = fc.shuffledSubarray(['jsonrpc', 'id', 'result'], { minLength: 3 })

  it('is found at any position, of any kind and length', () => {
    const result = fc.oneof(
      fc.json(),
      fc.json().map((json) => JSON.stringify({ long: 'é'.repeat(40_000), json })),
    )
    fc.assert(
      fc.property(result, fc.nat(10 ** 9), orders, (json, id, order) => {
        expect(rawResultOf(envelope(json, id, order), id)).toBe(json)
      }),
    )
  })

  it('contains nothing of the envelope, also for plain values', () => {
    const plain = fc.oneof(fc.constant(null), fc.boolean(), fc.integer(), fc.string())
    const extra = fc.tuple(fc.constantFrom('error', 'usage', 'node'), plain, fc.nat(3))
    fc.assert(
      fc.property(fc.json(), orders, extra, (json, order, [name, value, at]) => {
        const parts = order.map((part) => envelope(json, 1, [part]).slice(1, -1))
        parts.splice(at, 0, `"${name}":${JSON.stringify(value)}`)
        expect([json, null]).toContain(rawResultOf(`{${parts.join()}}`))
      }),
    )
  })
})

describe('a forwarded result', () => {
  it.each(['"error":null', '"usage":{"units":1}', '"node":"a"', '"tags":[]'])('leaves out the extra field %s', async (more) => {
    for (const result of ['"0x1"', 'null', '{"number":"0x1"}', '[]']) {
      const { rpc } = await openOne(({ id }, response) => response.end(`{"jsonrpc":"2.0","id":${id},"result":${result},${more}}`))
      expect(String(await rpc.requestRaw('eth_getBlockByNumber', ['latest', false]))).toBe(result)
    }
  })
})
