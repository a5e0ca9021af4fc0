import type { Log } from 'ethers'
import { createPublicClient, http } from 'viem'
import { beforeAll, expect, it, vi } from 'vitest'
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
import { openTestStack } from '../../support/test-stack.ts'
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
const readers: readonly (readonly [name: string, open: (endpoint: RpcEndpoint) => Read])[] = [
  ...viemTransports.map((transport) => {
    const open = (endpoint: RpcEndpoint): Read => readWithViem.bind(null, viemClientFor(endpoint, transport))
    return [`viem over ${transport}`, open] as const
  }),
  ...ethersTransports.map((transport) => {
    const open = (endpoint: RpcEndpoint): Read => readWithEthers.bind(null, ethersProviderFor(endpoint, transport))
    return [`ethers over ${transport}`, open] as const
  }),
]

const [, BOB] = ACCOUNTS
/** Enough blocks for `safe` and `finalized` to be among them. */
const BLOCKS = 80

beforeAll(async () => {
  // Compiles the token, so that no test waits for it.
  await (await startAnvil()).kill()
})

it.each(readers)('%s reads the same as from a real node, before and after a transfer', async (_, open) => {
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

type ReadBalance = (address: `0x${string}`) => Promise<bigint>
const viemReader = (endpoint: RpcEndpoint, transport: (typeof viemTransports)[number]): ReadBalance => {
  const client = viemClientFor(endpoint, transport)
  return (address) => client.getBalance({ address })
}
const balanceReaders: readonly (readonly [name: string, open: (endpoint: RpcEndpoint) => ReadBalance])[] = [
  ['viem over http in batches', (endpoint) => viemReader(endpoint, 'http in batches')],
  ['viem over a WebSocket', (endpoint) => viemReader(endpoint, 'webSocket')],
  [
    'ethers over http',
    (endpoint) => {
      const provider = ethersProviderFor(endpoint, 'http')
      return (address) => provider.getBalance(address)
    },
  ],
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

/** Blocks by number, and logs by position, that a library received: all logs, and those of one token. */
type Received = { readonly blocks: number[]; readonly logs: string[]; readonly ofToken: string[]; readonly failures: unknown[] }
const nothing = (): Received => ({ blocks: [], logs: [], ofToken: [], failures: [] })

async function watchWithViem(endpoint: RpcEndpoint, devnet: Devnet): Promise<Received> {
  const received = nothing()
  const client = viemWebSocketClient(endpoint)
  const onError = (failure: Error) => void received.failures.push(failure)
  client.watchEvent({ onError, onLogs: (logs) => received.logs.push(...logs.map(logPosition)) })
  client.watchEvent({
    ...{ onError, address: devnet.list.addressOf('AAPLc') },
    onLogs: (logs) => received.ofToken.push(...logs.map(logPosition)),
  })
  client.watchBlocks({ onError, onBlock: ({ number }) => received.blocks.push(Number(number)), emitMissed: true })
  await waitForSubscriptions(client, 3)
  return received
}

async function watchWithEthers(endpoint: RpcEndpoint, devnet: Devnet): Promise<Received> {
  const provider = ethersProviderFor(endpoint, 'webSocket')
  const received = nothing()
  const subscriptions: unknown[] = []
  await provider.on('debug', ({ action, payload }) => {
    if (action === 'sendRpcPayload') subscriptions.push(...[payload].flat().filter(({ method }) => method === 'eth_subscribe'))
  })
  const into = (list: string[]) => (log: Log) => list.push(logPosition({ blockHash: log.blockHash, logIndex: log.index }))
  await provider.on('error', (failure) => received.failures.push(failure))
  await provider.on('block', (number: number) => received.blocks.push(number))
  await provider.on({ topics: [] }, into(received.logs))
  await provider.on({ address: devnet.list.addressOf('AAPLc') }, into(received.ofToken))
  await expect.poll(() => subscriptions).toHaveLength(3)
  // Until ethers knows the chain, it throws for each log that arrives.
  await vi.waitFor(() => provider._network)
  await provider.send('eth_chainId', [])
  return received
}

it.each([
  ['viem', watchWithViem],
  ['ethers', watchWithEthers],
] as const)('%s receives every event and block once and in order', async (_, watch) => {
  const stack = await openTestStack(highLimits)
  const { devnet, relay } = stack
  const begin = devnet.chain.head.number
  const received = await watch(relayEndpoint(relay), devnet)
  for (let time = 0; time < 3; time += 1) {
    produceBlocks(stack)
    const blocks = blockHashesAbove(devnet, begin).map((_, at) => begin + 1 + at)
    const [logs, ofToken] = [logPositionsAbove(devnet, begin), logPositionsAbove(devnet, begin, 'AAPLc')]
    await expect.poll(() => received).toEqual({ blocks, logs, ofToken, failures: [] })
  }
})
