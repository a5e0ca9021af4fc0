import { describe, expect, it } from 'vitest'
import type { DevnetBlock } from '../../../src/devnet/chain/chain-types.ts'
import { digest } from '../../../src/devnet/chain/hashes.ts'
import type { Devnet } from '../../../src/devnet/devnet.ts'
import type { Faults } from '../../../src/devnet/faults/faults.ts'
import { nodeEndpoint, relayEndpoint, waitForSameChain } from '../../support/rpc-scenarios.ts'
import { listenToAll, openDevnet, openRelayFor, openTestStack, type TestStack, transfer } from '../../support/test-stack.ts'
import { rpcCall } from '../../unit/devnet/devnet-client.ts'
import { highLimits, quantity, throughRelay } from './node-and-gateway.ts'
import { RpcTestClient } from './rpc-test-client.ts'

/** How long the relay reuses an answer about the pending state. */
const REFRESH_MS = 200
const CALLERS = 1_000

type RpcQuery = readonly [method: string, ...params: unknown[]]

const nonceAt = (devnet: Devnet, tag: string): RpcQuery => ['eth_getTransactionCount', devnet.custodian, tag]

/** A stack and twenty clients; each query is sent a thousand times at once, and all results are collected. */
async function openCrowd() {
  const stack = await openTestStack(highLimits)
  const clients = await Promise.all(Array.from({ length: 20 }, () => RpcTestClient.open(stack)))
  const askAtOnce = async ([method, ...params]: RpcQuery) => {
    const answers = Array.from({ length: CALLERS }, (_, n) => clients[n % clients.length]?.call(method, ...params))
    return new Set((await Promise.all(answers)).map((answer) => answer?.result))
  }
  return { stack, ...stack, clients, askAtOnce }
}

describe('a thousand equal requests at once', () => {
  it('cost one request per refresh where they ask for the pending state', async () => {
    const { stack, devnet, askAtOnce } = await openCrowd()
    const received = await listenToAll(stack)
    const nonce = nonceAt(devnet, 'pending')
    for (let round = 1; round <= 5; round += 1) {
      transfer(stack)
      await received.until(() => received.messagesOf('transfer').length === round)
      const { result } = await rpcCall(devnet, ...nonce)
      const [before, begin] = [devnet.requests.eth_getTransactionCount, performance.now()]
      expect(await askAtOnce(nonce)).toEqual(new Set([result]))
      const refreshes = 1 + Math.floor((performance.now() - begin) / REFRESH_MS)
      const requestCount = devnet.requests.eth_getTransactionCount - before
      expect(requestCount).toBeGreaterThan(0)
      expect(requestCount).toBeLessThanOrEqual(refreshes)
    }
  })

  it('cost one request per head at the latest block, and one in all at a sealed block', async () => {
    const { stack, devnet, clients, askAtOnce } = await openCrowd()
    const sealed: RpcQuery = ['eth_getCode', devnet.list.addressOf('AAPLc'), quantity(devnet.chain.head.number)]
    const latest = nonceAt(devnet, 'latest')
    const heads = await clients[0]?.subscribe('newHeads')
    for (let head = 1; head <= 3; head += 1) {
      transfer(stack)
      devnet.seal()
      await heads?.waitForResults(head)
      const before = devnet.requests.eth_getTransactionCount
      const { result } = await rpcCall(devnet, ...latest)
      expect(await askAtOnce(latest)).toEqual(new Set([result]))
      expect((await askAtOnce(sealed)).size).toBe(1)
      // The test itself asked once.
      expect(devnet.requests.eth_getTransactionCount - before - 1).toBe(1)
    }
    expect(devnet.requests.eth_getCode).toBe(1)
    const metrics = await (await fetch(`${stack.relay.url}/metrics`)).text()
    expect(metrics).toContain('stocktape_rpc_forwarded_total{method="eth_getCode"} 1\n')
  })

  it('cost less than one request per log while the logs of a busy block arrive', async () => {
    const { stack, devnet, askAtOnce } = await openCrowd()
    const received = await listenToAll(stack)
    const nonce = nonceAt(devnet, 'pending')
    await askAtOnce(nonce)
    const [before, begin] = [devnet.requests.eth_getTransactionCount, performance.now()]
    transfer(stack, 'AAPLc', 200)
    while (received.messagesOf('transfer').length < 200) await askAtOnce(nonce)
    // Logs that arrive in one turn of the event loop are one change; those of a flashblock take a few turns.
    const refreshes = 2 + Math.floor((performance.now() - begin) / REFRESH_MS)
    expect(devnet.requests.eth_getTransactionCount - before).toBeLessThanOrEqual(refreshes + 200 / 4)
    expect((await askAtOnce(nonce)).size).toBe(1)
  })
})

/** Requests whose answers a reorganisation of a block changes. */
function affectedQueries(devnet: Devnet, { number, hash }: DevnetBlock): readonly RpcQuery[] {
  const address = devnet.list.addressOf('AAPLc')
  return [
    ['eth_blockNumber'],
    ['eth_getBlockByNumber', 'latest', false],
    ['eth_getBlockByNumber', 'pending', false],
    ['eth_getBlockByNumber', quantity(number), true],
    ...[quantity(number), { blockHash: hash }, 'latest', 'pending'].map(
      (at): RpcQuery => ['eth_getTransactionCount', devnet.custodian, at],
    ),
    ['eth_getLogs', { address, blockHash: hash }],
    ['eth_getLogs', { address, fromBlock: quantity(number), toBlock: quantity(number) }],
    ['eth_getLogs', { address, fromBlock: quantity(number - 20), toBlock: 'latest' }],
  ]
}

const answersOf = (node: Devnet, queries: readonly RpcQuery[]): Promise<readonly string[]> =>
  Promise.all(
    queries.map(async (query) => {
      const { result, error } = await rpcCall(node, ...query)
      return `${JSON.stringify(query)}: ${digest(JSON.stringify([result, error]))}`
    }),
  )

/** A relay on a devnet with faults, and a client that follows its heads. */
async function openRelayWithHeads(settings: Record<string, string> = {}, faults: Partial<Faults> = {}) {
  const devnet = await openDevnet()
  Object.assign(devnet.faults, faults)
  const relay = await openRelayFor(devnet, { ...highLimits, ...settings })
  const stack: TestStack = { devnet, relay }
  await waitForSameChain(relayEndpoint(relay), nodeEndpoint(devnet))
  const heads = await (await RpcTestClient.open(stack)).subscribe('newHeads')
  const hashes = () => heads.results.map((head) => (head as { hash: string }).hash)
  const waitForHead = async ({ hash }: Pick<DevnetBlock, 'hash'>) => {
    for (let count = heads.results.length; !hashes().includes(hash); count += 1) await heads.waitForResults(count)
  }
  /** Seals a block of two transfers; the block and the hash of the first. */
  const seal = async () => {
    const first = devnet.transfer({ symbol: 'AAPLc', raw: 1n })
    transfer(stack)
    const block = devnet.seal()
    await waitForHead(block)
    return { first, block }
  }
  return { devnet, node: throughRelay(devnet, relay), stack, waitForHead, seal }
}

describe('a reorganisation invalidates cached answers', () => {
  it.each<[string, Record<string, string>, Partial<Faults>]>([
    ['by a head of the same height', {}, {}],
    ['by removed logs', {}, { refused: ['pendingLogs'], silent: ['newHeads'] }],
    ['by polling, without a socket', { UPSTREAM_WS_URL: '' }, {}],
    ['by polling, where nothing is pre-confirmed', { UPSTREAM_WS_URL: '' }, { pending: 'latest' }],
  ])('when the relay learns of it %s', async (_, settings, faults) => {
    const { devnet, node, waitForHead, seal } = await openRelayWithHeads(settings, faults)
    for (const depth of [1, 2]) {
      const { first, block } = await seal()
      if (depth > 1) await seal()
      const queries = affectedQueries(devnet, block)
      const before = await answersOf(devnet, queries)
      // The second time they come from the cache.
      for (let time = 0; time < 2; time += 1) expect(await answersOf(node, queries)).toEqual(before)
      for (const replacement of devnet.reorg(depth, [first])) await waitForHead(replacement)
      const after = await answersOf(devnet, queries)
      expect(after).not.toEqual(before)
      expect(await answersOf(node, queries)).toEqual(after)
    }
  })

  it('while requests are under way and heads follow each other fast', async () => {
    const { devnet, node, waitForHead, seal } = await openRelayWithHeads()
    for (let round = 0; round < 10; round += 1) {
      const { first, block } = await seal()
      const queries = affectedQueries(devnet, block)
      await answersOf(node, queries)
      devnet.faults.delayMs = 50
      const underWay = answersOf(node, queries)
      const [replacement] = devnet.reorg(1, [first])
      devnet.seal()
      devnet.faults.delayMs = 0
      await underWay
      if (replacement) await waitForHead(replacement)
      await waitForHead(devnet.chain.head)
      expect(await answersOf(node, queries)).toEqual(await answersOf(devnet, queries))
    }
  })

  it('though the replaced block was never settled', async () => {
    const { devnet, node, stack, waitForHead, seal } = await openRelayWithHeads()
    const received = await listenToAll(stack)
    devnet.faults.missingByHash = 6
    const { first, block } = await seal()
    const queries = affectedQueries(devnet, block)
    expect(await answersOf(node, queries.slice(0, 5))).toEqual(await answersOf(devnet, queries.slice(0, 5)))
    const [replacement] = devnet.reorg(1, [first])
    devnet.faults.clear()
    await received.waitFor('seal', (seal) => seal.block.hash === replacement?.hash)
    expect(await answersOf(node, queries)).toEqual(await answersOf(devnet, queries))
    // The next block does not bring back answers about the replaced one.
    devnet.seal()
    await waitForHead(devnet.chain.head)
    expect(await answersOf(node, queries)).toEqual(await answersOf(devnet, queries))
  })
})
