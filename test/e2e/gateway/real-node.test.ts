import type { Log } from 'ethers'
import { type PublicClient, parseAbiItem } from 'viem'
import { beforeAll, describe, expect, it, onTestFinished } from 'vitest'
import { ACCOUNTS, type Anvil, serveList, startAnvil } from '../../support/anvil-node.ts'
import { ethersProviderFor, ethersTransports, readWithEthers } from '../../support/ethers-client.ts'
import { openRelay, type TestRelay } from '../../support/in-process-relay.ts'
import {
  highRpcRate,
  nodeEndpoint,
  type QuerySubject,
  relayEndpoint,
  unusedAddresses,
  WAIT_OPTIONS,
  waitForSameChain,
} from '../../support/rpc-scenarios.ts'
import { listenNdjson } from '../../support/test-listener.ts'
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

const NO_BLOCK = `0x${'ab'.repeat(32)}` as const
const [ALICE, BOB] = ACCOUNTS
const Transfer = parseAbiItem('event Transfer(address indexed from, address indexed to, uint256 amount)')
/** So many blocks that `safe` and `finalized` are some of them. */
const BLOCKS = 80

/** A real node with a token, a relay on both, and what to ask about. */
async function openRealNode(): Promise<{ anvil: Anvil; relay: TestRelay; subject: QuerySubject }> {
  const anvil = await startAnvil()
  onTestFinished(() => anvil.kill())
  await anvil.send({ functionName: 'mint', args: [ALICE, 1_000n] })
  await anvil.rpc('anvil_mine', BLOCKS)
  await anvil.send({ functionName: 'transfer', args: [BOB, 7n] })
  const number = Number(await anvil.rpc('eth_blockNumber'))
  const { hash } = await anvil.block(number)
  const list = await serveList({ contract_address: anvil.token, symbol: 'TESTc', name: 'Test', decimals: 8 })
  onTestFinished(() => list.stop())
  const relay = await openRelay({ ...anvil, url: list.url }, highRpcRate)
  onTestFinished(() => relay.stop())
  const subject = { account: ALICE, token: anvil.token, slot: '0x0', block: { number, hash } } as QuerySubject
  return { anvil, relay, subject }
}

/** Stops the clock of the block that is being built: each second it would be another. */
async function freezePendingBlock(anvil: Anvil): Promise<void> {
  const { timestamp } = (await anvil.rpc('eth_getBlockByNumber', 'latest', false)) as { timestamp: string }
  await anvil.rpc('evm_setNextBlockTimestamp', Number(timestamp) + 1_000)
}

beforeAll(async () => {
  // Compiles the token, so that no test waits for it.
  await (await startAnvil()).kill()
})

describe.each(viemTransports)('viem over %s, on a real node', (way) => {
  it('reads all that the node has, also when it goes on', async () => {
    const { anvil, relay, subject } = await openRealNode()
    const [ours, theirs] = [viemClientFor(relayEndpoint(relay), way), viemClientFor(nodeEndpoint(anvil), way)]
    for (const raw of [1n, 2n]) {
      await freezePendingBlock(anvil)
      await waitForSameChain(relayEndpoint(relay), nodeEndpoint(anvil))
      const truth = await readWithViem(theirs, subject)
      expect(truth['getLogs latest']).toMatchObject({ value: [{ removed: false }] })
      expect(await readWithViem(ours, subject)).toEqual(truth)
      expect(await readWithViem(ours, subject)).toEqual(truth)
      await anvil.send({ functionName: 'transfer', args: [BOB, raw] })
    }
  })
})

describe.each(ethersTransports)('ethers over %s, on a real node', (way) => {
  it('reads all that the node has, also when it goes on', async () => {
    const { anvil, relay, subject } = await openRealNode()
    const [ours, theirs] = [ethersProviderFor(relayEndpoint(relay), way), ethersProviderFor(nodeEndpoint(anvil), way)]
    for (const raw of [1n, 2n]) {
      await freezePendingBlock(anvil)
      await waitForSameChain(relayEndpoint(relay), nodeEndpoint(anvil))
      const truth = await readWithEthers(theirs, subject)
      expect(truth['getLogs latest']).toMatchObject({ value: [{ removed: false }] })
      expect(await readWithEthers(ours, subject)).toEqual(truth)
      expect(await readWithEthers(ours, subject)).toEqual(truth)
      await anvil.send({ functionName: 'transfer', args: [BOB, raw] })
    }
  })
})

describe.each(viemTransports)('a real node that refuses what viem asks over %s', (way) => {
  it.each<[string, (client: PublicClient, subject: QuerySubject) => Promise<unknown>]>([
    ['state above the head', (client, { account: address }) => client.getBalance({ address, blockNumber: 9_999n })],
    ['state at no block', (client, { account: address }) => client.getBalance({ address, blockHash: NO_BLOCK })],
    ['logs of no block', (client) => client.getLogs({ blockHash: NO_BLOCK })],
    ['logs above the head', (client) => client.getLogs({ fromBlock: 9_998n, toBlock: 9_999n })],
    ['a number that is none', (client, { account: address }) => client.getCode({ address, blockNumber: 2n ** 70n })],
  ])('is quoted where it is %s, and everybody else is still answered', async (_, ask) => {
    const { anvil, relay, subject } = await openRealNode()
    // Over HTTP, as the relay asks it: over its socket this node has other words for the same.
    const [ours, theirs] = [viemClientFor(relayEndpoint(relay), way), viemClientFor(nodeEndpoint(anvil), 'http')]
    const truth = await outcomeOf(ask(theirs, subject))
    expect(truth).toMatchObject({ code: expect.any(Number) })
    expect(await outcomeOf(ask(ours, subject))).toEqual(truth)
    for (const address of unusedAddresses(3))
      expect(await outcomeOf(viemClientFor(relayEndpoint(relay), 'http').getBalance({ address }))).toEqual({
        value: 0n,
      })
  })
})

describe('a real node, listened to', () => {
  it('by viem and ethers, over webSocket, is heard once and in order, as it says it itself', async () => {
    const { anvil, relay } = await openRealNode()
    // Whoever subscribes before the relay knows the head is told of it, too.
    const listener = await listenNdjson(`${relay.url}/v1/stream?symbols=*&types=status&since=start`)
    onTestFinished(() => listener.close())
    await listener.waitFor('status', ({ source }) => source !== 'down')
    const [own, direct] = [viemWebSocketClient(relayEndpoint(relay)), viemWebSocketClient(nodeEndpoint(anvil))]
    const filter = { address: anvil.token }
    const ours = [await collectNotifications(own, ['logs', filter]), await collectNotifications(own, ['newHeads'])]
    const theirs = [
      await collectNotifications(direct, ['logs', filter]),
      await collectNotifications(direct, ['newHeads']),
    ]
    const pending = await collectNotifications(own, ['pendingLogs', filter])
    const ethers = { blocks: [] as number[], hashes: [] as string[] }
    const provider = ethersProviderFor(relayEndpoint(relay), 'webSocket')
    await provider.on('block', (block: number) => ethers.blocks.push(block))
    await provider.on(filter, ({ transactionHash }: Log) => ethers.hashes.push(transactionHash))
    const events: (string | null)[] = []
    own.watchEvent({
      ...filter,
      event: Transfer,
      onLogs: (logs) => events.push(...logs.map((log) => log.transactionHash)),
    })
    await waitForSubscriptions(own, 4)
    // Both have subscribed once this is answered.
    await provider.send('eth_chainId', [])
    const begin = Number(await anvil.rpc('eth_blockNumber'))
    const hashes: string[] = []
    for (const raw of [1n, 2n, 3n, 4n, 5n])
      hashes.push(await anvil.send({ functionName: 'transfer', args: [BOB, raw] }))
    await expect.poll(() => theirs.map(({ results }) => results.length), WAIT_OPTIONS).toEqual([5, 5])
    await expect.poll(() => ours[0]?.results, WAIT_OPTIONS).toEqual(theirs[0]?.results)
    await expect
      .poll(() => ours[1]?.results.map(headerFieldsOf), WAIT_OPTIONS)
      .toEqual(theirs[1]?.results.map(headerFieldsOf))
    await expect.poll(() => ethers, WAIT_OPTIONS).toEqual({ blocks: hashes.map((_, at) => begin + 1 + at), hashes })
    await expect.poll(() => events, WAIT_OPTIONS).toEqual(hashes)
    // Without a subscription at the node, one found only when sealed may come after one of a later block.
    const pendingHashes = () => pending.results.map(({ transactionHash }) => transactionHash).toSorted()
    await expect.poll(pendingHashes, WAIT_OPTIONS).toEqual(hashes.toSorted())
    await own.getChainId()
    expect([ours[0]?.results.length, events.length, pending.results.length]).toEqual([5, 5, 5])
  })
})

/** This node tells of whole blocks where others tell of their headers. */
const headerFieldsOf = ({ transactions: _, uncles: __, withdrawals: ___, size: ____, ...header }: ViemNotification) =>
  header
