import { describe, expect, it, onTestFinished } from 'vitest'
import { z } from 'zod'
import { startDevnet } from '../../../../src/devnet/devnet.ts'
import { Block, Log, listen, logs, manual, post, read, send } from '../devnet-client.ts'

const Head = Block.omit({ transactions: true }).extend({ timestampMs: z.string() })
const FastLog = Log.extend({ blockTimestampMs: z.string() })
const heads = (results: readonly unknown[]) => results.flatMap((result) => Head.safeParse(result).data ?? [])

describe('blocks that share a second', () => {
  it('tell the whole milliseconds, of themselves and of their logs', async () => {
    const devnet = await manual({ blockMs: 200, flashMs: 200 })
    const link = await listen(devnet)
    await link.subscribe('newHeads')
    const times = []
    for (let blocks = 0; blocks < 10; blocks++) {
      send(devnet, 1n)
      devnet.flash()
      const pending = Head.parse(await read(devnet, 'eth_getBlockByNumber', 'pending', false))
      const [log] = await logs(devnet, { blockHash: devnet.seal().hash })
      const latest = Head.parse(await read(devnet, 'eth_getBlockByNumber', 'latest', false))
      await link.settled()
      for (const one of [pending, latest, heads(link.results).at(-1)]) {
        expect(one).toMatchObject({ timestamp: log?.blockTimestamp, timestampMs: log?.blockTimestampMs })
      }
      times.push([Number(latest.timestamp), Number(latest.timestampMs)] as const)
    }
    const [, beginMs = 0] = times[0] ?? []
    expect(times).toEqual(times.map((_, at) => [Math.floor((beginMs + at * 200) / 1_000), beginMs + at * 200]))
    expect([...Map.groupBy(times, ([second]) => second).values()].some((shared) => shared.length === 5)).toBe(true)
  })
})

describe('a network where nothing is pre-confirmed and a block takes 200 ms', () => {
  it('pushes the head and the logs of each block, and no pending logs, and pending repeats latest', async () => {
    const devnet = await startDevnet({ blockMs: 200, flashMs: 200, transactionsPerFlash: 5 })
    onTestFinished(() => devnet.stop())
    Object.assign(devnet.weather, { pending: 'latest', silent: ['pendingLogs'] })
    const link = await listen(devnet)
    for (const kind of ['pendingLogs', 'logs', 'newHeads']) await link.subscribe(kind)
    await link.until(() => heads(link.results).length === 4)
    await link.settled()

    const told = heads(link.results)
    expect(told.map(({ number }) => Number(number))).toEqual(told.map((_, at) => Number(told[0]?.number) + at))
    const blocks = told.map(({ number }) => devnet.chain.block(Number(number)))
    const sealed = link.results
      .flatMap((result) => FastLog.safeParse(result).data ?? [])
      .filter((log) => Number(log.blockNumber) >= Number(told[0]?.number))
    expect(sealed.length).toBeGreaterThan(0)
    expect(sealed).toEqual(blocks.flatMap((block) => block?.logs ?? []))

    const asks = ['latest', 'pending'].map((tag, id) => ({
      jsonrpc: '2.0',
      id,
      method: 'eth_getBlockByNumber',
      params: [tag, true],
    }))
    const [latest, pending] = z.array(z.object({ result: z.unknown() })).parse((await post(devnet, asks)).json)
    expect(pending?.result).toEqual(latest?.result)
    expect(await logs(devnet, { fromBlock: 'pending', toBlock: 'pending' })).toEqual([])
  })
})
