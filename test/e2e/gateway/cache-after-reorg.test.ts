import { describe, expect, it } from 'vitest'
import type { Block } from '../../../src/devnet/chain/block.ts'
import { digest } from '../../../src/devnet/chain/hex.ts'
import type { Devnet } from '../../../src/devnet/devnet.ts'
import type { Weather } from '../../../src/devnet/faults/faults.ts'
import { agreeing, doorOf, nodeOf } from '../../support/rpc-scenarios.ts'
import { hearAll, openDevnet, relayOn, transfer, type World } from '../../support/test-stack.ts'
import { ask } from '../../unit/devnet/devnet-client.ts'
import { through } from './node-and-gateway.ts'
import { generous, RpcEar } from './rpc-test-client.ts'

type Asking = readonly [method: string, ...params: unknown[]]
const hex = (number: number) => `0x${number.toString(16)}`

/** What a reorganisation changes: of the head, of a block by its number and by its hash, and of what is pre-confirmed. */
function questions(devnet: Devnet, { number, hash }: Block): readonly Asking[] {
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
const sayings = (door: Devnet, asked: readonly Asking[]): Promise<readonly string[]> =>
  Promise.all(
    asked.map(async (one) => {
      const { result, error } = await ask(door, ...one)
      return `${JSON.stringify(one)}: ${digest(JSON.stringify([result, error]))}`
    }),
  )

/** A relay that is pushed what it may be pushed, and one who hears of its heads. */
async function open(settings: Record<string, string>, weather: Partial<Weather>) {
  const devnet = await openDevnet()
  Object.assign(devnet.weather, weather)
  const relay = await relayOn(devnet, { ...generous, ...settings })
  const world: World = { devnet, relay }
  await agreeing(doorOf(relay), nodeOf(devnet))
  const heads = await (await RpcEar.open(world)).subscribe('newHeads')
  const hashes = () => heads.results.map((head) => (head as { hash: string }).hash)
  const hears = async ({ hash }: Pick<Block, 'hash'>) => {
    for (let count = heads.results.length; !hashes().includes(hash); count += 1) await heads.hear(count)
  }
  /** Puts two movements into a block of its own, of which the first one's hash is given. */
  const seal = async () => {
    const first = devnet.transfer({ symbol: 'AAPLc', raw: 1n })
    transfer(world)
    const block = devnet.seal()
    await hears(block)
    return { first, block }
  }
  return { devnet, node: through(devnet, relay), world, hears, seal }
}

describe('a reorganisation makes every answer new as soon as it is heard of', () => {
  const ways: [string, Record<string, string>, Partial<Weather>][] = [
    ['by a head of the same height', {}, {}],
    ['by logs that are taken back', {}, { refused: ['pendingLogs'], silent: ['newHeads'] }],
    ['by polling, without a socket', { UPSTREAM_WS_URL: '' }, {}],
    ['by polling, where nothing is pre-confirmed', { UPSTREAM_WS_URL: '' }, { pending: 'latest' }],
  ]

  it.each(ways)('%s', async (_, settings, weather) => {
    const { devnet, node, hears, seal } = await open(settings, weather)
    for (const depth of [1, 2]) {
      const { first, block } = await seal()
      if (depth > 1) await seal()
      const asked = questions(devnet, block)
      const before = await sayings(devnet, asked)
      // Twice, the second time from memory.
      for (let time = 0; time < 2; time += 1) expect(await sayings(node, asked)).toEqual(before)
      const others = devnet.reorg(depth, [first])
      for (const other of others) await hears(other)
      const after = await sayings(devnet, asked)
      expect(after).not.toEqual(before)
      expect(await sayings(node, asked)).toEqual(after)
    }
  })

  it('while questions are under way, and while heads come fast', async () => {
    const { devnet, node, hears, seal } = await open({}, {})
    for (let round = 0; round < 10; round += 1) {
      const { first, block } = await seal()
      const asked = questions(devnet, block)
      await sayings(node, asked)
      devnet.weather.delayMs = 50
      const under = sayings(node, asked)
      const [other] = devnet.reorg(1, [first])
      devnet.seal()
      devnet.weather.delayMs = 0
      await under
      if (other) await hears(other)
      await hears(devnet.chain.head)
      expect(await sayings(node, asked)).toEqual(await sayings(devnet, asked))
    }
  })

  it('though the block that it replaces could not be settled before', async () => {
    const { devnet, node, world, hears, seal } = await open({}, {})
    const heard = await hearAll(world)
    devnet.weather.missingByHash = 6
    const { first, block } = await seal()
    const asked = questions(devnet, block)
    expect(await sayings(node, asked.slice(0, 5))).toEqual(await sayings(devnet, asked.slice(0, 5)))
    const [other] = devnet.reorg(1, [first])
    devnet.weather.clear()
    await heard.hear('seal', (one) => one.block.hash === other?.hash)
    expect(await sayings(node, asked)).toEqual(await sayings(devnet, asked))
    // Nor does what was asked of the former block come back with the next one.
    devnet.seal()
    await hears(devnet.chain.head)
    expect(await sayings(node, asked)).toEqual(await sayings(devnet, asked))
  })
})
