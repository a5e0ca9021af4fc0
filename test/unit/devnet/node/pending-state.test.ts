import { describe, expect, it } from 'vitest'
import type { Devnet } from '../../../../src/devnet/devnet.ts'
import {
  amounts,
  BlockSchema,
  getLogs,
  openSocket,
  rpcResult,
  sendTransfer,
  startManualDevnet,
  ZERO_HASH,
} from '../devnet-client.ts'

describe('the pending state', () => {
  const pendingOf = async (devnet: Devnet) =>
    BlockSchema.nullable().parse(await rpcResult(devnet, 'eth_getBlockByNumber', 'pending', false))

  it('has neither number nor hash with the fault `numberless`', async () => {
    const devnet = await startManualDevnet()
    devnet.faults.pending = 'numberless'
    expect(await pendingOf(devnet)).toMatchObject({ number: null, hash: null, parentHash: devnet.chain.head.hash })
  })

  it.each(['latest', 'null'] as const)('is %s where there are no pre-confirmations', async (pending) => {
    const devnet = await startManualDevnet()
    const link = await openSocket(devnet)
    await link.subscribe('pendingLogs', {})
    devnet.faults.pending = pending
    sendTransfer(devnet, 1n)
    devnet.makeFlashblock()
    await link.flush()
    expect(link.notifications).toEqual([])
    expect(await getLogs(devnet, { fromBlock: 'pending', toBlock: 'pending' })).toEqual([])
    expect((await pendingOf(devnet))?.hash).toBe(pending === 'latest' ? devnet.chain.head.hash : undefined)
    expect(await rpcResult(devnet, 'eth_getTransactionCount', devnet.custodian, 'pending')).toBe('0x0')
    const { hash } = devnet.seal()
    expect(await getLogs(devnet, { blockHash: hash })).toHaveLength(1)
  })

  it('has another hash at every flashblock with the fault `partial`, also in its logs', async () => {
    const devnet = await startManualDevnet()
    const link = await openSocket(devnet)
    await link.subscribe('pendingLogs', {})
    devnet.faults.pending = 'partial'
    const hashes = new Set<unknown>()
    for (const raw of [1n, 2n]) {
      sendTransfer(devnet, raw)
      devnet.makeFlashblock()
      const hash = (await pendingOf(devnet))?.hash
      hashes.add(hash)
      const logs = await getLogs(devnet, { fromBlock: 'pending', toBlock: 'pending' })
      expect(logs.map((log) => log.blockHash)).toEqual(logs.map(() => hash))
      await link.flush()
      expect(link.notifications.at(-1)).toEqual(logs.at(-1))
    }
    devnet.makeFlashblock()
    hashes.add((await pendingOf(devnet))?.hash)
    hashes.add(devnet.seal().hash)
    hashes.add((await pendingOf(devnet))?.hash)
    expect(hashes).not.toContain(ZERO_HASH)
    expect(hashes).not.toContain(undefined)
    expect(hashes.size).toBe(5)
  })

  it('stays some blocks behind with the fault `behind`, while blocks are sealed and nothing is pushed', async () => {
    const devnet = await startManualDevnet()
    const link = await openSocket(devnet)
    const make = (raw: bigint) => {
      sendTransfer(devnet, raw)
      devnet.makeFlashblock()
      return devnet.seal()
    }
    const [stuck] = [1n, 2n, 3n, 4n, 5n, 6n].map(make)
    await link.subscribe('pendingLogs', {})
    devnet.faults.pending = 'behind'
    for (const raw of [7n, 8n]) {
      expect(await pendingOf(devnet)).toMatchObject({
        number: `0x${stuck?.number.toString(16)}`,
        hash: ZERO_HASH,
        parentHash: stuck?.parentHash,
      })
      const logs = await getLogs(devnet, { fromBlock: 'pending', toBlock: 'pending' })
      expect(logs).toEqual(stuck?.logs.map((log) => ({ ...log, blockHash: ZERO_HASH })))
      make(raw)
    }
    expect(await rpcResult(devnet, 'eth_getTransactionCount', devnet.custodian, 'pending')).toBe('0x1')
    await link.flush()
    expect(link.notifications).toEqual([])
    devnet.faults.clear()
    expect((await pendingOf(devnet))?.parentHash).toBe(devnet.chain.head.hash)
    devnet.faults.pending = 'behind'
    expect(Number((await pendingOf(devnet))?.number)).toBe(devnet.chain.head.number - 5)
  })

  it('contains each log once, even if it is already sealed', async () => {
    const devnet = await startManualDevnet()
    const numbers = [1n, 2n, 3n, 4n, 5n, 6n].map((raw) => {
      sendTransfer(devnet, raw)
      devnet.makeFlashblock()
      return devnet.seal().number
    })
    devnet.faults.pending = 'behind'
    const since = async (at: number) =>
      amounts(await getLogs(devnet, { fromBlock: `0x${(numbers[at] ?? 0).toString(16)}`, toBlock: 'pending' }))
    expect(await since(0)).toEqual([1, 2, 3, 4, 5, 6])
    expect(await since(4)).toEqual([5, 6, 1])
  })
})
