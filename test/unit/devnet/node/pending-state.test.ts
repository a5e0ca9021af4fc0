import { describe, expect, it } from 'vitest'
import type { Devnet } from '../../../../src/devnet/devnet.ts'
import { quantity } from '../../../../src/lib/hex.ts'
import {
  amounts,
  BlockSchema,
  getLogs,
  makeTransfers,
  openSubscribed,
  rpcResult,
  sealTransfers,
  startManualDevnet,
  ZERO_HASH,
} from '../devnet-client.ts'

const pendingOf = async (devnet: Devnet) =>
  BlockSchema.nullable().parse(await rpcResult(devnet, 'eth_getBlockByNumber', 'pending', false))
const pendingLogsOf = (devnet: Devnet) => getLogs(devnet, { fromBlock: 'pending', toBlock: 'pending' })
const pendingCountOf = (devnet: Devnet) => rpcResult(devnet, 'eth_getTransactionCount', devnet.custodian, 'pending')

describe('the pending state', () => {
  it.each(['latest', 'null'] as const)('is %s where there are no pre-confirmations', async (pending) => {
    const devnet = await startManualDevnet()
    const link = await openSubscribed(devnet, 'pendingLogs')
    devnet.faults.pending = pending
    makeTransfers(devnet, 1)
    await link.flush()
    expect([link.notifications, await pendingLogsOf(devnet), await pendingCountOf(devnet)]).toEqual([[], [], '0x0'])
    expect((await pendingOf(devnet))?.hash).toBe(pending === 'latest' ? devnet.chain.head.hash : undefined)
    expect(await getLogs(devnet, { blockHash: devnet.seal().hash })).toHaveLength(1)
  })

  it('has another hash at every flashblock with the fault `partial`, also in its logs', async () => {
    const devnet = await startManualDevnet()
    const link = await openSubscribed(devnet, 'pendingLogs')
    devnet.faults.pending = 'partial'
    const hashes = new Set<unknown>([ZERO_HASH, undefined])
    for (const raws of [[1], [2], []]) {
      makeTransfers(devnet, ...raws)
      const hash = (await pendingOf(devnet))?.hash
      hashes.add(hash)
      const logs = await pendingLogsOf(devnet)
      expect(logs.map((log) => log.blockHash)).toEqual(logs.map(() => hash))
      await link.flush()
      if (raws.length > 0) expect(link.notifications.at(-1)).toEqual(logs.at(-1))
    }
    hashes.add(devnet.seal().hash)
    hashes.add((await pendingOf(devnet))?.hash)
    expect(hashes.size).toBe(7)
  })

  it('stays some blocks behind with the fault `behind`, while blocks are sealed and nothing is pushed', async () => {
    const devnet = await startManualDevnet()
    const [stuck] = [1, 2, 3, 4, 5, 6].map((raw) => sealTransfers(devnet, raw))
    const link = await openSubscribed(devnet, 'pendingLogs')
    devnet.faults.pending = 'behind'
    const { number = 0, parentHash, logs = [] } = stuck ?? {}
    for (const raw of [7, 8]) {
      expect(await pendingOf(devnet)).toMatchObject({ number: quantity(number), hash: ZERO_HASH, parentHash })
      expect(await pendingLogsOf(devnet)).toEqual(logs.map((log) => ({ ...log, blockHash: ZERO_HASH })))
      sealTransfers(devnet, raw)
    }
    expect(await pendingCountOf(devnet)).toBe('0x1')
    // A log that is sealed already is found once.
    expect(amounts(await getLogs(devnet, { fromBlock: quantity(number), toBlock: 'pending' }))).toEqual([1, 2, 3, 4, 5, 6, 7, 8])
    await link.flush()
    expect(link.notifications).toEqual([])
  })
})
