import { createPublicClient, http, type Log, type PublicClient, parseAbiItem } from 'viem'
import { describe, expect, it, onTestFinished } from 'vitest'
import type { Devnet } from '../../../src/devnet/devnet.ts'
import {
  blockHashesAbove,
  highRpcRate,
  logPosition,
  logPositionsAbove,
  logsAbove,
  nodeEndpoint,
  openCuttableProxy,
  produceBlocks,
  relayEndpoint,
} from '../../support/rpc-scenarios.ts'
import { openTestStack, transfer } from '../../support/test-stack.ts'
import { collectNotifications, viemWebSocketClient, waitForSubscriptions } from '../../support/viem-client.ts'

const event = parseAbiItem('event Transfer(address indexed from, address indexed to, uint256 amount)')

/** Watches all that viem can watch, until the test ends; what it receives. */
function watchAll(client: PublicClient, devnet: Devnet, fromBlock?: bigint) {
  const received = {
    blocks: [] as (string | null)[],
    logs: [] as string[],
    ofToken: [] as string[],
    ofContract: [] as string[],
    failures: [] as string[],
  }
  const onError = ({ message }: Error) => void received.failures.push(message)
  const into = (list: string[]) => (logs: readonly Log[]) => void list.push(...logs.map(logPosition))
  const address = devnet.list.addressOf('AAPLc')
  const contract = { address, abi: [event], eventName: 'Transfer' } as const
  const onBlock = ({ hash }: { hash: string | null }) => received.blocks.push(hash)
  const watches = [
    client.watchEvent({ onLogs: into(received.logs), onError, fromBlock }),
    client.watchEvent({ address, event, onLogs: (logs) => into(received.ofToken)(logs), onError, fromBlock }),
    client.watchContractEvent({ ...contract, onLogs: into(received.ofContract), onError, fromBlock }),
    client.watchBlocks({ onBlock, onError, emitMissed: true, emitOnBegin: true }),
  ]
  // A client that polls would ask on, and reach whatever listens on the same port next.
  onTestFinished(() => {
    for (const unwatch of watches) unwatch()
  })
  return received
}

const expectedEvents = (devnet: Devnet, after: number) => ({
  blocks: blockHashesAbove(devnet, after - 1),
  logs: logPositionsAbove(devnet, after),
  ofToken: logPositionsAbove(devnet, after, 'AAPLc'),
  ofContract: logPositionsAbove(devnet, after, 'AAPLc'),
  failures: [],
})

async function open() {
  const stack = await openTestStack(highRpcRate)
  return { ...stack, stack, head: () => stack.devnet.chain.head.number, endpoint: relayEndpoint(stack.relay) }
}

describe('viem that watches', () => {
  it.each(['webSocket', 'http'] as const)('receives every event and block once and in order, over %s', async (transport) => {
    const { stack, devnet, head, endpoint } = await open()
    const begin = head()
    const watch = {
      async webSocket() {
        const client = viemWebSocketClient(endpoint)
        const received = watchAll(client, devnet)
        await waitForSubscriptions(client, 4)
        return { client, received }
      },
      // Over HTTP viem polls, since the relay refuses its filters.
      async http() {
        const client = createPublicClient({ transport: http(endpoint.url), pollingInterval: 20 })
        return { client, received: watchAll(client, devnet, BigInt(begin + 1)) }
      },
    }
    const { client, received } = await watch[transport]()
    await expect.poll(() => received.blocks).toHaveLength(1)
    for (let round = 0; round < 2; round += 1) {
      produceBlocks(stack)
      await expect.poll(() => received).toEqual(expectedEvents(devnet, begin))
    }
    await client.getChainId()
    expect(received).toEqual(expectedEvents(devnet, begin))
  })
})

describe('viem that subscribes', () => {
  it.each(['pendingLogs', 'logs', 'newHeads'])('receives the %s that the node itself sends', async (kind) => {
    const { stack, devnet, head, endpoint } = await open()
    const params = kind === 'newHeads' ? [kind] : [kind, { address: devnet.list.addressOf('AAPLc') }]
    const [client, direct] = [viemWebSocketClient(endpoint), viemWebSocketClient(nodeEndpoint(devnet))]
    const ours = await collectNotifications(client, params)
    const expected = await collectNotifications(direct, params)
    // The node never reports that a pre-confirmed log was dropped; the relay does.
    const dropped = () => (kind === 'pendingLogs' ? [] : logsAbove(devnet, head() - 2, 'AAPLc').slice(0, 1))
    const reorg = () =>
      devnet.reorg(
        3,
        dropped().map(({ transactionHash }) => transactionHash),
      )
    for (const change of [() => produceBlocks(stack), reorg, () => produceBlocks(stack)]) {
      change()
      // All that the node sends has arrived once it answers.
      await direct.getChainId()
      await expect.poll(() => ours.results).toEqual(expected.results)
    }
    await client.getChainId()
    expect(ours.results).toEqual(expected.results)
    expect(expected.results.length).toBeGreaterThan(7)
  })

  it('receives each log once while the node disconnects the relay', async () => {
    const { stack, devnet, head, endpoint } = await open()
    const client = viemWebSocketClient(endpoint, { reconnect: false })
    const pending = await collectNotifications(client, ['pendingLogs', {}])
    const sealed = await collectNotifications(client, ['logs', {}])
    const begin = head()
    for (let round = 0; round < 5; round += 1) {
      devnet.faults.cutSockets()
      produceBlocks(stack)
    }
    const positions = logPositionsAbove(devnet, begin)
    await expect.poll(() => sealed.results.map(logPosition)).toEqual(positions)
    await expect.poll(() => pending.results).toHaveLength(positions.length)
    await client.getChainId()
    const keys = pending.results.map(({ transactionHash, logIndex }) => `${transactionHash} ${logIndex}`)
    expect(new Set(keys).size).toBe(positions.length)
    expect([pending.results.length, sealed.results.length]).toEqual([positions.length, positions.length])
    expect(pending.failures).toEqual([])
  })

  it('reconnects and continues after its connection is cut', async () => {
    const { stack, devnet, head, endpoint } = await open()
    const proxy = await openCuttableProxy(endpoint)
    const client = viemWebSocketClient(proxy, { reconnect: { delay: 20 } })
    const pending = await collectNotifications(client, ['pendingLogs', {}])
    const received = watchAll(client, devnet)
    const before = await waitForSubscriptions(client, 5)
    await expect.poll(() => received.blocks).toHaveLength(1)
    transfer(stack)
    devnet.seal()
    const counts = () => [pending.results, received.logs, received.blocks].map(({ length }) => length)
    await expect.poll(counts).toEqual([1, 1, 2])
    proxy.cut()
    await waitForSubscriptions(client, 5, before)
    expect(proxy.calls()).toBe(2)
    const begin = head()
    produceBlocks(stack)
    await expect.poll(() => received.logs.slice(1)).toEqual(logPositionsAbove(devnet, begin))
    await expect.poll(() => pending.results.length - 1).toBe(logPositionsAbove(devnet, begin).length)
    await expect.poll(() => received.blocks.slice(2)).toEqual(blockHashesAbove(devnet, begin))
    await client.getChainId()
    expect(received.logs.slice(1)).toEqual(logPositionsAbove(devnet, begin))
  })

  it('keeps its other subscriptions when one is refused', async () => {
    const { stack, endpoint } = await open()
    const client = viemWebSocketClient(endpoint)
    const pending = await collectNotifications(client, ['pendingLogs', {}])
    await expect(collectNotifications(client, ['newPendingTransactions'])).rejects.toMatchObject({ code: -32602 })
    transfer(stack)
    await expect.poll(() => pending.results).toHaveLength(1)
  })

  it('keeps its connection though its keep-alive requests are refused', async () => {
    const { stack, endpoint } = await open()
    const client = viemWebSocketClient(endpoint, { keepAlive: { interval: 10 } })
    const pending = await collectNotifications(client, ['pendingLogs', {}])
    const { socket } = await client.transport.getRpcClient()
    const answers: unknown[] = []
    socket.addEventListener('message', ({ data }) => answers.push(JSON.parse(String(data))))
    await expect.poll(() => answers.length).toBeGreaterThan(20)
    expect(answers[0]).toMatchObject({ id: null, error: { code: -32601 } })
    transfer(stack)
    await expect.poll(() => pending.results).toHaveLength(1)
    expect((await client.transport.getRpcClient()).socket).toBe(socket)
  })
})
