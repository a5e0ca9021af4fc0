import { expect, it } from 'vitest'
import type { DevnetBlock } from '../../../src/devnet/chain/chain-types.ts'
import { digest } from '../../../src/devnet/chain/hashes.ts'
import type { Devnet } from '../../../src/devnet/devnet.ts'
import { openTestStack, transfer } from '../../support/test-stack.ts'
import { rpcCall } from '../../unit/devnet/devnet-client.ts'
import { highLimits, quantity, throughRelay } from './node-and-gateway.ts'
import { RpcTestClient } from './rpc-test-client.ts'

/** Calls that the test sends at once, and the clients that send them. */
const [CALLERS, CLIENTS] = [1_000, 20]

type RpcQuery = readonly [method: string, ...params: unknown[]]

it('a thousand equal requests at once cost one request per head at the latest block, and one in all at a sealed block', async () => {
  const stack = await openTestStack(highLimits)
  const { devnet } = stack
  const clients = await Promise.all(Array.from({ length: CLIENTS }, () => RpcTestClient.open(stack)))
  const askAtOnce = async ([method, ...params]: RpcQuery) => {
    const answers = Array.from({ length: CALLERS }, (_, n) => clients[n % CLIENTS]?.call(method, ...params))
    return new Set((await Promise.all(answers)).map((answer) => answer?.result))
  }
  const sealed: RpcQuery = ['eth_getCode', devnet.list.addressOf('AAPLc'), quantity(devnet.chain.head.number)]
  const latest: RpcQuery = ['eth_getTransactionCount', devnet.custodian, 'latest']
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

/** Requests whose answers a reorganisation of a block changes. */
function affectedQueries(devnet: Devnet, { number, hash }: DevnetBlock): readonly RpcQuery[] {
  const address = devnet.list.addressOf('AAPLc')
  return [
    ['eth_blockNumber'],
    ...['latest', 'pending', quantity(number)].map((at): RpcQuery => ['eth_getBlockByNumber', at, true]),
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

it('a reorganisation invalidates cached answers, though requests are under way and heads follow each other fast', async () => {
  const stack = await openTestStack(highLimits)
  const { devnet, relay } = stack
  const node = throughRelay(devnet, relay)
  const heads = await (await RpcTestClient.open(stack)).subscribe('newHeads')
  const hasHead = ({ hash }: DevnetBlock) => heads.results.some((head) => (head as { hash: string }).hash === hash)
  for (let round = 0; round < 10; round += 1) {
    const first = devnet.transfer({ symbol: 'AAPLc', raw: 1n })
    transfer(stack)
    const block = devnet.seal()
    await expect.poll(() => hasHead(block)).toBe(true)
    const queries = affectedQueries(devnet, block)
    const before = await answersOf(devnet, queries)
    // The second time they come from the cache.
    for (let time = 0; time < 2; time += 1) expect(await answersOf(node, queries)).toEqual(before)
    devnet.faults.delayMs = 50
    const underWay = answersOf(node, queries)
    const [replacement = block] = devnet.reorg(1, [first])
    const next = devnet.seal()
    devnet.faults.delayMs = 0
    await underWay
    await expect.poll(() => hasHead(replacement) && hasHead(next)).toBe(true)
    expect(await answersOf(node, queries)).toEqual(await answersOf(devnet, queries))
  }
})
