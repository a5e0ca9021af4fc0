import { describe, expect, it } from 'vitest'
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
  const [, head = devnet.chain.head, unknown = devnet.chain.head] = blocks
  return { devnet, head, unknown }
}
/** How many blocks the answers of so many requests, or of a batch, are behind. */
const lagsOf = async (devnet: Devnet, times: number, inBatch = false) => {
  const call = { jsonrpc: '2.0', id: 1, method: 'eth_blockNumber', params: [] }
  const answers: unknown[] = []
  if (inBatch) answers.push((await post(devnet, Array(times).fill(call))).json)
  else for (let request = 0; request < times; request++) answers.push((await post(devnet, call)).json)
  return (answers.flat() as { result: string }[]).map(({ result }) => devnet.chain.head.number - Number(result))
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
    expect(await getLogs(devnet, { fromBlock: 'pending', toBlock: 'pending' })).toEqual([])
  })

  it('has null, no logs and no hash above its head, and the part of a range that it has', async () => {
    const { devnet, head, unknown } = await openLaggingReplica()
    const above = quantity(unknown.number)
    expect(await rpcResult(devnet, 'eth_getBlockByNumber', above, false)).toBeNull()
    expect(await getLogs(devnet, { fromBlock: above, toBlock: above })).toEqual([])
    for (const toBlock of [above, 'pending'])
      expect(amounts(await getLogs(devnet, { fromBlock: quantity(head.number), toBlock }))).toEqual([2])
    const error = { code: -32001, message: `block not found: hash ${unknown.hash}` }
    expect(await rpcCall(devnet, 'eth_getLogs', { blockHash: unknown.hash })).toMatchObject({ status: 200, error })
    expect(await getLogs(devnet, { blockHash: head.hash })).toEqual(head.logs)
  })

  it('stays behind the newest block, and serves no sockets', async () => {
    const { devnet } = await openLaggingReplica()
    const link = await openSubscribed(devnet, 'newHeads', 'pendingLogs')
    const { number, hash } = sealTransfers(devnet, 6)
    expect((await link.call('eth_blockNumber')).result).toBe(quantity(number))
    expect(link.notifications).toMatchObject([{ transactionIndex: '0x1' }, { hash }])
    expect(await lagsOf(devnet, 1)).toEqual([2])
    devnet.faults.clear()
    expect(await lagsOf(devnet, 1)).toEqual([0])
  })

  it('gets every n-th request of a load balancer, and of a batch all or nothing', async () => {
    const { devnet } = await openLaggingReplica()
    devnet.faults.lagEvery = 3
    expect(await lagsOf(devnet, 4)).toEqual([0, 0, 2, 0])
    expect(await lagsOf(devnet, 3, true)).toEqual([0, 0, 0])
    expect(await lagsOf(devnet, 3, true)).toEqual([2, 2, 2])
  })
})
