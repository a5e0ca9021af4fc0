import { describe, expect, it } from 'vitest'
import { amounts, BlockSchema, getLogs, openSocket, rpcCall, rpcResult, sendTransfer, startManualDevnet } from '../devnet-client.ts'

const quantity = (amount: number) => `0x${amount.toString(16)}`

describe('a wrong chain id', () => {
  it('is answered over HTTP and over a socket until the fault ends', async () => {
    const devnet = await startManualDevnet()
    devnet.faults.chainId = 1
    expect((await rpcCall(devnet, 'eth_chainId')).result).toBe('0x1')
    expect((await (await openSocket(devnet)).call('eth_chainId')).result).toBe('0x1')
    devnet.faults.clear()
    expect((await rpcCall(devnet, 'eth_chainId')).result).toBe('0x509db21')
  })
})

describe('the request counts', () => {
  it('contain every request, by method and by kind', async () => {
    const devnet = await startManualDevnet()
    const received = devnet.until(() => devnet.requests.eth_getLogs === 2)
    await getLogs(devnet, { fromBlock: 'latest' })
    await (await openSocket(devnet)).call('eth_getLogs', { fromBlock: 'latest' })
    await received
    await rpcCall(devnet, 'eth_unknown')
    expect(devnet.requests).toMatchObject({ eth_getLogs: 2, post: 2, socket: 1, list: 0, unknown: 1, eth_subscribe: 0 })
  })
})

describe('strict filters', () => {
  it.each(['fromBlock', 'toBlock'])('refuse blockHash beside %s', async (bound) => {
    const devnet = await startManualDevnet()
    devnet.faults.strictFilters = true
    const { error } = await rpcCall(devnet, 'eth_getLogs', { blockHash: devnet.chain.head.hash, [bound]: 'latest' })
    expect(error).toEqual({ code: -32602, message: 'cannot specify both blockHash and fromBlock/toBlock, choose one or the other' })
  })
})

describe('an unindexed block', () => {
  it('answers no logs by its hash for some requests, and then its logs', async () => {
    const devnet = await startManualDevnet()
    sendTransfer(devnet, 1n)
    devnet.makeFlashblock()
    const { hash } = devnet.seal()
    const emptyBlock = devnet.seal()
    devnet.faults.emptyLogs = 2
    const answers = []
    for (const blockHash of [hash, emptyBlock.hash, hash, hash]) answers.push(amounts(await getLogs(devnet, { blockHash })))
    expect(answers).toEqual([[], [], [], [1]])
  })

  it('answers its logs in a range', async () => {
    const devnet = await startManualDevnet()
    sendTransfer(devnet, 1n)
    devnet.makeFlashblock()
    devnet.seal()
    devnet.faults.emptyLogs = 1
    expect(amounts(await getLogs(devnet, { fromBlock: 'latest' }))).toEqual([1])
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
    const depths = async () => {
      const numbers = []
      for (const tag of ['safe', 'finalized']) {
        numbers.push(Number(BlockSchema.parse(await rpcResult(devnet, 'eth_getBlockByNumber', tag, false)).number) - number)
      }
      return numbers
    }
    expect(await depths()).toEqual([-2, -4])
    devnet.seal()
    expect(await depths()).toEqual([-1, -3])
    devnet.reorg(5)
    expect(await depths()).toEqual([-1, -3])
  })
})

describe('a refusal of too many logs that suggests a range', () => {
  it('leads to all logs', async () => {
    const devnet = await startManualDevnet()
    const first = devnet.chain.pending.number
    for (const block of [1, 2, 3, 4]) {
      for (let log = 0; log < block; log++) sendTransfer(devnet, BigInt(10 * block + log))
      devnet.makeFlashblock()
      devnet.seal()
    }
    Object.assign(devnet.faults, { resultsBound: 3, suggestRange: true })
    const ranges: number[][] = []
    const found: number[] = []
    for (let from = first; from <= first + 3; ) {
      let to = first + 3
      const filter = () => ({ fromBlock: quantity(from), toBlock: quantity(to) })
      const { error } = await rpcCall(devnet, 'eth_getLogs', filter())
      if (error) {
        expect(error.code).toBe(-32602)
        const [, a, b] = /^query exceeds max results 3, retry with the range (\d+)-(\d+)$/.exec(error.message) ?? []
        expect(Number(a)).toBe(from)
        to = Number(b)
      }
      found.push(...amounts(await getLogs(devnet, filter())))
      ranges.push([from - first, to - first])
      from = to + 1
    }
    expect(ranges).toEqual([
      [0, 1],
      [2, 2],
      [3, 3],
    ])
    expect(found).toEqual([10, 20, 21, 30, 31, 32, 40, 41, 42, 43])
  })

  it('never occurs for a single block, which is answered in full', async () => {
    const devnet = await startManualDevnet()
    for (const raw of [1n, 2n]) sendTransfer(devnet, raw)
    devnet.makeFlashblock()
    const { hash } = devnet.seal()
    Object.assign(devnet.faults, { resultsBound: 1, suggestRange: true })
    expect(amounts(await getLogs(devnet, { blockHash: hash }))).toEqual([1, 2])
    expect(amounts(await getLogs(devnet, { fromBlock: 'latest' }))).toEqual([1, 2])
  })
})
