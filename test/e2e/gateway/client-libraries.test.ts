import type { Log } from 'ethers'
import { createPublicClient, http, type PublicClient } from 'viem'
import { beforeAll, describe, expect, it, onTestFinished, vi } from 'vitest'
import type { Devnet } from '../../../src/devnet/devnet.ts'
import { ACCOUNTS, startAnvil } from '../../support/anvil-node.ts'
import { ethersProviderFor, ethersTransports, readWithEthers } from '../../support/ethers-client.ts'
import {
  blockHashesAbove,
  logPosition,
  logPositionsAbove,
  nodeEndpoint,
  openIdleStack,
  produceBlocks,
  type QuerySubject,
  type RpcEndpoint,
  relayEndpoint,
  unusedAddresses,
  waitForSameChain,
} from '../../support/rpc-scenarios.ts'
import { openTestStack, transfer } from '../../support/test-stack.ts'
import {
  outcomeOf,
  readWithViem,
  viemClientFor,
  viemTransports,
  viemWebSocketClient,
  waitForSubscriptions,
} from '../../support/viem-client.ts'
import { highLimits, openAnvilGateway } from './node-and-gateway.ts'

type Read = (subject: QuerySubject) => Promise<Readonly<Record<string, unknown>>>
type OpenReader = (endpoint: RpcEndpoint) => Read
const readers: readonly (readonly [name: string, open: OpenReader, balance: unknown])[] = [
  ...viemTransports.map((transport): [string, OpenReader, unknown] => [
    `viem over ${transport}`,
    (endpoint) => readWithViem.bind(null, viemClientFor(endpoint, transport)),
    expect.any(BigInt),
  ]),
  ...ethersTransports.map((transport): [string, OpenReader, unknown] => [
    `ethers over ${transport}`,
    (endpoint) => readWithEthers.bind(null, ethersProviderFor(endpoint, transport)),
    expect.stringMatching(/^\d+$/),
  ]),
]

const [, BOB] = ACCOUNTS
const NO_BLOCK = `0x${'ab'.repeat(32)}` as const
/** Enough blocks for `safe` and `finalized` to be among them. */
const BLOCKS = 80

beforeAll(async () => {
  // Compiles the token, so that no test waits for it.
  await (await startAnvil()).kill()
})

describe.each(readers)('%s', (_, open, balance) => {
  it('reads the same as from the node after each change of the chain, uncached and cached', async () => {
    const stack = await openIdleStack()
    const { devnet, relay, subject } = stack
    const [read, readDirectly] = [open(relayEndpoint(relay)), open(nodeEndpoint(devnet))]
    let before: unknown
    for (const change of [() => {}, () => transfer(stack), () => devnet.seal(), () => devnet.reorg(2)]) {
      change()
      await waitForSameChain(relayEndpoint(relay), nodeEndpoint(devnet))
      const expected = await readDirectly(subject)
      expect(expected['getBalance pending']).toMatchObject({ value: balance })
      expect(expected).not.toEqual(before)
      // An answer about the pending state may be 200 ms old.
      await expect.poll(() => read(subject)).toEqual(expected)
      expect(await read(subject)).toEqual(expected)
      before = expected
    }
  })

  it('reads the same as from a real node, before and after a transfer', async () => {
    const { anvil, relay, subject } = await openAnvilGateway(BLOCKS)
    const [read, readDirectly] = [open(relayEndpoint(relay)), open(nodeEndpoint(anvil))]
    for (const raw of [1n, 2n]) {
      // Fixes the time of the pending block, which would change every second.
      const { timestamp } = (await anvil.rpc('eth_getBlockByNumber', 'latest', false)) as { timestamp: string }
      await anvil.rpc('evm_setNextBlockTimestamp', Number(timestamp) + 1_000)
      await waitForSameChain(relayEndpoint(relay), nodeEndpoint(anvil))
      const expected = await readDirectly(subject)
      expect(expected['getLogs latest']).toMatchObject({ value: [{ removed: false }] })
      for (let time = 0; time < 2; time += 1) expect(await read(subject)).toEqual(expected)
      await anvil.send({ functionName: 'transfer', args: [BOB, raw] })
    }
  })
})

it.each<[string, (client: PublicClient, subject: QuerySubject) => Promise<unknown>]>([
  ['state above the head', (client, { account: address }) => client.getBalance({ address, blockNumber: 9_999n })],
  ['state of an unknown block', (client, { account }) => client.getBalance({ address: account, blockHash: NO_BLOCK })],
  ['logs of an unknown block', (client) => client.getLogs({ blockHash: NO_BLOCK })],
  ['logs above the head', (client) => client.getLogs({ fromBlock: 9_998n, toBlock: 9_999n })],
  ['an impossible number', (client, { account: address }) => client.getCode({ address, blockNumber: 2n ** 70n })],
])('viem gets the refusal of a real node: %s', async (_, ask) => {
  const { anvil, relay, subject } = await openAnvilGateway()
  // The relay asks over HTTP; over its socket this node words its refusals in another way.
  const expected = await outcomeOf(ask(viemClientFor(nodeEndpoint(anvil), 'http'), subject))
  expect(expected).toMatchObject({ code: expect.any(Number) })
  for (const transport of viemTransports)
    expect(await outcomeOf(ask(viemClientFor(relayEndpoint(relay), transport), subject))).toEqual(expected)
})

type ReadBalance = (address: `0x${string}`) => Promise<bigint>
const balanceReaders: readonly (readonly [name: string, open: (endpoint: RpcEndpoint) => ReadBalance])[] = [
  ...viemTransports.map((transport) => {
    const open = (endpoint: RpcEndpoint): ReadBalance => {
      const client = viemClientFor(endpoint, transport)
      return (address) => client.getBalance({ address })
    }
    return [`viem over ${transport}`, open] as const
  }),
  ...(['http', 'http one by one'] as const).map((transport) => {
    const open = (endpoint: RpcEndpoint): ReadBalance => {
      const provider = ethersProviderFor(endpoint, transport)
      return (address) => provider.getBalance(address)
    }
    return [`ethers over ${transport}`, open] as const
  }),
]

it.each(balanceReaders)('%s gets all answers in the end when it exceeds the rate', async (_, open) => {
  const { relay } = await openIdleStack({ RPC_RATE: '50' })
  const balanceOf = open(relayEndpoint(relay))
  const addresses = unusedAddresses(160)
  const read: bigint[] = []
  // Batches of 40: ethers repeats a whole batch, and asks for the chain with each balance.
  for (let at = 0; at < addresses.length; at += 40) read.push(...(await Promise.all(addresses.slice(at, at + 40).map(balanceOf))))
  expect(read).toEqual(Array(160).fill(0n))
})

it('a batch over the bound is refused with a sentence that viem and ethers pass on', async () => {
  const { relay } = await openIdleStack()
  const viem = createPublicClient({ transport: http(relayEndpoint(relay).url, { batch: true }) })
  const outcomes = await Promise.all(unusedAddresses(120).map((address) => outcomeOf(viem.getBalance({ address }))))
  for (const outcome of outcomes) expect(outcome).toMatchObject({ details: expect.stringContaining('at most 100') })
  const ethers = ethersProviderFor(relayEndpoint(relay), 'http in long batches')
  await ethers.getNetwork()
  const message = expect.stringContaining('at most 100')
  for (const outcome of await Promise.allSettled(unusedAddresses(120).map((address) => ethers.getBalance(address))))
    expect(outcome).toMatchObject({ reason: { error: { message } } })
})

/** What a library receives: the numbers of blocks, and the positions of all logs and of those of a token. */
type Received = { readonly blocks: number[]; readonly logs: string[]; readonly ofToken: string[]; readonly failures: unknown[] }
const nothing = (): Received => ({ blocks: [], logs: [], ofToken: [], failures: [] })

/** Watches with viem until the test ends. Over HTTP it polls, since the relay refuses its filters. */
async function watchWithViem(endpoint: RpcEndpoint, devnet: Devnet, transport: 'http' | 'webSocket'): Promise<Received> {
  const received = nothing()
  const socketClient = transport === 'webSocket' ? viemWebSocketClient(endpoint) : null
  const client = (socketClient ?? createPublicClient({ transport: http(endpoint.url), pollingInterval: 20 })) as PublicClient
  const onError = (failure: Error) => void received.failures.push(failure)
  const watchOptions = { onError, ...(transport === 'http' && { fromBlock: BigInt(devnet.chain.head.number + 1) }) }
  const watches = [
    client.watchEvent({ ...watchOptions, onLogs: (logs) => received.logs.push(...logs.map(logPosition)) }),
    client.watchEvent({
      ...{ ...watchOptions, address: devnet.list.addressOf('AAPLc') },
      onLogs: (logs) => received.ofToken.push(...logs.map(logPosition)),
    }),
    client.watchBlocks({
      onBlock: ({ number }) => received.blocks.push(Number(number)),
      onError,
      emitMissed: true,
      emitOnBegin: true,
    }),
  ]
  // A client that polls would ask on, and reach whatever listens on the same port next.
  onTestFinished(() => {
    for (const unwatch of watches) unwatch()
  })
  if (socketClient) await waitForSubscriptions(socketClient, 3)
  await expect.poll(() => received.blocks).toHaveLength(1)
  received.blocks.length = 0
  return received
}

/** Subscribes with ethers, which polls over HTTP. */
async function watchWithEthers(endpoint: RpcEndpoint, devnet: Devnet, transport: 'http' | 'webSocket'): Promise<Received> {
  const provider = ethersProviderFor(endpoint, transport)
  const received = nothing()
  const sent: string[] = []
  await provider.on('debug', ({ action, payload }) => {
    if (action === 'sendRpcPayload') sent.push(...[payload].flat().map(({ method }: { method: string }) => method))
  })
  const into = (list: string[]) => (log: Log) => list.push(logPosition({ blockHash: log.blockHash, logIndex: log.index }))
  await provider.on('error', (failure) => received.failures.push(failure))
  await provider.on('block', (number: number) => received.blocks.push(number))
  await provider.on({ topics: [] }, into(received.logs))
  await provider.on({ address: devnet.list.addressOf('AAPLc') }, into(received.ofToken))
  const count = (method: string) => sent.filter((one) => one === method).length
  if (transport === 'webSocket') await expect.poll(() => count('eth_subscribe')).toBe(3)
  else {
    await expect.poll(() => count('eth_newFilter')).toBe(2)
    // Ethers starts at the block number that it reads after the refusal.
    const before = count('eth_blockNumber')
    await expect.poll(() => count('eth_blockNumber') - before).toBeGreaterThan(3)
  }
  // Until ethers knows the chain, it throws for each log that arrives.
  await vi.waitFor(() => provider._network)
  await provider.send('eth_chainId', [])
  return received
}

describe.each([
  ['viem', watchWithViem],
  ['ethers', watchWithEthers],
] as const)('%s', (_, watch) => {
  it.each(['webSocket', 'http'] as const)('receives every event and block once and in order, over %s', async (transport) => {
    const stack = await openTestStack(highLimits)
    const { devnet, relay } = stack
    const begin = devnet.chain.head.number
    const received = await watch(relayEndpoint(relay), devnet, transport)
    for (const times of [1, 3, 2]) {
      if (transport === 'webSocket') produceBlocks(stack)
      else {
        // Where ethers finds several new blocks at once, it asks for their logs several times.
        for (const symbol of ['AAPLc', 'TSLAc']) transfer(stack, symbol, times)
        devnet.seal()
      }
      const blocks = blockHashesAbove(devnet, begin).map((_, at) => begin + 1 + at)
      const [logs, ofToken] = [logPositionsAbove(devnet, begin), logPositionsAbove(devnet, begin, 'AAPLc')]
      await expect.poll(() => received).toEqual({ blocks, logs, ofToken, failures: [] })
    }
  })
})
