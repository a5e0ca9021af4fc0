import type { Log } from 'ethers'
import { createPublicClient, http, type PublicClient, parseAbiItem } from 'viem'
import { beforeAll, describe, expect, it, onTestFinished } from 'vitest'
import { ACCOUNTS, type Anvil, startAnvil } from '../../support/anvil-node.ts'
import { ethersProviderFor, ethersTransports, readWithEthers } from '../../support/ethers-client.ts'
import {
  highRpcRate,
  nodeEndpoint,
  openIdleStack,
  type QuerySubject,
  type RpcEndpoint,
  relayEndpoint,
  unusedAddresses,
  waitForSameChain,
} from '../../support/rpc-scenarios.ts'
import { listenNdjson } from '../../support/test-listener.ts'
import { openDevnet, openRelayFor, transfer } from '../../support/test-stack.ts'
import {
  collectNotifications,
  outcomeOf,
  readWithViem,
  type ViemNotification,
  viemClientFor,
  viemTransports,
  viemWebSocketClient,
  waitForSubscriptions,
} from '../../support/viem-client.ts'
import { openAnvilGateway } from './node-and-gateway.ts'

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

const NO_BLOCK = `0x${'ab'.repeat(32)}` as const
const [, BOB] = ACCOUNTS
const Transfer = parseAbiItem('event Transfer(address indexed from, address indexed to, uint256 amount)')
/** Enough blocks for `safe` and `finalized` to be among them. */
const BLOCKS = 80

const openRealNode = () => openAnvilGateway(BLOCKS)

/** Fixes the time of the pending block, which would change every second. */
async function freezePendingBlock(anvil: Anvil): Promise<void> {
  const { timestamp } = (await anvil.rpc('eth_getBlockByNumber', 'latest', false)) as { timestamp: string }
  await anvil.rpc('evm_setNextBlockTimestamp', Number(timestamp) + 1_000)
}

beforeAll(async () => {
  // Compiles the token, so that no test waits for it.
  await (await startAnvil()).kill()
})

describe.each(readers)('%s', (_, open, balance) => {
  it('reads the same as from the node, uncached and cached', async () => {
    const { devnet, relay, subject } = await openIdleStack()
    const expected = await open(nodeEndpoint(devnet))(subject)
    expect(expected['getBalance pending']).toMatchObject({ value: balance })
    const read = open(relayEndpoint(relay))
    for (let time = 0; time < 2; time += 1) expect(await read(subject)).toEqual(expected)
  })

  it('reads the same as from the node after each change of the chain', async () => {
    const stack = await openIdleStack()
    const { devnet, relay, subject } = stack
    const [read, readDirectly] = [open(relayEndpoint(relay)), open(nodeEndpoint(devnet))]
    const before = await read(subject)
    for (const change of [() => transfer(stack), () => devnet.seal(), () => devnet.reorg(2)]) {
      change()
      await waitForSameChain(relayEndpoint(relay), nodeEndpoint(devnet))
      const expected = await readDirectly(subject)
      expect(expected).not.toEqual(before)
      expect(await read(subject)).toEqual(expected)
    }
  })

  it('reads the same as from a real node, before and after a transfer', async () => {
    const { anvil, relay, subject } = await openRealNode()
    const [read, readDirectly] = [open(relayEndpoint(relay)), open(nodeEndpoint(anvil))]
    for (const raw of [1n, 2n]) {
      await freezePendingBlock(anvil)
      await waitForSameChain(relayEndpoint(relay), nodeEndpoint(anvil))
      const expected = await readDirectly(subject)
      expect(expected['getLogs latest']).toMatchObject({ value: [{ removed: false }] })
      for (let time = 0; time < 2; time += 1) expect(await read(subject)).toEqual(expected)
      await anvil.send({ functionName: 'transfer', args: [BOB, raw] })
    }
  })
})

describe.each(viemTransports)('viem over %s', (transport) => {
  it('gets the refusals of the node', async () => {
    const devnet = await openDevnet()
    const relay = await openRelayFor(devnet, highRpcRate)
    const { number } = devnet.chain.head
    const refusalsFrom = (endpoint: RpcEndpoint) => {
      const client = viemClientFor(endpoint, transport)
      const [address = '0x'] = unusedAddresses(1)
      return Promise.all([
        outcomeOf(client.request({ method: 'eth_getBlockReceipts', params: ['latest'] } as never)),
        ...[5n, BigInt(number + 9)].map((blockNumber) => outcomeOf(client.getBalance({ address, blockNumber }))),
        outcomeOf(client.getCode({ address, blockHash: NO_BLOCK })),
      ])
    }
    const expected = await refusalsFrom(nodeEndpoint(devnet))
    expect(expected).toMatchObject([-32601, -32000, -32001, -32001].map((code) => ({ code })))
    expect(await refusalsFrom(relayEndpoint(relay))).toEqual(expected)
  })

  it.each<[string, (client: PublicClient, subject: QuerySubject) => Promise<unknown>]>([
    ['state above the head', (client, { account: address }) => client.getBalance({ address, blockNumber: 9_999n })],
    ['state of an unknown block', (client, { account }) => client.getBalance({ address: account, blockHash: NO_BLOCK })],
    ['logs of an unknown block', (client) => client.getLogs({ blockHash: NO_BLOCK })],
    ['logs above the head', (client) => client.getLogs({ fromBlock: 9_998n, toBlock: 9_999n })],
    ['an impossible number', (client, { account: address }) => client.getCode({ address, blockNumber: 2n ** 70n })],
  ])('gets the refusal of a real node, which affects no other client: %s', async (_, ask) => {
    const { anvil, relay, subject } = await openRealNode()
    // The relay asks over HTTP; over its socket this node words its refusals in another way.
    const expected = await outcomeOf(ask(viemClientFor(nodeEndpoint(anvil), 'http'), subject))
    expect(expected).toMatchObject({ code: expect.any(Number) })
    expect(await outcomeOf(ask(viemClientFor(relayEndpoint(relay), transport), subject))).toEqual(expected)
    const other = viemClientFor(relayEndpoint(relay), 'http')
    for (const address of unusedAddresses(3)) expect(await outcomeOf(other.getBalance({ address }))).toEqual({ value: 0n })
  })

  it('gets all answers in the end when it exceeds the rate', async () => {
    const { devnet, relay } = await openIdleStack({ RPC_RATE: '50' })
    const client = viemClientFor(relayEndpoint(relay), transport)
    const balances = await Promise.all(unusedAddresses(80).map((address) => client.getBalance({ address })))
    expect(balances).toEqual(balances.map(() => 0n))
    expect(devnet.requests.eth_getBalance).toBeGreaterThanOrEqual(80)
  })
})

describe.each(['http', 'http one by one'] as const)('ethers over %s', (transport) => {
  it('gets all answers in the end when it exceeds the rate', async () => {
    const { relay } = await openIdleStack({ RPC_RATE: '50' })
    const provider = ethersProviderFor(relayEndpoint(relay), transport)
    await provider.getNetwork()
    const balances: bigint[] = []
    // Two batches of 40.
    for (const addresses of [unusedAddresses(80).slice(0, 40), unusedAddresses(80).slice(40)])
      balances.push(...(await Promise.all(addresses.map((address) => provider.getBalance(address)))))
    expect(balances).toEqual(Array.from({ length: 80 }, () => 0n))
  })
})

describe('a batch over the bound', () => {
  it('is refused with a sentence that viem passes on', async () => {
    const { relay } = await openIdleStack()
    const client = createPublicClient({ transport: http(relayEndpoint(relay).url, { batch: true }) })
    const outcomes = await Promise.all(unusedAddresses(120).map((address) => outcomeOf(client.getBalance({ address }))))
    for (const outcome of outcomes) expect(outcome).toMatchObject({ details: expect.stringContaining('at most 100') })
  })

  it('is refused with a sentence that ethers passes on', async () => {
    const { relay } = await openIdleStack()
    const provider = ethersProviderFor(relayEndpoint(relay), 'http in long batches')
    await provider.getNetwork()
    const outcomes = await Promise.allSettled(unusedAddresses(120).map((address) => provider.getBalance(address)))
    for (const outcome of outcomes)
      expect(outcome).toMatchObject({ reason: { error: { message: expect.stringContaining('at most 100') } } })
  })
})

describe('subscriptions to a real node', () => {
  it('bring viem and ethers, over webSocket, everything once and in order, as from the node', async () => {
    const { anvil, relay } = await openRealNode()
    // A client that subscribes before the relay knows the head also receives that head.
    const listener = await listenNdjson(`${relay.url}/v1/stream?symbols=*&types=status&since=start`)
    onTestFinished(() => listener.close())
    await listener.waitFor('status', ({ source }) => source !== 'down')
    const filter = { address: anvil.token }
    const [client, direct] = [viemWebSocketClient(relayEndpoint(relay)), viemWebSocketClient(nodeEndpoint(anvil))]
    const [logs, heads] = [await collectNotifications(client, ['logs', filter]), await collectNotifications(client, ['newHeads'])]
    const [directLogs, directHeads] = [
      await collectNotifications(direct, ['logs', filter]),
      await collectNotifications(direct, ['newHeads']),
    ]
    const pending = await collectNotifications(client, ['pendingLogs', filter])
    const ethers = { blocks: [] as number[], hashes: [] as string[] }
    const provider = ethersProviderFor(relayEndpoint(relay), 'webSocket')
    await provider.on('block', (block: number) => ethers.blocks.push(block))
    await provider.on(filter, ({ transactionHash }: Log) => ethers.hashes.push(transactionHash))
    const events: (string | null)[] = []
    client.watchEvent({
      ...filter,
      event: Transfer,
      onLogs: (received) => events.push(...received.map(({ transactionHash }) => transactionHash)),
    })
    await waitForSubscriptions(client, 4)
    // Both subscriptions of ethers exist once this is answered.
    await provider.send('eth_chainId', [])
    const begin = Number(await anvil.rpc('eth_blockNumber'))
    const hashes: string[] = []
    for (const raw of [1n, 2n, 3n, 4n, 5n]) hashes.push(await anvil.send({ functionName: 'transfer', args: [BOB, raw] }))
    await expect.poll(() => [directLogs, directHeads].map(({ results }) => results.length)).toEqual([5, 5])
    await expect.poll(() => logs.results).toEqual(directLogs.results)
    const headers = ({ results }: typeof heads) => results.map(headerFieldsOf)
    await expect.poll(() => headers(heads)).toEqual(headers(directHeads))
    await expect.poll(() => ethers).toEqual({ blocks: hashes.map((_, at) => begin + 1 + at), hashes })
    await expect.poll(() => events).toEqual(hashes)
    // Anvil pushes no pending logs: the relay may find one when it is sealed, after one of a later block.
    const pendingHashes = () => pending.results.map(({ transactionHash }) => transactionHash).toSorted()
    await expect.poll(pendingHashes).toEqual(hashes.toSorted())
    await client.getChainId()
    expect([logs.results.length, events.length, pending.results.length]).toEqual([5, 5, 5])
  })
})

/** Anvil sends whole blocks where other nodes send headers. */
const headerFieldsOf = ({ transactions: _, uncles: __, withdrawals: ___, size: ____, ...header }: ViemNotification) => header
