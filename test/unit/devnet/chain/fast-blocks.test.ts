import { describe, expect, it, onTestFinished } from 'vitest'
import { z } from 'zod'
import { startDevnet } from '../../../../src/devnet/devnet.ts'
import { BlockSchema, getLogs, LogSchema, openSocket, post, rpcResult, sendTransfer, startManualDevnet } from '../devnet-client.ts'

const Head = BlockSchema.omit({ transactions: true }).extend({ timestampMs: z.string() })
const FastLog = LogSchema.extend({ blockTimestampMs: z.string() })
const heads = (results: readonly unknown[]) => results.flatMap((result) => Head.safeParse(result).data ?? [])

describe('blocks that share a second', () => {
  it('have their time in milliseconds, and so do their logs', async () => {
    const devnet = await startManualDevnet({ blockMs: 200, flashblockMs: 200 })
    const link = await openSocket(devnet)
    await link.subscribe('newHeads')
    const times = []
    for (let blocks = 0; blocks < 10; blocks++) {
      sendTransfer(devnet, 1n)
      devnet.makeFlashblock()
      const pending = Head.parse(await rpcResult(devnet, 'eth_getBlockByNumber', 'pending', false))
      const [log] = await getLogs(devnet, { blockHash: devnet.seal().hash })
      const latest = Head.parse(await rpcResult(devnet, 'eth_getBlockByNumber', 'latest', false))
      await link.flush()
      for (const block of [pending, latest, heads(link.notifications).at(-1)]) {
        expect(block).toMatchObject({ timestamp: log?.blockTimestamp, timestampMs: log?.blockTimestampMs })
      }
      times.push([Number(latest.timestamp), Number(latest.timestampMs)] as const)
    }
    const [, firstMs = 0] = times[0] ?? []
    expect(times).toEqual(times.map((_, at) => [Math.floor((firstMs + at * 200) / 1_000), firstMs + at * 200]))
    expect([...Map.groupBy(times, ([second]) => second).values()].some((shared) => shared.length === 5)).toBe(true)
  })
})

describe('a network with blocks of 200 ms and without pre-confirmations', () => {
  it('pushes the head and the logs of each block but no pending logs, and answers latest for pending', async () => {
    const devnet = await startDevnet({ blockMs: 200, flashblockMs: 200, transactionsPerFlashblock: 5 })
    onTestFinished(() => devnet.stop())
    Object.assign(devnet.faults, { pending: 'latest', silent: ['pendingLogs'] })
    const link = await openSocket(devnet)
    for (const kind of ['pendingLogs', 'logs', 'newHeads']) await link.subscribe(kind)
    await link.waitUntil(() => heads(link.notifications).length === 4)
    await link.flush()

    const pushedHeads = heads(link.notifications)
    expect(pushedHeads.map(({ number }) => Number(number))).toEqual(pushedHeads.map((_, at) => Number(pushedHeads[0]?.number) + at))
    const blocks = pushedHeads.map(({ number }) => devnet.chain.block(Number(number)))
    const sealed = link.notifications
      .flatMap((result) => FastLog.safeParse(result).data ?? [])
      .filter((log) => Number(log.blockNumber) >= Number(pushedHeads[0]?.number))
    expect(sealed.length).toBeGreaterThan(0)
    expect(sealed).toEqual(blocks.flatMap((block) => block?.logs ?? []))

    const requests = ['latest', 'pending'].map((tag, id) => ({
      jsonrpc: '2.0',
      id,
      method: 'eth_getBlockByNumber',
      params: [tag, true],
    }))
    const [latest, pending] = z.array(z.object({ result: z.unknown() })).parse((await post(devnet, requests)).json)
    expect(pending?.result).toEqual(latest?.result)
    expect(await getLogs(devnet, { fromBlock: 'pending', toBlock: 'pending' })).toEqual([])
  })
})
