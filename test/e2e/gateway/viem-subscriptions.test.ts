import { createPublicClient, http, type Log, type PublicClient, parseAbiItem } from 'viem'
import { describe, expect, it } from 'vitest'
import type { Devnet } from '../../../src/devnet/devnet.ts'
import {
  ample,
  blocksAbove,
  type Door,
  doorOf,
  LATEST_MS,
  live,
  logsAbove,
  nodeOf,
  openWire,
  placeOf,
  placesAbove,
} from '../../support/rpc-scenarios.ts'
import { openWorld, transfer } from '../../support/test-stack.ts'
import { heardOn, subscribed, viemSocket } from '../../support/viem-client.ts'

const Transfer = parseAbiItem('event Transfer(address indexed from, address indexed to, uint256 amount)')
const abi = [Transfer] as const
const kinds = ['pendingLogs', 'logs', 'newHeads'] as const

/** What watchers heard, and what went wrong for them. */
class Ledger {
  readonly blocks: (string | null)[] = []
  readonly logs: string[] = []
  readonly ofOne: string[] = []
  readonly ofContract: string[] = []
  readonly failures: string[] = []
  readonly onError = ({ message }: Error) => void this.failures.push(message)
  readonly into = (list: string[]) => (logs: readonly Log[]) => void list.push(...logs.map(placeOf))
}

/** Watches all that viem can watch. */
function watchAll(client: PublicClient, devnet: Devnet, fromBlock?: bigint): Ledger {
  const ledger = new Ledger()
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

const truthOf = (devnet: Devnet, after: number) => ({
  blocks: blocksAbove(devnet, after - 1),
  logs: placesAbove(devnet, after),
  ofOne: placesAbove(devnet, after, 'AAPLc'),
  ofContract: placesAbove(devnet, after, 'AAPLc'),
  failures: [],
})

const pollingClient = ({ url }: Door) => createPublicClient({ transport: http(url), pollingInterval: 20 })

describe('viem that watches', () => {
  it('over webSocket hears every event, of all contracts or of one, and every block: each once and in order', async () => {
    const world = await openWorld(ample)
    const { devnet, relay } = world
    const client = viemSocket(doorOf(relay))
    const begin = devnet.chain.head.number
    const ledger = watchAll(client, devnet)
    await subscribed(client, 4)
    await expect.poll(() => ledger.blocks, LATEST_MS).toHaveLength(1)
    live(world)
    await expect.poll(() => ledger, LATEST_MS).toMatchObject(truthOf(devnet, begin))
    await client.getChainId()
    expect(ledger).toMatchObject(truthOf(devnet, begin))
  })

  it('over http, where no node filters for it, hears the same by asking', async () => {
    const world = await openWorld(ample)
    const { devnet, relay } = world
    const begin = devnet.chain.head.number
    const client = pollingClient(doorOf(relay))
    const ledger = watchAll(client, devnet, BigInt(begin + 1))
    await expect.poll(() => ledger.blocks, LATEST_MS).toHaveLength(1)
    live(world)
    await expect.poll(() => ledger, LATEST_MS).toMatchObject(truthOf(devnet, begin))
    live(world)
    await expect.poll(() => ledger, LATEST_MS).toMatchObject(truthOf(devnet, begin))
  })
})

describe('viem that subscribes', () => {
  it.each(kinds)('hears of %s what the node itself says, word for word', async (kind) => {
    const world = await openWorld(ample)
    const { devnet, relay } = world
    const filters = kind === 'newHeads' ? [] : [{ address: devnet.list.addressOf('AAPLc') }]
    const [own, direct] = [viemSocket(doorOf(relay)), viemSocket(nodeOf(devnet))]
    const ours = await heardOn(own, [kind, ...filters])
    const theirs = await heardOn(direct, [kind, ...filters])
    // Of what is pre-confirmed the node never says that it fell out; the relay does.
    const lost = () =>
      kind === 'pendingLogs' ? [] : logsAbove(devnet, devnet.chain.head.number - 2, 'AAPLc').slice(0, 1)
    const turns = [
      () => live(world),
      () =>
        devnet.reorg(
          3,
          lost().map(({ transactionHash }) => transactionHash),
        ),
      () => live(world),
    ]
    for (const turn of turns) {
      turn()
      // All that the node had to say has come once it answers.
      await direct.getChainId()
      await expect.poll(() => ours.results, LATEST_MS).toEqual(theirs.results)
    }
    await own.getChainId()
    expect(ours.results).toEqual(theirs.results)
    expect(theirs.results.length).toBeGreaterThan(7)
  })

  it('hears on, each log once, when the node hung up on the relay', async () => {
    const world = await openWorld(ample)
    const { devnet, relay } = world
    const client = viemSocket(doorOf(relay), { reconnect: false })
    const pending = await heardOn(client, ['pendingLogs', {}])
    const sealed = await heardOn(client, ['logs', {}])
    const begin = devnet.chain.head.number
    for (let round = 0; round < 5; round += 1) {
      devnet.weather.cut()
      live(world)
    }
    const hashes = placesAbove(devnet, begin)
    await expect.poll(() => sealed.results.map(placeOf), LATEST_MS).toEqual(hashes)
    await expect.poll(() => pending.results, LATEST_MS).toHaveLength(hashes.length)
    await client.getChainId()
    const names = pending.results.map(({ transactionHash, logIndex }) => `${transactionHash} ${logIndex}`)
    expect(new Set(names).size).toBe(hashes.length)
    expect([pending.results.length, sealed.results.length]).toEqual([hashes.length, hashes.length])
    expect(pending.failures).toEqual([])
  })

  it('comes back when its connection was cut, and hears on', async () => {
    const world = await openWorld(ample)
    const { devnet, relay } = world
    const wire = await openWire(doorOf(relay))
    const client = viemSocket(wire, { reconnect: { delay: 20 } })
    const pending = await heardOn(client, ['pendingLogs', {}])
    const ledger = watchAll(client, devnet)
    const before = await subscribed(client, 5)
    await expect.poll(() => ledger.blocks, LATEST_MS).toHaveLength(1)
    transfer(world)
    devnet.seal()
    await expect.poll(() => [pending.results, ledger.logs, ledger.blocks].map(lengthOf), LATEST_MS).toEqual([1, 1, 2])
    wire.cut()
    await subscribed(client, 5, before)
    expect(wire.calls()).toBe(2)
    const begin = devnet.chain.head.number
    live(world)
    await expect.poll(() => ledger.logs.slice(1), LATEST_MS).toEqual(placesAbove(devnet, begin))
    await expect.poll(() => pending.results.length - 1, LATEST_MS).toBe(placesAbove(devnet, begin).length)
    await expect.poll(() => ledger.blocks.slice(2), LATEST_MS).toEqual(blocksAbove(devnet, begin))
    await client.getChainId()
    expect(ledger.logs.slice(1)).toEqual(placesAbove(devnet, begin))
  })

  it('is refused in words for what there is none of, and its other subscriptions go on', async () => {
    const world = await openWorld(ample)
    const client = viemSocket(doorOf(world.relay))
    const pending = await heardOn(client, ['pendingLogs', {}])
    await expect(heardOn(client, ['newPendingTransactions'])).rejects.toMatchObject({ code: -32602 })
    transfer(world)
    await expect.poll(() => pending.results, LATEST_MS).toHaveLength(1)
  })

  it('keeps its connection alive with a question that nobody answers, and stays', async () => {
    const world = await openWorld(ample)
    const client = viemSocket(doorOf(world.relay), { keepAlive: { interval: 10 } })
    const pending = await heardOn(client, ['pendingLogs', {}])
    const { socket } = await client.transport.getRpcClient()
    const answers: unknown[] = []
    socket.addEventListener('message', ({ data }) => answers.push(JSON.parse(String(data))))
    await expect.poll(() => answers.length, LATEST_MS).toBeGreaterThan(20)
    expect(answers[0]).toMatchObject({ id: null, error: { code: -32601 } })
    transfer(world)
    await expect.poll(() => pending.results, LATEST_MS).toHaveLength(1)
    expect((await client.transport.getRpcClient()).socket).toBe(socket)
  })
})
