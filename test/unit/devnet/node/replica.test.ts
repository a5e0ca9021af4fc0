import { describe, expect, it } from 'vitest'
import { z } from 'zod'
import type { Devnet } from '../../../../src/devnet/devnet.ts'
import { quantity } from '../../../../src/lib/hex.ts'
import {
  amounts,
  getLogs,
  makeTransfers,
  openSubscribed,
  post,
  rpcCall,
  rpcResult,
  sealTransfers,
  startManualDevnet,
} from '../devnet-client.ts'

/** Four sealed blocks and a pending one, each with a log; HTTP reads reach a replica with only two of them. */
const openLaggingReplica = async () => {
  const devnet = await startManualDevnet()
  const blocks = [1, 2, 3, 4].map((raw) => sealTransfers(devnet, raw))
  makeTransfers(devnet, 5)
  devnet.faults.lagBlocks = 2
  const [, head = devnet.chain.head] = blocks
  return { devnet, head, knownBlocks: blocks.slice(0, 2), unknownBlocks: blocks.slice(2) }
}
const headsOf = async (devnet: Devnet, times: number) => {
  const heads = []
  for (let request = 0; request < times; request++) heads.push(Number(await rpcResult(devnet, 'eth_blockNumber')))
  return heads.map((head) => head - devnet.chain.head.number)
}

describe('a lagging replica', () => {
  it('has an older latest block, which is also its pending block, even with the fault `numberless`', async () => {
    const { devnet, head } = await openLaggingReplica()
    devnet.faults.pending = 'numberless'
    for (const tag of ['latest', 'pending']) {
      const block = { number: quantity(head.number), hash: head.hash }
      expect(await rpcResult(devnet, 'eth_getBlockByNumber', tag, false)).toMatchObject(block)
      expect(await rpcResult(devnet, 'eth_getTransactionCount', devnet.custodian, tag)).toBe('0x2')
    }
    expect(await rpcResult(devnet, 'eth_blockNumber')).toBe(quantity(head.number))
    expect(await getLogs(devnet, { fromBlock: 'pending', toBlock: 'pending' })).toEqual([])
  })

  it('answers null and no logs for blocks above its head, and the part of a range that it has', async () => {
    const { devnet, head, unknownBlocks } = await openLaggingReplica()
    for (const { number } of unknownBlocks) {
      expect(await rpcResult(devnet, 'eth_getBlockByNumber', quantity(number), false)).toBeNull()
      expect(await getLogs(devnet, { fromBlock: quantity(number), toBlock: quantity(number) })).toEqual([])
    }
    for (const toBlock of [quantity(head.number + 2), 'pending'])
      expect(amounts(await getLogs(devnet, { fromBlock: quantity(head.number), toBlock }))).toEqual([2])
  })

  it('does not find a newer block by its hash', async () => {
    const { devnet, knownBlocks, unknownBlocks } = await openLaggingReplica()
    for (const { hash } of unknownBlocks) {
      const error = { code: -32001, message: `block not found: hash ${hash}` }
      expect(await rpcCall(devnet, 'eth_getLogs', { blockHash: hash })).toMatchObject({ status: 200, error })
    }
    for (const { hash, logs } of knownBlocks) expect(await getLogs(devnet, { blockHash: hash })).toEqual(logs)
  })

  it('stays behind the newest block, and serves no sockets', async () => {
    const { devnet } = await openLaggingReplica()
    const link = await openSubscribed(devnet, 'newHeads', 'pendingLogs')
    const { number, hash } = sealTransfers(devnet, 6)
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
    const headsOfBatch = async () =>
      z
        .array(z.object({ result: z.string() }))
        .parse((await post(devnet, [call, call, call])).json)
        .map(({ result }) => Number(result) - devnet.chain.head.number)
    expect([await headsOfBatch(), await headsOfBatch()]).toEqual([
      [0, 0, 0],
      [-2, -2, -2],
    ])
  })
})
