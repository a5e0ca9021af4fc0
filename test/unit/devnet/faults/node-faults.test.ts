import { describe, expect, it } from 'vitest'
import { quantity } from '../../../../src/lib/hex.ts'
import {
  amounts,
  BlockSchema,
  getLogs,
  openSocket,
  rpcCall,
  rpcResult,
  sealTransfers,
  startManualDevnet,
} from '../devnet-client.ts'

it('requests are counted by method and by kind, and a wrong chain id is answered until the fault ends', async () => {
  const devnet = await startManualDevnet()
  devnet.faults.chainId = 1
  const received = devnet.until(() => devnet.requests.eth_chainId === 2)
  const link = await openSocket(devnet)
  expect([(await rpcCall(devnet, 'eth_chainId')).result, (await link.call('eth_chainId')).result]).toEqual(['0x1', '0x1'])
  await received
  devnet.faults.clear()
  expect((await rpcCall(devnet, 'eth_chainId')).result).toBe('0x509db21')
  await rpcCall(devnet, 'eth_unknown')
  expect(devnet.requests).toMatchObject({ eth_chainId: 3, post: 3, socket: 1, list: 0, unknown: 1, eth_subscribe: 0 })
})

describe('an unindexed block', () => {
  it('answers no logs by its hash for some requests, and always its logs in a range', async () => {
    const devnet = await startManualDevnet()
    const { hash, number } = sealTransfers(devnet, 1)
    const emptyBlock = devnet.seal()
    devnet.faults.emptyLogs = 2
    const range = { fromBlock: quantity(number) }
    const answers = []
    for (const filter of [range, { blockHash: hash }, { blockHash: emptyBlock.hash }, { blockHash: hash }, { blockHash: hash }])
      answers.push(amounts(await getLogs(devnet, filter)))
    expect(answers).toEqual([[1], [], [], [], [1]])
  })

  it('is not found by its hash for some requests', async () => {
    const devnet = await startManualDevnet()
    const { hash, number } = devnet.seal()
    devnet.faults.missingByHash = 2
    const refusals = []
    for (let tries = 0; tries < 3; tries++) refusals.push((await rpcCall(devnet, 'eth_getLogs', { blockHash: hash })).error)
    const missing = { code: -32001, message: `block not found: hash ${hash}` }
    expect(refusals).toEqual([missing, missing, undefined])
    expect(await rpcResult(devnet, 'eth_getBlockByNumber', quantity(number), false)).toMatchObject({ hash })
  })
})

describe('a finality tag', () => {
  it('is refused with the fault, also in a filter', async () => {
    const devnet = await startManualDevnet()
    devnet.faults.finality = 'refused'
    for (const tag of ['safe', 'finalized'])
      expect((await rpcCall(devnet, 'eth_getBlockByNumber', tag, false)).error?.code).toBe(-32602)
    expect((await rpcCall(devnet, 'eth_getLogs', { fromBlock: 'safe', toBlock: 'latest' })).error?.code).toBe(-32602)
    expect((await rpcCall(devnet, 'eth_getBlockByNumber', 'latest', false)).error).toBeUndefined()
  })

  it('stays at its depth behind latest, and never goes back', async () => {
    const devnet = await startManualDevnet({ safeDepth: 2, finalizedDepth: 4 })
    const depthOf = async (tag: string) =>
      devnet.chain.head.number - Number(BlockSchema.parse(await rpcResult(devnet, 'eth_getBlockByNumber', tag, false)).number)
    devnet.reorg(5)
    expect([await depthOf('safe'), await depthOf('finalized')]).toEqual([2, 4])
  })
})

it.each([
  ['up to the block before the one that exceeds the bound', 0, 3, '0-1'],
  ['of one block if that alone exceeds it', 3, 5, '3-3'],
  ['none for a single block, which is answered in full', 3, 3, undefined],
])('a refusal of too many logs suggests a range, %s', async (_, from, to, suggested) => {
  const devnet = await startManualDevnet()
  const first = devnet.chain.pending.number
  for (const block of [1, 2, 3, 4]) sealTransfers(devnet, ...Array(block).fill(block))
  Object.assign(devnet.faults, { resultsBound: 3, suggestRange: true })
  const { result, error } = await rpcCall(devnet, 'eth_getLogs', {
    fromBlock: quantity(first + from),
    toBlock: quantity(first + to),
  })
  const range = suggested?.replaceAll(/\d/g, (block) => String(first + Number(block)))
  const refusal = { code: -32602, message: `query exceeds max results 3, retry with the range ${range}` }
  if (range) expect(error).toEqual(refusal)
  else expect([result, await getLogs(devnet, { blockHash: devnet.chain.head.hash })]).toEqual(Array(2).fill(devnet.chain.head.logs))
})
