import { createPublicClient, http, type Log, type PublicClient, parseAbiItem } from 'viem'
import { describe, expect, it } from 'vitest'
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
  type RpcEndpoint,
  relayEndpoint,
  WAIT_OPTIONS,
} from '../../support/rpc-scenarios.ts'
import { openTestStack, transfer } from '../../support/test-stack.ts'
import { collectNotifications, viemWebSocketClient, waitForSubscriptions } from '../../support/viem-client.ts'

const Transfer = parseAbiItem('event Transfer(address indexed from, address indexed to, uint256 amount)')
const abi = [Transfer] as const
const kinds = ['pendingLogs', 'logs', 'newHeads'] as const

/** What watchers heard, and what went wrong for them. */
class ReceivedEvents {
  readonly blocks: (string | null)[] = []
  readonly logs: string[] = []
  readonly ofOne: string[] = []
  readonly ofContract: string[] = []
  readonly failures: string[] = []
  readonly onError = ({ message }: Error) => void this.failures.push(message)
  readonly into = (list: string[]) => (logs: readonly Log[]) => void list.push(...logs.map(logPosition))
}

/** Watches all that viem can watch. */
function watchAll(client: PublicClient, devnet: Devnet, fromBlock?: bigint): ReceivedEvents {
  const ledger = new ReceivedEvents()
  const { onError, into } = ledger
  const address = devnet.list.addressOf('AAPLc')
  client.watchEvent({ onLogs: into(ledger.logs), onError, fromBlock })
  client.watchEvent({ address, event: Transfer, onLogs: (logs) => into(ledger.ofOne)(logs), onError, fromBlock })
  client.watchContractEvent({
    address,
    abi,
    eventName: 'Transfer',
    onLogs: into(ledger.ofContract),
    onError,
    fromBlock,
  })
  client.watchBlocks({ onBlock: ({ hash }) => ledger.blocks.push(hash), onError, emitMissed: true, emitOnBegin: true })
  return ledger
}

const lengthOf = ({ length }: readonly unknown[]) => length

const expectedEvents = (devnet: Devnet, after: number) => ({
  blocks: blockHashesAbove(devnet, after - 1),
  logs: logPositionsAbove(devnet, after),
  ofOne: logPositionsAbove(devnet, after, 'AAPLc'),
  ofContract: logPositionsAbove(devnet, after, 'AAPLc'),
  failures: [],
})

const pollingClient = ({ url }: RpcEndpoint) => createPublicClient({ transport: http(url), pollingInterval: 20 })

describe('viem that watches', () => {
  it('over webSocket hears every event, of all contracts or of one, and every block: each once and in order', async () => {
    const stack = await openTestStack(highRpcRate)
    const { devnet, relay } = stack
    const client = viemWebSocketClient(relayEndpoint(relay))
    const begin = devnet.chain.head.number
    const ledger = watchAll(client, devnet)
    await waitForSubscriptions(client, 4)
    await expect.poll(() => ledger.blocks, WAIT_OPTIONS).toHaveLength(1)
    produceBlocks(stack)
    await expect.poll(() => ledger, WAIT_OPTIONS).toMatchObject(expectedEvents(devnet, begin))
    await client.getChainId()
    expect(ledger).toMatchObject(expectedEvents(devnet, begin))
  })

  it('over http, where no node filters for it, hears the same by asking', async () => {
    const stack = await openTestStack(highRpcRate)
    const { devnet, relay } = stack
    const begin = devnet.chain.head.number
    const client = pollingClient(relayEndpoint(relay))
    const ledger = watchAll(client, devnet, BigInt(begin + 1))
    await expect.poll(() => ledger.blocks, WAIT_OPTIONS).toHaveLength(1)
    produceBlocks(stack)
    await expect.poll(() => ledger, WAIT_OPTIONS).toMatchObject(expectedEvents(devnet, begin))
    produceBlocks(stack)
    await expect.poll(() => ledger, WAIT_OPTIONS).toMatchObject(expectedEvents(devnet, begin))
  })
})

describe('viem that subscribes', () => {
  it.each(kinds)('hears of %s what the node itself says, word for word', async (kind) => {
    const stack = await openTestStack(highRpcRate)
    const { devnet, relay } = stack
    const filters = kind === 'newHeads' ? [] : [{ address: devnet.list.addressOf('AAPLc') }]
    const [own, direct] = [viemWebSocketClient(relayEndpoint(relay)), viemWebSocketClient(nodeEndpoint(devnet))]
    const ours = await collectNotifications(own, [kind, ...filters])
    const theirs = await collectNotifications(direct, [kind, ...filters])
    // Of what is pre-confirmed the node never says that it fell out; the relay does.
    const lost = () =>
      kind === 'pendingLogs' ? [] : logsAbove(devnet, devnet.chain.head.number - 2, 'AAPLc').slice(0, 1)
    const turns = [
      () => produceBlocks(stack),
      () =>
        devnet.reorg(
          3,
          lost().map(({ transactionHash }) => transactionHash),
        ),
      () => produceBlocks(stack),
    ]
    for (const turn of turns) {
      turn()
      // All that the node had to say has come once it answers.
      await direct.getChainId()
      await expect.poll(() => ours.results, WAIT_OPTIONS).toEqual(theirs.results)
    }
    await own.getChainId()
    expect(ours.results).toEqual(theirs.results)
    expect(theirs.results.length).toBeGreaterThan(7)
  })

  it('hears on, each log once, when the node hung up on the relay', async () => {
    const stack = await openTestStack(highRpcRate)
    const { devnet, relay } = stack
    const client = viemWebSocketClient(relayEndpoint(relay), { reconnect: false })
    const pending = await collectNotifications(client, ['pendingLogs', {}])
    const sealed = await collectNotifications(client, ['logs', {}])
    const begin = devnet.chain.head.number
    for (let round = 0; round < 5; round += 1) {
      devnet.faults.cutSockets()
      produceBlocks(stack)
    }
    const hashes = logPositionsAbove(devnet, begin)
    await expect.poll(() => sealed.results.map(logPosition), WAIT_OPTIONS).toEqual(hashes)
    await expect.poll(() => pending.results, WAIT_OPTIONS).toHaveLength(hashes.length)
    await client.getChainId()
    const names = pending.results.map(({ transactionHash, logIndex }) => `${transactionHash} ${logIndex}`)
    expect(new Set(names).size).toBe(hashes.length)
    expect([pending.results.length, sealed.results.length]).toEqual([hashes.length, hashes.length])
    expect(pending.failures).toEqual([])
  })

  it('comes back when its connection was cut, and hears on', async () => {
    const stack = await openTestStack(highRpcRate)
    const { devnet, relay } = stack
    const wire = await openCuttableProxy(relayEndpoint(relay))
    const client = viemWebSocketClient(wire, { reconnect: { delay: 20 } })
    const pending = await collectNotifications(client, ['pendingLogs', {}])
    const ledger = watchAll(client, devnet)
    const before = await waitForSubscriptions(client, 5)
    await expect.poll(() => ledger.blocks, WAIT_OPTIONS).toHaveLength(1)
    transfer(stack)
    devnet.seal()
    await expect
      .poll(() => [pending.results, ledger.logs, ledger.blocks].map(lengthOf), WAIT_OPTIONS)
      .toEqual([1, 1, 2])
    wire.cut()
    await waitForSubscriptions(client, 5, before)
    expect(wire.calls()).toBe(2)
    const begin = devnet.chain.head.number
    produceBlocks(stack)
    await expect.poll(() => ledger.logs.slice(1), WAIT_OPTIONS).toEqual(logPositionsAbove(devnet, begin))
    await expect.poll(() => pending.results.length - 1, WAIT_OPTIONS).toBe(logPositionsAbove(devnet, begin).length)
    await expect.poll(() => ledger.blocks.slice(2), WAIT_OPTIONS).toEqual(blockHashesAbove(devnet, begin))
    await client.getChainId()
    expect(ledger.logs.slice(1)).toEqual(logPositionsAbove(devnet, begin))
  })

  it('is refused in words for what there is none of, and its other subscriptions go on', async () => {
    const stack = await openTestStack(highRpcRate)
    const client = viemWebSocketClient(relayEndpoint(stack.relay))
    const pending = await collectNotifications(client, ['pendingLogs', {}])
    await expect(collectNotifications(client, ['newPendingTransactions'])).rejects.toMatchObject({ code: -32602 })
    transfer(stack)
    await expect.poll(() => pending.results, WAIT_OPTIONS).toHaveLength(1)
  })

  it('keeps its connection alive with a question that nobody answers, and stays', async () => {
    const stack = await openTestStack(highRpcRate)
    const client = viemWebSocketClient(relayEndpoint(stack.relay), { keepAlive: { interval: 10 } })
    const pending = await collectNotifications(client, ['pendingLogs', {}])
    const { socket } = await client.transport.getRpcClient()
    const answers: unknown[] = []
    socket.addEventListener('message', ({ data }) => answers.push(JSON.parse(String(data))))
    await expect.poll(() => answers.length, WAIT_OPTIONS).toBeGreaterThan(20)
    expect(answers[0]).toMatchObject({ id: null, error: { code: -32601 } })
    transfer(stack)
    await expect.poll(() => pending.results, WAIT_OPTIONS).toHaveLength(1)
    expect((await client.transport.getRpcClient()).socket).toBe(socket)
  })
})
