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

  it('pushes, in the older shape, all pending logs in an array at every flashblock', async () => {
    const devnet = await startManualDevnet()
    devnet.faults.shape = 'all'
    const link = await openSocket(devnet)
    await link.subscribe('pendingLogs', { address: devnet.list.addressOf('AAPLc') })
    makeTransfers(devnet)
    devnet.transfer({ symbol: 'TSLAc', raw: 9n })
    makeTransfers(devnet, 1)
    makeTransfers(devnet, 2)
    makeTransfers(devnet)
    await link.flush()
    expect(link.notifications.map((result) => amounts([result].flat()))).toEqual([[1], [1, 2], [1, 2]])
  })

  // test/unit/protocol has every form of a filter.
  it.each<[string, (aapl: string) => unknown[], number[]]>([
    ['a boolean', () => [true], [1, 2, 3]],
    ['null', () => [null], [1, 2, 3]],
    ['an unknown field', () => [{ transactionHashes: [] }], [1, 2, 3]],
    ['an address in capitals', (aapl) => [{ address: aapl.toUpperCase().replace('0X', '0x') }], [1, 3]],
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

  it('pushes any log that a test emits', async () => {
    const devnet = await startManualDevnet()
    const link = await openSubscribed(devnet, 'pendingLogs')
    const logs = [
      { address: ZERO, topics: [], data: '0x' },
      { address: ZERO, topics: [ZERO_HASH], data: '0x01' },
    ] as const
    const transactionHash = devnet.emit(...logs)
    devnet.makeFlashblock()
    await link.flush()
    expect(link.notifications).toMatchObject(
      logs.map((log, at) => ({ ...log, transactionHash, transactionIndex: '0x0', logIndex: `0x${at}` })),
    )
  })
})

it('subscriptions to logs and newHeads push the head and the logs of a block when it is sealed', async () => {
  const devnet = await startManualDevnet()
  const link = await openSubscribed(devnet, 'newHeads')
  await link.subscribe('logs', { address: devnet.list.addressOf('AAPLc') })
  makeTransfers(devnet, 1)
  devnet.transfer({ symbol: 'TSLAc', raw: 2n })
  devnet.makeFlashblock()
  await link.flush()
  expect(link.notifications).toEqual([])
  const { hash, logs: sealed } = devnet.seal()
  await link.flush()
  expect(link.notifications).toEqual([expect.objectContaining({ hash, logsBloom: expect.any(String) }), sealed[0]])
  expect(link.notifications[0]).not.toHaveProperty('transactions')
})

describe('a socket', () => {
  it('answers the same methods as HTTP, on any path', async () => {
    const devnet = await startManualDevnet()
    const link = await openSocket({ ...devnet, wsUrl: `${devnet.wsUrl}v1/key` })
    const pending = ['eth_getBlockByNumber', 'pending', false] as const
    expect((await link.call(...pending)).result).toEqual(await rpcResult(devnet, ...pending))
    expect((await link.call('eth_getBlockReceipts', 'latest')).error?.code).toBe(-32601)
  })

  it('ends a subscription, once', async () => {
    const devnet = await startManualDevnet()
    const link = await openSocket(devnet)
    const { result } = await link.subscribe('pendingLogs', {})
    expect(devnet.subscriptions()).toEqual({ pendingLogs: 1, logs: 0, newHeads: 0 })
    expect((await link.call('eth_unsubscribe', result)).result).toBe(true)
    expect((await link.call('eth_unsubscribe', result)).result).toBe(false)
    sealTransfers(devnet, 1)
    await link.flush()
    expect(link.notifications).toEqual([])
    expect(devnet.subscriptions().pendingLogs).toBe(0)
  })

  it.each<[string, string, unknown[], number]>([
    ['an unknown kind', 'eth_subscribe', ['syncing'], -32602],
    ['no kind', 'eth_subscribe', [], -32602],
    ['a filter with a bad address', 'eth_subscribe', ['pendingLogs', { address: 'AAPLc' }], -32602],
    ['no id of a subscription', 'eth_unsubscribe', [], -32602],
    ['an unknown method', 'eth_nothing', [], -32601],
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

  it('is closed for a message over 1 MiB', async () => {
    const link = await openSocket(await startManualDevnet())
    const code = new Promise((resolve) => link.socket.once('close', resolve))
    link.socket.send('x'.repeat(1_100_000))
    expect(await code).toBe(1009)
  })

  it('answers an unreadable message with an error', async () => {
    const link = await openSocket(await startManualDevnet())
    link.socket.send('{')
    link.socket.send(Buffer.from('00', 'hex'))
    await link.waitUntil(() => link.answers.length === 2)
    expect(link.answers.map((answer) => answer.error?.code)).toEqual([-32700, -32700])
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
