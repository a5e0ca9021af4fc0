import { expect, it } from 'vitest'
import { BlockSchema, getLogs, openSubscribed, rpcResult, sealTransfers, startManualDevnet } from '../devnet-client.ts'

const Head = BlockSchema.omit({ transactions: true }).loose()

it('blocks that share a second have their time in milliseconds, and so do their logs', async () => {
  const devnet = await startManualDevnet({ blockMs: 200, flashblockMs: 200 })
  const link = await openSubscribed(devnet, 'newHeads')
  const blockAt = async (tag: string) => Head.parse(await rpcResult(devnet, 'eth_getBlockByNumber', tag, false))
  const times: (readonly [number, number])[] = []
  for (let blocks = 0; blocks < 10; blocks++) {
    const pending = await blockAt('pending')
    const [log] = await getLogs(devnet, { blockHash: sealTransfers(devnet, 1).hash })
    const latest = await blockAt('latest')
    await link.flush()
    for (const block of [pending, latest, Head.parse(link.notifications.at(-1))])
      expect(block).toMatchObject({ timestamp: log?.blockTimestamp, timestampMs: log?.blockTimestampMs })
    times.push([Number(latest.timestamp), Number(latest.timestampMs)])
  }
  const [, firstMs = 0] = times[0] ?? []
  expect(times).toEqual(times.map((_, at) => [Math.floor((firstMs + at * 200) / 1_000), firstMs + at * 200]))
})
