import type { Log } from 'ethers'
import { describe, expect, it, vi } from 'vitest'
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
  type RpcEndpoint,
  relayEndpoint,
} from '../../support/rpc-scenarios.ts'
import { openTestStack, transfer } from '../../support/test-stack.ts'

const TRANSFER = '0xddf252ad1be2c89b69c2b068fc378daa952ba7f163c4a11628f55a4df523b3ef'

const logPositionOf = ({ blockHash, index, removed }: Log) =>
  `${logPosition({ blockHash, logIndex: index })}${removed ? ' removed' : ''}`

/** Subscribes to all that ethers offers; what it receives, and how often a method was answered. */
async function subscribeToAll(endpoint: RpcEndpoint, devnet: Devnet, transport: 'http' | 'webSocket' = 'webSocket') {
  const provider = ethersProviderFor(endpoint, transport)
  const received = { blocks: [] as number[], transfers: [] as string[], ofToken: [] as string[], errors: [] as unknown[] }
  const methodById = new Map<unknown, string>()
  const answered: string[] = []
  await provider.on('debug', ({ action, payload, result }) => {
    for (const { id, method } of [payload ?? []].flat()) methodById.set(id, method)
    if (action === 'receiveRpcResult')
      for (const { id, error } of [result].flat()) answered.push(`${methodById.get(id)}${error ? ' refused' : ''}`)
  })
  const ofToken = { address: devnet.list.addressOf('AAPLc') }
  await provider.on('error', (failure) => received.errors.push(failure))
  await provider.on('block', (number: number) => received.blocks.push(number))
  await provider.on({ topics: [TRANSFER] }, (log: Log) => received.transfers.push(logPositionOf(log)))
  await provider.on(ofToken, (log: Log) => received.ofToken.push(logPositionOf(log)))
  const count = (method: string) => answered.filter((answer) => answer === method).length
  if (transport === 'webSocket') await expect.poll(() => count('eth_subscribe')).toBe(3)
  // Until ethers knows the chain, it throws for each log that arrives.
  await vi.waitFor(() => provider._network)
  return { provider, received, count, events: ['block', { topics: [TRANSFER] }, ofToken] }
}

const expectedEvents = (devnet: Devnet, after: number) => ({
  blocks: blockHashesAbove(devnet, after).map((_, at) => after + 1 + at),
  transfers: logPositionsAbove(devnet, after),
  ofToken: logPositionsAbove(devnet, after, 'AAPLc'),
  errors: [],
})

async function open() {
  const stack = await openTestStack(highRpcRate)
  const { devnet, relay } = stack
  return { stack, devnet, begin: devnet.chain.head.number, endpoint: relayEndpoint(relay) }
}

describe('ethers that subscribes', () => {
  it('receives every block and event once and in order, over webSocket', async () => {
    const { stack, devnet, begin, endpoint } = await open()
    const { provider, received } = await subscribeToAll(endpoint, devnet)
    for (let round = 0; round < 2; round += 1) {
      produceBlocks(stack)
      await expect.poll(() => received).toEqual(expectedEvents(devnet, begin))
    }
    await provider.send('eth_chainId', [])
    expect(received).toEqual(expectedEvents(devnet, begin))
  })

  it('receives the same about a reorganisation as from the node, over webSocket', async () => {
    const { stack, devnet, begin, endpoint } = await open()
    const ours = await subscribeToAll(endpoint, devnet)
    const direct = await subscribeToAll(nodeEndpoint(devnet), devnet)
    produceBlocks(stack)
    await expect.poll(() => ours.received).toEqual(expectedEvents(devnet, begin))
    const [last] = logsAbove(devnet, begin).slice(-1)
    devnet.reorg(1, last ? [last.transactionHash] : [])
    devnet.seal()
    await expect.poll(() => direct.received.blocks).toContain(devnet.chain.head.number)
    await expect.poll(() => ours.received).toEqual(direct.received)
  })

  it('polls over http, where the relay refuses filters, and receives the same', async () => {
    const { stack, devnet, begin, endpoint } = await open()
    const { received, count } = await subscribeToAll(endpoint, devnet, 'http')
    await expect.poll(() => count('eth_newFilter refused')).toBe(2)
    // Ethers starts at the block number that it reads after the refusal.
    const before = count('eth_blockNumber')
    await expect.poll(() => count('eth_blockNumber') - before).toBeGreaterThan(3)
    for (const times of [1, 3, 2]) {
      transfer(stack, 'AAPLc', times)
      transfer(stack, 'TSLAc', times)
      devnet.seal()
      await expect.poll(() => received).toEqual(expectedEvents(devnet, begin))
    }
    expect(count('eth_getFilterChanges')).toBe(0)
  })

  it('unsubscribes with its last listener, over webSocket, and can still read', async () => {
    const { stack, devnet, endpoint } = await open()
    const { provider, received, count, events } = await subscribeToAll(endpoint, devnet)
    for (const event of events) await provider.removeAllListeners(event)
    await expect.poll(() => count('eth_unsubscribe')).toBe(3)
    produceBlocks(stack)
    await expect.poll(() => provider.getBlockNumber()).toBe(devnet.chain.head.number)
    expect(received).toEqual({ blocks: [], transfers: [], ofToken: [], errors: [] })
  })
})
