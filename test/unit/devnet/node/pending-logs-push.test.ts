import { describe, expect, it } from 'vitest'
import { type Hex, toWord } from '../../../../src/lib/hex.ts'
import {
  ALICE,
  amounts,
  BOB,
  getLogs,
  makeTransfers,
  openSocket,
  openSubscribed,
  rpcResult,
  sealTransfers,
  startManualDevnet,
  ZERO,
  ZERO_HASH,
} from '../devnet-client.ts'

describe('pendingLogs', () => {
  it('pushes the new logs of each flashblock one by one, with the indexes that they keep when sealed', async () => {
    const devnet = await startManualDevnet()
    const link = await openSocket(devnet)
    expect((await link.subscribe('pendingLogs')).result).toMatch(/^0x[0-9a-f]{32}$/)
    const { number } = devnet.chain.pending
    const made = [...makeTransfers(devnet, 1, 2), ...makeTransfers(devnet), ...makeTransfers(devnet, 3)]
    const { hash } = devnet.seal()
    made.push(...makeTransfers(devnet, 4))
    await link.flush()
    expect(link.notifications).toEqual(made)
    expect(made.map((log) => [Number(log.blockNumber) - number, log.transactionIndex, log.logIndex, log.blockHash])).toEqual([
      [0, '0x0', '0x0', ZERO_HASH],
      [0, '0x1', '0x1', ZERO_HASH],
      [0, '0x2', '0x2', ZERO_HASH],
      [1, '0x0', '0x0', ZERO_HASH],
    ])
    expect(await getLogs(devnet, { blockHash: hash })).toEqual(made.slice(0, 3).map((log) => ({ ...log, blockHash: hash })))
  })

  // test/unit/protocol has every form of a filter.
  it.each<[string, (aapl: string) => unknown[], number[]]>([
    ['null', () => [null], [1, 2, 3]],
    ['an unknown field', () => [{ transactionHashes: [] }], [1, 2, 3]],
    ['an address and one of several receivers', (aapl) => [{ address: aapl, topics: [null, [], [toWord(BOB as Hex)]] }], [3]],
    ['blocks, which it ignores', () => [{ fromBlock: 'latest', toBlock: '0x1' }], [1, 2, 3]],
  ])('filters by %s', async (_, filterOf, expected) => {
    const devnet = await startManualDevnet()
    const link = await openSocket(devnet)
    await link.subscribe('pendingLogs', ...filterOf(devnet.list.addressOf('AAPLc')))
    devnet.transfer({ symbol: 'AAPLc', to: ALICE, raw: 1n })
    devnet.transfer({ symbol: 'TSLAc', to: BOB, raw: 2n })
    devnet.transfer({ symbol: 'AAPLc', to: BOB, raw: 3n })
    devnet.makeFlashblock()
    await link.flush()
    expect(amounts(link.notifications)).toEqual(expected)
  })
})

describe('a socket', () => {
  it('answers the same methods as HTTP, on any path, and ends a subscription once', async () => {
    const devnet = await startManualDevnet()
    const link = await openSocket({ ...devnet, wsUrl: `${devnet.wsUrl}v1/key` })
    const pending = ['eth_getBlockByNumber', 'pending', false] as const
    expect((await link.call(...pending)).result).toEqual(await rpcResult(devnet, ...pending))
    const { result } = await link.subscribe('pendingLogs', {})
    expect(devnet.subscriptions()).toEqual({ pendingLogs: 1, logs: 0, newHeads: 0 })
    expect([(await link.call('eth_unsubscribe', result)).result, (await link.call('eth_unsubscribe', result)).result]).toEqual([
      true,
      false,
    ])
    sealTransfers(devnet, 1)
    await link.flush()
    expect([link.notifications, devnet.subscriptions().pendingLogs]).toEqual([[], 0])
  })

  it.each<[string, string, unknown[], number]>([
    ['an unknown kind', 'eth_subscribe', ['syncing'], -32602],
    ['a filter with a bad address', 'eth_subscribe', ['pendingLogs', { address: 'AAPLc' }], -32602],
    ['no id of a subscription', 'eth_unsubscribe', [], -32602],
  ])('refuses %s', async (_, method, params, code) => {
    const link = await openSocket(await startManualDevnet())
    expect((await link.call(method, ...params)).error?.code).toBe(code)
  })

  it('refuses subscriptions beyond a bound', async () => {
    const link = await openSocket(await startManualDevnet())
    const request = { jsonrpc: '2.0', id: null, method: 'eth_subscribe', params: ['newHeads'] }
    for (let count = 1; count < 1_024; count++) link.socket.send(JSON.stringify(request))
    expect((await link.subscribe('newHeads')).error).toBeUndefined()
    expect((await link.subscribe('newHeads')).error?.code).toBe(-32006)
  })

  it('is disconnected when its client does not read, while another stays open', async () => {
    const devnet = await startManualDevnet()
    const [stuck, reading] = [await openSubscribed(devnet, 'pendingLogs'), await openSubscribed(devnet, 'pendingLogs')]
    stuck.socket.pause()
    const data = `0x${'00'.repeat(500_000)}` as const
    for (let pushed = 1; devnet.sockets() === 2 && pushed <= 100; pushed++) {
      devnet.emit({ address: ZERO, topics: [], data })
      devnet.makeFlashblock()
      devnet.seal()
      await reading.waitUntil(() => reading.notifications.length === pushed)
    }
    expect(devnet.sockets()).toBe(1)
    expect((await reading.flush()).error).toBeUndefined()
  })
})
