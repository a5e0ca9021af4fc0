import { expect, it } from 'vitest'
import { requestText } from '../../../../../src/relay/chain/rpc/request-text.ts'

it.each([
  ['no address', [], []],
  ['a few addresses', ['0x1', '0x2'], [{ fromBlock: '0x1' }]],
  ['many addresses', Array.from({ length: 2_000 }, (_, at) => `0x${at}`), [{ fromBlock: '0x1', toBlock: 'pending' }, null]],
])('a request with %s is the JSON of all its fields, each time that it is sent', (_, address, [filter, ...more]) => {
  const requestOf = (id: number) => ({
    jsonrpc: '2.0' as const,
    id,
    method: 'eth_getLogs',
    params: [{ ...filter, address }, ...more],
  })
  for (const id of [1, 2]) expect(JSON.parse(requestText(requestOf(id)))).toEqual(requestOf(id))
  expect(JSON.parse(requestText([requestOf(3), requestOf(4)]))).toEqual([requestOf(3), requestOf(4)])
})
