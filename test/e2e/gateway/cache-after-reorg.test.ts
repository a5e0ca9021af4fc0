import { describe, expect, it } from 'vitest'
import type { DevnetBlock } from '../../../src/devnet/chain/block.ts'
import { digest } from '../../../src/devnet/chain/hex.ts'
import type { Devnet } from '../../../src/devnet/devnet.ts'
import type { Faults } from '../../../src/devnet/faults/faults.ts'
import { nodeEndpoint, relayEndpoint, waitForSameChain } from '../../support/rpc-scenarios.ts'
import { listenToAll, openDevnet, openRelayFor, type TestStack, transfer } from '../../support/test-stack.ts'
import { rpcCall } from '../../unit/devnet/devnet-client.ts'
import { throughRelay } from './node-and-gateway.ts'
import { highLimits, RpcTestClient } from './rpc-test-client.ts'

type RpcQuery = readonly [method: string, ...params: unknown[]]
const hex = (number: number) => `0x${number.toString(16)}`

/** What a reorganisation changes: of the head, of a block by its number and by its hash, and of what is pre-confirmed. */
function affectedQueries(devnet: Devnet, { number, hash }: DevnetBlock): readonly RpcQuery[] {
  const { custodian } = devnet
  const address = devnet.list.addressOf('AAPLc')
  return [
    ['eth_blockNumber'],
    ['eth_getBlockByNumber', 'latest', false],
    ['eth_getBlockByNumber', 'pending', false],
    ['eth_getBlockByNumber', hex(number), true],
    ['eth_getTransactionCount', custodian, hex(number)],
    ['eth_getTransactionCount', custodian, { blockHash: hash }],
    ['eth_getTransactionCount', custodian, 'latest'],
    ['eth_getTransactionCount', custodian, 'pending'],
    ['eth_getLogs', { address, blockHash: hash }],
    ['eth_getLogs', { address, fromBlock: hex(number), toBlock: hex(number) }],
    ['eth_getLogs', { address, fromBlock: hex(number - 20), toBlock: 'latest' }],
  ]
}

/** What a door says to all of them, each in a line. */
const answersTo = (door: Devnet, asked: readonly RpcQuery[]): Promise<readonly string[]> =>
  Promise.all(
    asked.map(async (one) => {
      const { result, error } = await rpcCall(door, ...one)
      return `${JSON.stringify(one)}: ${digest(JSON.stringify([result, error]))}`
    }),
  )

/** A relay that is pushed what it may be pushed, and one who hears of its heads. */
async function openRelayWithHeads(settings: Record<string, string>, weather: Partial<Faults>) {
  const devnet = await openDevnet()
  Object.assign(devnet.faults, weather)
  const relay = await openRelayFor(devnet, { ...highLimits, ...settings })
  const stack: TestStack = { devnet, relay }
  await waitForSameChain(relayEndpoint(relay), nodeEndpoint(devnet))
  const heads = await (await RpcTestClient.open(stack)).subscribe('newHeads')
  const hashes = () => heads.results.map((head) => (head as { hash: string }).hash)
  const waitForHead = async ({ hash }: Pick<DevnetBlock, 'hash'>) => {
    for (let count = heads.results.length; !hashes().includes(hash); count += 1) await heads.waitForResults(count)
  }
  /** Puts two movements into a block of its own, of which the first one's hash is given. */
  const seal = async () => {
    const first = devnet.transfer({ symbol: 'AAPLc', raw: 1n })
    transfer(stack)
    const block = devnet.seal()
    await waitForHead(block)
    return { first, block }
  }
  return { devnet, node: throughRelay(devnet, relay), world: stack, hears: waitForHead, seal }
}

describe('a reorganisation makes every answer new as soon as it is heard of', () => {
  const ways: [string, Record<string, string>, Partial<Faults>][] = [
    ['by a head of the same height', {}, {}],
    ['by logs that are taken back', {}, { refused: ['pendingLogs'], silent: ['newHeads'] }],
    ['by polling, without a socket', { UPSTREAM_WS_URL: '' }, {}],
    ['by polling, where nothing is pre-confirmed', { UPSTREAM_WS_URL: '' }, { pending: 'latest' }],
  ]

  it.each(ways)('%s', async (_, settings, weather) => {
    const { devnet, node, hears, seal } = await openRelayWithHeads(settings, weather)
    for (const depth of [1, 2]) {
      const { first, block } = await seal()
      if (depth > 1) await seal()
      const asked = affectedQueries(devnet, block)
      const before = await answersTo(devnet, asked)
      // Twice, the second time from memory.
      for (let time = 0; time < 2; time += 1) expect(await answersTo(node, asked)).toEqual(before)
      const others = devnet.reorg(depth, [first])
      for (const other of others) await hears(other)
      const after = await answersTo(devnet, asked)
      expect(after).not.toEqual(before)
      expect(await answersTo(node, asked)).toEqual(after)
    }
  })

  it('while questions are under way, and while heads come fast', async () => {
    const { devnet, node, hears, seal } = await openRelayWithHeads({}, {})
    for (let round = 0; round < 10; round += 1) {
      const { first, block } = await seal()
      const asked = affectedQueries(devnet, block)
      await answersTo(node, asked)
      devnet.faults.delayMs = 50
      const under = answersTo(node, asked)
      const [other] = devnet.reorg(1, [first])
      devnet.seal()
      devnet.faults.delayMs = 0
      await under
      if (other) await hears(other)
      await hears(devnet.chain.head)
      expect(await answersTo(node, asked)).toEqual(await answersTo(devnet, asked))
    }
  })

  it('though the block that it replaces could not be settled before', async () => {
    const { devnet, node, world, hears, seal } = await openRelayWithHeads({}, {})
    const received = await listenToAll(world)
    devnet.faults.missingByHash = 6
    const { first, block } = await seal()
    const asked = affectedQueries(devnet, block)
    expect(await answersTo(node, asked.slice(0, 5))).toEqual(await answersTo(devnet, asked.slice(0, 5)))
    const [other] = devnet.reorg(1, [first])
    devnet.faults.clear()
    await received.waitFor('seal', (one) => one.block.hash === other?.hash)
    expect(await answersTo(node, asked)).toEqual(await answersTo(devnet, asked))
    // Nor does what was asked of the former block come back with the next one.
    devnet.seal()
    await hears(devnet.chain.head)
    expect(await answersTo(node, asked)).toEqual(await answersTo(devnet, asked))
  })
})
