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

it('a wrong chain id is answered over HTTP and over a socket until the fault ends', async () => {
  const devnet = await startManualDevnet()
  devnet.faults.chainId = 1
  expect((await rpcCall(devnet, 'eth_chainId')).result).toBe('0x1')
  expect((await (await openSocket(devnet)).call('eth_chainId')).result).toBe('0x1')
  devnet.faults.clear()
  expect((await rpcCall(devnet, 'eth_chainId')).result).toBe('0x509db21')
})

it('the request counts contain every request, by method and by kind', async () => {
  const devnet = await startManualDevnet()
  const received = devnet.until(() => devnet.requests.eth_getLogs === 2)
  await getLogs(devnet, { fromBlock: 'latest' })
  await (await openSocket(devnet)).call('eth_getLogs', { fromBlock: 'latest' })
  await received
  await rpcCall(devnet, 'eth_unknown')
  expect(devnet.requests).toMatchObject({ eth_getLogs: 2, post: 2, socket: 1, list: 0, unknown: 1, eth_subscribe: 0 })
})

it.each(['fromBlock', 'toBlock'])('strict filters refuse blockHash beside %s', async (bound) => {
  const devnet = await startManualDevnet()
  devnet.faults.strictFilters = true
  const { error } = await rpcCall(devnet, 'eth_getLogs', { blockHash: devnet.chain.head.hash, [bound]: 'latest' })
  expect(error).toEqual({ code: -32602, message: 'cannot specify both blockHash and fromBlock/toBlock, choose one or the other' })
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
  it.each(['safe', 'finalized'])('is refused as %s', async (tag) => {
    const devnet = await startManualDevnet()
    devnet.faults.finality = 'refused'
    expect((await rpcCall(devnet, 'eth_getBlockByNumber', tag, false)).error?.code).toBe(-32602)
    expect((await rpcCall(devnet, 'eth_getLogs', { fromBlock: tag, toBlock: 'latest' })).error?.code).toBe(-32602)
    expect((await rpcCall(devnet, 'eth_getBlockByNumber', 'latest', false)).error).toBeUndefined()
  })

  it('stays at its depth behind latest, and never goes back', async () => {
    const devnet = await startManualDevnet({ safeDepth: 2, finalizedDepth: 4 })
    const { number } = devnet.chain.head
    const depthOf = async (tag: string) =>
      Number(BlockSchema.parse(await rpcResult(devnet, 'eth_getBlockByNumber', tag, false)).number) - number
    const depths = async () => [await depthOf('safe'), await depthOf('finalized')]
    expect(await depths()).toEqual([-2, -4])
    devnet.seal()
    expect(await depths()).toEqual([-1, -3])
    devnet.reorg(5)
    expect(await depths()).toEqual([-1, -3])
  })
})

describe('a refusal of too many logs that suggests a range', () => {
  it.each([
    ['up to the block before the one that exceeds the bound', 0, 3, [0, 1]],
    ['of one block if that alone exceeds it', 3, 5, [3, 3]],
    ['nothing for a single block, which is answered in full', 3, 3, [40, 41, 42, 43]],
  ])('names a range %s', async (_, from, to, expected) => {
    const devnet = await startManualDevnet()
    const first = devnet.chain.pending.number
    for (const block of [1, 2, 3, 4]) sealTransfers(devnet, ...Array.from({ length: block }, (__, log) => 10 * block + log))
    Object.assign(devnet.faults, { resultsBound: 3, suggestRange: true })
    const filter = { fromBlock: quantity(first + from), toBlock: quantity(first + to) }
    if (from === to) {
      expect(amounts(await getLogs(devnet, filter))).toEqual(expected)
      expect(amounts(await getLogs(devnet, { blockHash: devnet.chain.head.hash }))).toEqual(expected)
      return
    }
    const [a = 0, b = 0] = expected
    const message = `query exceeds max results 3, retry with the range ${first + a}-${first + b}`
    expect((await rpcCall(devnet, 'eth_getLogs', filter)).error).toEqual({ code: -32602, message })
  })
})
