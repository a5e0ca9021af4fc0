import type { JsonRpcApiProvider, Log } from 'ethers'
import { describe, expect, it } from 'vitest'
import type { Devnet } from '../../../src/devnet/devnet.ts'
import { ethersOn } from '../../support/ethers-client.ts'
import {
  ample,
  blocksAbove,
  doorOf,
  LATEST_MS,
  live,
  logsAbove,
  nodeOf,
  placeOf,
  placesAbove,
} from '../../support/rpc-scenarios.ts'
import { openWorld, transfer } from '../../support/test-stack.ts'

const TRANSFER = '0xddf252ad1be2c89b69c2b068fc378daa952ba7f163c4a11628f55a4df523b3ef'

/** Listens to all that ethers can be listened to; what was heard, and what was answered, by method. */
async function listenAll(provider: JsonRpcApiProvider, devnet: Devnet) {
  const heard = { blocks: [] as number[], transfers: [] as string[], ofOne: [] as string[], errors: [] as unknown[] }
  const asked = new Map<unknown, string>()
  const answered: string[] = []
  await provider.on('debug', ({ action, payload, result }) => {
    for (const { id, method } of [payload ?? []].flat()) asked.set(id, method)
    if (action === 'receiveRpcResult')
      for (const { id, error } of [result].flat()) answered.push(`${asked.get(id)}${error ? ' refused' : ''}`)
  })
  await provider.on('error', (failure) => heard.errors.push(failure))
  await provider.on('block', (number: number) => heard.blocks.push(number))
  await provider.on({ topics: [TRANSFER] }, (log: Log) => heard.transfers.push(toldOf(log)))
  await provider.on({ address: devnet.list.addressOf('AAPLc') }, (log: Log) => heard.ofOne.push(toldOf(log)))
  return { heard, count: (method: string) => answered.filter((one) => one === method).length }
}

const toldOf = ({ blockHash, index, removed }: Log) =>
  `${placeOf({ blockHash, logIndex: index })}${removed ? ' removed' : ''}`

const truthOf = (devnet: Devnet, after: number) => ({
  blocks: blocksAbove(devnet, after).map((_, at) => after + 1 + at),
  transfers: placesAbove(devnet, after),
  ofOne: placesAbove(devnet, after, 'AAPLc'),
  errors: [],
})

describe('ethers that listens', () => {
  it('over webSocket hears every block and every event: each once and in order', async () => {
    const world = await openWorld(ample)
    const { devnet, relay } = world
    const begin = devnet.chain.head.number
    const provider = ethersOn(doorOf(relay), 'webSocket')
    const { heard, count } = await listenAll(provider, devnet)
    await expect.poll(() => count('eth_subscribe'), LATEST_MS).toBe(3)
    live(world)
    await expect.poll(() => heard, LATEST_MS).toEqual(truthOf(devnet, begin))
    live(world)
    await expect.poll(() => heard, LATEST_MS).toEqual(truthOf(devnet, begin))
    await provider.send('eth_chainId', [])
    expect(heard).toEqual(truthOf(devnet, begin))
  })

  it('over webSocket hears of a reorganisation what it hears from the node itself', async () => {
    const world = await openWorld(ample)
    const { devnet, relay } = world
    const begin = devnet.chain.head.number
    const [ours, theirs] = [doorOf(relay), nodeOf(devnet)].map((door) => ethersOn(door, 'webSocket'))
    if (!ours || !theirs) throw new Error('unreachable')
    const [own, direct] = [await listenAll(ours, devnet), await listenAll(theirs, devnet)]
    await expect.poll(() => [own, direct].map(({ count }) => count('eth_subscribe')), LATEST_MS).toEqual([3, 3])
    live(world)
    await expect.poll(() => own.heard, LATEST_MS).toEqual(truthOf(devnet, begin))
    devnet.reorg(
      1,
      logsAbove(devnet, begin)
        .slice(-1)
        .map(({ transactionHash }) => transactionHash),
    )
    devnet.seal()
    await expect.poll(() => direct.heard.blocks, LATEST_MS).toContain(devnet.chain.head.number)
    await expect.poll(() => own.heard, LATEST_MS).toEqual(direct.heard)
  })

  it('over http, where no node filters for it, hears the same by asking', async () => {
    const world = await openWorld(ample)
    const { devnet, relay } = world
    const provider = ethersOn(doorOf(relay), 'http')
    const begin = devnet.chain.head.number
    const { heard, count } = await listenAll(provider, devnet)
    await expect.poll(() => count('eth_newFilter refused'), LATEST_MS).toBe(2)
    // It counts from the block that it is told after that.
    const soFar = count('eth_blockNumber')
    await expect.poll(() => count('eth_blockNumber') - soFar, LATEST_MS).toBeGreaterThan(3)
    for (const times of [1, 3, 2]) {
      transfer(world, 'AAPLc', times)
      transfer(world, 'TSLAc', times)
      devnet.seal()
      await expect.poll(() => heard, LATEST_MS).toEqual(truthOf(devnet, begin))
    }
    expect(count('eth_getFilterChanges')).toBe(0)
  })

  it('over webSocket unsubscribes when nobody listens any more, and goes on asking', async () => {
    const world = await openWorld(ample)
    const { devnet, relay } = world
    const provider = ethersOn(doorOf(relay), 'webSocket')
    const { heard, count } = await listenAll(provider, devnet)
    await expect.poll(() => count('eth_subscribe'), LATEST_MS).toBe(3)
    for (const event of ['block', { topics: [TRANSFER] }, { address: devnet.list.addressOf('AAPLc') }])
      await provider.removeAllListeners(event)
    await expect.poll(() => count('eth_unsubscribe'), LATEST_MS).toBe(3)
    live(world)
    await expect.poll(() => provider.getBlockNumber(), LATEST_MS).toBe(devnet.chain.head.number)
    expect(heard).toEqual({ blocks: [], transfers: [], ofOne: [], errors: [] })
  })
})
