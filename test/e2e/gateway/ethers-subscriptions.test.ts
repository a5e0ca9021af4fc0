import type { JsonRpcApiProvider, Log } from 'ethers'
import { describe, expect, it } from 'vitest'
import type { Devnet } from '../../../src/devnet/devnet.ts'
import { ethersProviderFor } from '../../support/ethers-client.ts'
import {
  blockHashesAbove,
  highRpcRate,
  logPosition,
  logPositionsAbove,
  logsAbove,
  nodeEndpoint,
  produceBlocks,
  relayEndpoint,
  WAIT_OPTIONS,
} from '../../support/rpc-scenarios.ts'
import { openTestStack, transfer } from '../../support/test-stack.ts'

const TRANSFER = '0xddf252ad1be2c89b69c2b068fc378daa952ba7f163c4a11628f55a4df523b3ef'

/** Listens to all that ethers can be listened to; what was heard, and what was answered, by method. */
async function listenToEverything(provider: JsonRpcApiProvider, devnet: Devnet) {
  const received = { blocks: [] as number[], transfers: [] as string[], ofOne: [] as string[], errors: [] as unknown[] }
  const asked = new Map<unknown, string>()
  const answered: string[] = []
  await provider.on('debug', ({ action, payload, result }) => {
    for (const { id, method } of [payload ?? []].flat()) asked.set(id, method)
    if (action === 'receiveRpcResult')
      for (const { id, error } of [result].flat()) answered.push(`${asked.get(id)}${error ? ' refused' : ''}`)
  })
  await provider.on('error', (failure) => received.errors.push(failure))
  await provider.on('block', (number: number) => received.blocks.push(number))
  await provider.on({ topics: [TRANSFER] }, (log: Log) => received.transfers.push(logPositionOf(log)))
  await provider.on({ address: devnet.list.addressOf('AAPLc') }, (log: Log) => received.ofOne.push(logPositionOf(log)))
  return { heard: received, count: (method: string) => answered.filter((one) => one === method).length }
}

const logPositionOf = ({ blockHash, index, removed }: Log) =>
  `${logPosition({ blockHash, logIndex: index })}${removed ? ' removed' : ''}`

const expectedEvents = (devnet: Devnet, after: number) => ({
  blocks: blockHashesAbove(devnet, after).map((_, at) => after + 1 + at),
  transfers: logPositionsAbove(devnet, after),
  ofOne: logPositionsAbove(devnet, after, 'AAPLc'),
  errors: [],
})

describe('ethers that listens', () => {
  it('over webSocket hears every block and every event: each once and in order', async () => {
    const stack = await openTestStack(highRpcRate)
    const { devnet, relay } = stack
    const begin = devnet.chain.head.number
    const provider = ethersProviderFor(relayEndpoint(relay), 'webSocket')
    const { heard, count } = await listenToEverything(provider, devnet)
    await expect.poll(() => count('eth_subscribe'), WAIT_OPTIONS).toBe(3)
    produceBlocks(stack)
    await expect.poll(() => heard, WAIT_OPTIONS).toEqual(expectedEvents(devnet, begin))
    produceBlocks(stack)
    await expect.poll(() => heard, WAIT_OPTIONS).toEqual(expectedEvents(devnet, begin))
    await provider.send('eth_chainId', [])
    expect(heard).toEqual(expectedEvents(devnet, begin))
  })

  it('over webSocket hears of a reorganisation what it hears from the node itself', async () => {
    const stack = await openTestStack(highRpcRate)
    const { devnet, relay } = stack
    const begin = devnet.chain.head.number
    const [ours, theirs] = [relayEndpoint(relay), nodeEndpoint(devnet)].map((door) =>
      ethersProviderFor(door, 'webSocket'),
    )
    if (!ours || !theirs) throw new Error('unreachable')
    const [own, direct] = [await listenToEverything(ours, devnet), await listenToEverything(theirs, devnet)]
    await expect.poll(() => [own, direct].map(({ count }) => count('eth_subscribe')), WAIT_OPTIONS).toEqual([3, 3])
    produceBlocks(stack)
    await expect.poll(() => own.heard, WAIT_OPTIONS).toEqual(expectedEvents(devnet, begin))
    devnet.reorg(
      1,
      logsAbove(devnet, begin)
        .slice(-1)
        .map(({ transactionHash }) => transactionHash),
    )
    devnet.seal()
    await expect.poll(() => direct.heard.blocks, WAIT_OPTIONS).toContain(devnet.chain.head.number)
    await expect.poll(() => own.heard, WAIT_OPTIONS).toEqual(direct.heard)
  })

  it('over http, where no node filters for it, hears the same by asking', async () => {
    const stack = await openTestStack(highRpcRate)
    const { devnet, relay } = stack
    const provider = ethersProviderFor(relayEndpoint(relay), 'http')
    const begin = devnet.chain.head.number
    const { heard, count } = await listenToEverything(provider, devnet)
    await expect.poll(() => count('eth_newFilter refused'), WAIT_OPTIONS).toBe(2)
    // It counts from the block that it is told after that.
    const soFar = count('eth_blockNumber')
    await expect.poll(() => count('eth_blockNumber') - soFar, WAIT_OPTIONS).toBeGreaterThan(3)
    for (const times of [1, 3, 2]) {
      transfer(stack, 'AAPLc', times)
      transfer(stack, 'TSLAc', times)
      devnet.seal()
      await expect.poll(() => heard, WAIT_OPTIONS).toEqual(expectedEvents(devnet, begin))
    }
    expect(count('eth_getFilterChanges')).toBe(0)
  })

  it('over webSocket unsubscribes when nobody listens any more, and goes on asking', async () => {
    const stack = await openTestStack(highRpcRate)
    const { devnet, relay } = stack
    const provider = ethersProviderFor(relayEndpoint(relay), 'webSocket')
    const { heard, count } = await listenToEverything(provider, devnet)
    await expect.poll(() => count('eth_subscribe'), WAIT_OPTIONS).toBe(3)
    for (const event of ['block', { topics: [TRANSFER] }, { address: devnet.list.addressOf('AAPLc') }])
      await provider.removeAllListeners(event)
    await expect.poll(() => count('eth_unsubscribe'), WAIT_OPTIONS).toBe(3)
    produceBlocks(stack)
    await expect.poll(() => provider.getBlockNumber(), WAIT_OPTIONS).toBe(devnet.chain.head.number)
    expect(heard).toEqual({ blocks: [], transfers: [], ofOne: [], errors: [] })
  })
})
