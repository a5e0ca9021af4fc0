import { describe, expect, it } from 'vitest'
import { z } from 'zod'
import type { Devnet } from '../../../../src/devnet/devnet.ts'
import { amounts, getLogs, openSocket, post, rpcCall, rpcResult, sendTransfer, startManualDevnet } from '../devnet-client.ts'

const quantity = (amount: number) => `0x${amount.toString(16)}`

/** Four sealed blocks and a pending one, each with a log; HTTP reads reach a replica with only two of them. */
const openLaggingReplica = async () => {
  const devnet = await startManualDevnet()
  const blocks = [1n, 2n, 3n, 4n].map((raw) => {
    sendTransfer(devnet, raw)
    devnet.makeFlashblock()
    return devnet.seal()
  })
  sendTransfer(devnet, 5n)
  devnet.makeFlashblock()
  devnet.faults.lagBlocks = 2
  return { devnet, knownBlocks: blocks.slice(0, 2), unknownBlocks: blocks.slice(2) }
}
const headsOf = async (devnet: Devnet, times: number) => {
  const heads = []
  for (let request = 0; request < times; request++) heads.push(Number(await rpcResult(devnet, 'eth_blockNumber')))
  return heads.map((head) => head - devnet.chain.head.number)
}

describe('a lagging replica', () => {
  it('has an older latest block, which is also its pending block', async () => {
    const { devnet, knownBlocks } = await openLaggingReplica()
    const [, head] = knownBlocks
    for (const tag of ['latest', 'pending']) {
      expect(await rpcResult(devnet, 'eth_getBlockByNumber', tag, false)).toMatchObject({ hash: head?.hash })
    }
    expect(await rpcResult(devnet, 'eth_blockNumber')).toBe(quantity(head?.number ?? 0))
    expect(await getLogs(devnet, { fromBlock: 'pending', toBlock: 'pending' })).toEqual([])
    for (const tag of ['latest', 'pending']) {
      expect(await rpcResult(devnet, 'eth_getTransactionCount', devnet.custodian, tag)).toBe('0x2')
    }
  })

  it('has a numbered pending block even with the fault `numberless`', async () => {
    const { devnet, knownBlocks } = await openLaggingReplica()
    devnet.faults.pending = 'numberless'
    const { number, hash } = knownBlocks[1] ?? {}
    expect(await rpcResult(devnet, 'eth_getBlockByNumber', 'pending', false)).toMatchObject({ number: quantity(number ?? 0), hash })
  })

  it('answers null and no logs for blocks above its head', async () => {
    const { devnet, unknownBlocks } = await openLaggingReplica()
    for (const { number } of unknownBlocks) {
      expect(await rpcResult(devnet, 'eth_getBlockByNumber', quantity(number), false)).toBeNull()
      expect(await getLogs(devnet, { fromBlock: quantity(number), toBlock: quantity(number) })).toEqual([])
    }
  })

  it('answers the part of a range that it has', async () => {
    const { devnet, knownBlocks, unknownBlocks } = await openLaggingReplica()
    const range = { fromBlock: quantity(knownBlocks[1]?.number ?? 0), toBlock: quantity(unknownBlocks[1]?.number ?? 0) }
    expect(amounts(await getLogs(devnet, range))).toEqual([2])
    expect(amounts(await getLogs(devnet, { ...range, toBlock: 'pending' }))).toEqual([2])
  })

  it('does not find a newer block by its hash', async () => {
    const { devnet, knownBlocks, unknownBlocks } = await openLaggingReplica()
    for (const { hash } of unknownBlocks) {
      const { status, error } = await rpcCall(devnet, 'eth_getLogs', { blockHash: hash })
      expect({ status, error }).toEqual({ status: 200, error: { code: -32001, message: `block not found: hash ${hash}` } })
    }
    for (const { hash, logs } of knownBlocks) expect(await getLogs(devnet, { blockHash: hash })).toEqual(logs)
  })

  it('stays behind the newest block, and serves no sockets', async () => {
    const { devnet } = await openLaggingReplica()
    const link = await openSocket(devnet)
    await link.subscribe('newHeads')
    await link.subscribe('pendingLogs', {})
    sendTransfer(devnet, 6n)
    devnet.makeFlashblock()
    const { number, hash } = devnet.seal()
    expect((await link.call('eth_blockNumber')).result).toBe(quantity(number))
    expect(link.notifications).toMatchObject([{ transactionIndex: '0x1' }, { hash }])
    expect(await headsOf(devnet, 1)).toEqual([-2])
    devnet.faults.clear()
    expect(await headsOf(devnet, 1)).toEqual([0])
  })
})

describe('a load balancer', () => {
  it('sends every n-th request to the lagging replica', async () => {
    const { devnet } = await openLaggingReplica()
    devnet.faults.lagEvery = 3
    expect(await headsOf(devnet, 7)).toEqual([0, 0, -2, 0, 0, -2, 0])
  })

  it('sends a whole batch to one replica', async () => {
    const { devnet } = await openLaggingReplica()
    devnet.faults.lagEvery = 2
    const call = { jsonrpc: '2.0', id: 1, method: 'eth_blockNumber', params: [] }
    const headsOfBatch = async () => {
      const { json } = await post(devnet, [call, call, call])
      const answers = z.array(z.object({ result: z.string() })).parse(json)
      return answers.map(({ result }) => Number(result) - devnet.chain.head.number)
    }
    expect([await headsOfBatch(), await headsOfBatch()]).toEqual([
      [0, 0, 0],
      [-2, -2, -2],
    ])
  })
})
