import { describe, expect, it } from 'vitest'
import { z } from 'zod'
import { ALICE, BOB, getLogs, LogSchema, openSocket, rpcResult, startManualDevnet, ZERO, ZERO_HASH } from '../devnet-client.ts'

const padded = (address: string) => `0x${address.slice(2).padStart(64, '0')}`
const Logs = z.array(LogSchema)

describe('pendingLogs', () => {
  it('pushes each log of a flashblock in its own message', async () => {
    const devnet = await startManualDevnet()
    const link = await openSocket(devnet)
    expect((await link.subscribe('pendingLogs', {})).result).toMatch(/^0x[0-9a-f]{32}$/)
    devnet.transfer({ symbol: 'AAPLc', to: ALICE, raw: 1n })
    devnet.transfer({ symbol: 'TSLAc', to: BOB, raw: 2n })
    const made = devnet.makeFlashblock()
    await link.waitUntil(() => link.notifications.length === 2)
    expect(link.notifications).toEqual(made)
    expect(Logs.parse(link.notifications).map((log) => log.logIndex)).toEqual(['0x0', '0x1'])
  })

  it('pushes only the new logs of a flashblock, with indexes that count on within the block', async () => {
    const devnet = await startManualDevnet()
    const link = await openSocket(devnet)
    await link.subscribe('pendingLogs')
    for (const raw of [1n, 2n, 3n]) {
      devnet.transfer({ symbol: 'AAPLc', raw })
      devnet.makeFlashblock()
    }
    devnet.seal()
    devnet.transfer({ symbol: 'AAPLc', raw: 4n })
    devnet.makeFlashblock()
    await link.flush()
    const positions = Logs.parse(link.notifications).map((log) => [Number(log.blockNumber), log.transactionIndex, log.logIndex])
    const head = devnet.chain.head.number
    expect(positions).toEqual([
      [head, '0x0', '0x0'],
      [head, '0x1', '0x1'],
      [head, '0x2', '0x2'],
      [head + 1, '0x0', '0x0'],
    ])
  })

  it('pushes a log with a zero block hash and with the indexes that it keeps when sealed', async () => {
    const devnet = await startManualDevnet()
    const link = await openSocket(devnet)
    await link.subscribe('pendingLogs', {})
    devnet.transfer({ symbol: 'AAPLc', raw: 5n })
    devnet.makeFlashblock()
    const { hash } = devnet.seal()
    await link.flush()
    const [pushed] = Logs.parse(link.notifications)
    expect(pushed?.blockHash).toBe(ZERO_HASH)
    expect(await getLogs(devnet, { blockHash: hash })).toEqual([{ ...pushed, blockHash: hash }])
  })

  it('pushes nothing at a seal or for a flashblock without logs', async () => {
    const devnet = await startManualDevnet()
    const link = await openSocket(devnet)
    await link.subscribe('pendingLogs', {})
    devnet.makeFlashblock()
    devnet.seal()
    await link.flush()
    expect(link.notifications).toEqual([])
  })

  it('pushes, in the older shape, all pending logs in an array at every flashblock', async () => {
    const devnet = await startManualDevnet()
    devnet.faults.shape = 'all'
    const link = await openSocket(devnet)
    await link.subscribe('pendingLogs', { address: devnet.list.addressOf('AAPLc') })
    devnet.makeFlashblock()
    devnet.transfer({ symbol: 'AAPLc', raw: 1n })
    devnet.transfer({ symbol: 'TSLAc', raw: 9n })
    devnet.makeFlashblock()
    devnet.transfer({ symbol: 'AAPLc', raw: 2n })
    devnet.makeFlashblock()
    devnet.makeFlashblock()
    await link.flush()
    expect(link.notifications.map((result) => Logs.parse(result).map((log) => Number(log.data)))).toEqual([[1], [1, 2], [1, 2]])
  })

  it.each<[string, (aapl: string) => unknown[], number[]]>([
    ['no filter', () => [], [1, 2, 3]],
    ['an empty filter', () => [{}], [1, 2, 3]],
    ['a boolean', () => [true], [1, 2, 3]],
    ['null', () => [null], [1, 2, 3]],
    ['an empty list of addresses', () => [{ address: [] }], [1, 2, 3]],
    ['an unknown field', () => [{ transactionHashes: [] }], [1, 2, 3]],
    ['an address', (aapl) => [{ address: aapl }], [1, 3]],
    ['an address in capitals', (aapl) => [{ address: aapl.toUpperCase().replace('0X', '0x') }], [1, 3]],
    ['a list of addresses', (aapl) => [{ address: [aapl, ZERO] }], [1, 3]],
    ['an address without logs', () => [{ address: BOB }], []],
    ['a receiver', () => [{ topics: [null, null, padded(BOB)] }], [2, 3]],
    ['an address and one of several receivers', (aapl) => [{ address: aapl, topics: [null, [], [padded(BOB)]] }], [3]],
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
    expect(Logs.parse(link.notifications).map((log) => Number(log.data))).toEqual(expected)
  })

  it('pushes any log that a test emits', async () => {
    const devnet = await startManualDevnet()
    const link = await openSocket(devnet)
    await link.subscribe('pendingLogs', {})
    const hash = devnet.emit({ address: ZERO, topics: [], data: '0x' }, { address: ZERO, topics: [ZERO_HASH], data: '0x01' })
    devnet.makeFlashblock()
    await link.flush()
    expect(link.notifications).toMatchObject([
      { address: ZERO, topics: [], data: '0x', transactionHash: hash, transactionIndex: '0x0', logIndex: '0x0' },
      { address: ZERO, topics: [ZERO_HASH], data: '0x01', transactionHash: hash, transactionIndex: '0x0', logIndex: '0x1' },
    ])
  })
})

describe('subscriptions to logs and newHeads', () => {
  it('push the logs and the head of a block when it is sealed', async () => {
    const devnet = await startManualDevnet()
    const link = await openSocket(devnet)
    await link.subscribe('newHeads')
    await link.subscribe('logs', { address: devnet.list.addressOf('AAPLc') })
    devnet.transfer({ symbol: 'AAPLc', raw: 1n })
    devnet.transfer({ symbol: 'TSLAc', raw: 2n })
    devnet.makeFlashblock()
    await link.flush()
    expect(link.notifications).toEqual([])
    const { hash, logs: sealed } = devnet.seal()
    await link.flush()
    expect(link.notifications).toEqual([expect.objectContaining({ hash, logsBloom: expect.any(String) }), sealed[0]])
    expect(link.notifications[0]).not.toHaveProperty('transactions')
  })
})

describe('a socket', () => {
  it('answers the same methods as HTTP', async () => {
    const devnet = await startManualDevnet()
    const link = await openSocket(devnet)
    expect((await link.call('eth_getBlockByNumber', 'pending', false)).result).toEqual(
      await rpcResult(devnet, 'eth_getBlockByNumber', 'pending', false),
    )
    expect((await link.call('eth_getBlockReceipts', 'latest')).error?.code).toBe(-32601)
    expect((await link.call('eth_nothing')).error?.code).toBe(-32601)
  })

  it('ends a subscription, once', async () => {
    const devnet = await startManualDevnet()
    const link = await openSocket(devnet)
    const { result } = await link.subscribe('pendingLogs', {})
    expect(devnet.subscriptions()).toEqual({ pendingLogs: 1, logs: 0, newHeads: 0 })
    expect((await link.call('eth_unsubscribe', result)).result).toBe(true)
    expect((await link.call('eth_unsubscribe', result)).result).toBe(false)
    devnet.transfer({ symbol: 'AAPLc', raw: 1n })
    devnet.makeFlashblock()
    await link.flush()
    expect(link.notifications).toEqual([])
    expect(devnet.subscriptions().pendingLogs).toBe(0)
  })

  it.each<[string, unknown[]]>([
    ['an unknown kind', ['syncing']],
    ['no kind', []],
    ['a filter with a bad address', ['pendingLogs', { address: 'AAPLc' }]],
  ])('refuses a subscription with %s', async (_, params) => {
    const link = await openSocket(await startManualDevnet())
    expect((await link.subscribe(...params)).error?.code).toBe(-32602)
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
    const [stuck, reading] = [await openSocket(devnet), await openSocket(devnet)]
    await stuck.subscribe('pendingLogs', {})
    await reading.subscribe('pendingLogs', {})
    stuck.socket.pause()
    const data = `0x${'00'.repeat(500_000)}` as const
    let pushed = 0
    while (devnet.sockets() === 2 && pushed < 100) {
      devnet.emit({ address: ZERO, topics: [], data })
      devnet.makeFlashblock()
      devnet.seal()
      pushed += 1
      await reading.waitUntil(() => reading.notifications.length === pushed)
    }
    expect(devnet.sockets()).toBe(1)
    expect((await reading.flush()).error).toBeUndefined()
  })

  it('is accepted on any path', async () => {
    const devnet = await startManualDevnet()
    const link = await openSocket({ ...devnet, wsUrl: `${devnet.wsUrl}v1/key` })
    expect((await link.call('eth_chainId')).result).toBe(`0x${devnet.chainId.toString(16)}`)
  })
})
