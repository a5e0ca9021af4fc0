import { expect, test } from 'vitest'
import { parseLogs } from '../../src/relay/chain/logs/log-parser.ts'
import { LightChain } from './light-chain.ts'
import { FIRST_NUMBER } from './message-stamp.ts'

const logsOf = (answer = '[]') => {
  const { logs, unreadable } = parseLogs(JSON.parse(answer))
  expect(unreadable).toBe(0)
  return logs
}

test('the light chain pushes the logs that it seals, and answers with those of the requested contracts and blocks', () => {
  const chain = new LightChain(3)
  const pushed = [...chain.push(FIRST_NUMBER, 20), ...chain.push(FIRST_NUMBER + 20, 7)]
  const pending = logsOf(chain.answer('eth_getLogs', [{ fromBlock: 'latest', toBlock: 'pending' }]))
  expect(pending).toEqual(logsOf(`[${pushed}]`))
  expect(JSON.parse(chain.answer('eth_getBlockByNumber', ['pending', false]) ?? '')).toMatchObject({ hash: null })
  const header = chain.seal() as { hash: string; number: string }
  expect(JSON.parse(chain.answer('eth_getBlockByNumber', ['latest', false]) ?? '')).toEqual(header)
  const sealed = logsOf(chain.answer('eth_getLogs', [{ blockHash: header.hash }]))
  expect(sealed).toEqual(pending.map((log) => ({ ...log, blockHash: header.hash })))
  expect(sealed.map(({ data }) => Number(data) - FIRST_NUMBER)).toEqual(Array.from({ length: 27 }, (_, at) => at))
  const range = { fromBlock: header.number, toBlock: header.number }
  const address = JSON.parse(chain.list).tokens[1].contract_address
  const ofOne = logsOf(chain.answer('eth_getLogs', [{ ...range, address: [address] }]))
  expect(ofOne.map(({ data }) => Number(data) - FIRST_NUMBER)).toEqual([1, 4, 7, 10, 13, 16, 19, 22, 25])
  expect(chain.answer('eth_getLogs', [{ ...range, address: [] }])).toBe('[]')
})
