import { once } from 'node:events'
import { type AddressInfo, connect as connectSocket, createServer, type Socket } from 'node:net'
import { onTestFinished, vi } from 'vitest'
import type { DevnetLog } from '../../src/devnet/chain/block.ts'
import type { Devnet } from '../../src/devnet/devnet.ts'
import { openDevnet, openRelayFor, type TestStack, transfer } from './test-stack.ts'

type Hex = `0x${string}`

/** How a condition is looked at: soon, and not for ever; reaching the end is a failure, never a pause. */
export const WAIT_OPTIONS = { timeout: 10_000, interval: 5 }

/** Whoever asks as fast as a test does would be asked to come back slower. */
export const highRpcRate = { RPC_RATE: '10000' }

/** Where JSON-RPC is served, over both carriers: by the relay, or by the node behind it. */
export type RpcEndpoint = { readonly url: string; readonly wsUrl: string }

/** The relay's door. */
export const relayEndpoint = ({ url }: { readonly url: string }): RpcEndpoint => ({
  url: `${url}/rpc`,
  wsUrl: `${url.replace('http', 'ws')}/rpc`,
})

/** The node's door. */
export const nodeEndpoint = ({ rpcUrl, wsUrl }: { readonly rpcUrl: string; readonly wsUrl: string }): RpcEndpoint => ({
  url: rpcUrl,
  wsUrl,
})

/** The tags that a block may be named by. */
export const blockTagNames = ['latest', 'pending', 'safe', 'finalized', 'earliest'] as const

/** What is asked about: somebody who did something, a token and where it counts its supply, a block that holds a log. */
export type QuerySubject = {
  readonly account: Hex
  readonly token: Hex
  readonly slot: Hex
  readonly block: { readonly number: number; readonly hash: Hex }
}

/** So many accounts that never did anything. */
export const unusedAddresses = (count: number): readonly Hex[] =>
  Array.from({ length: count }, (_, at): Hex => `0x${(at + 1).toString(16).padStart(40, 'c')}`)

/** A call as it stands in a request. */
export type RpcCall = { readonly method: string; readonly params: readonly unknown[] }

/** The seven methods, each with every way of naming a block that it takes, and the two beside them. */
export function callsOfAllMethods({ account, token, slot, block }: QuerySubject): readonly RpcCall[] {
  const number: Hex = `0x${block.number.toString(16)}`
  const numbersAndTags = [...blockTagNames, number]
  const allBlockReferences = [...numbersAndTags, block.hash, { blockHash: block.hash }]
  return [
    ...numbersAndTags.flatMap((at) =>
      [true, false].map((full) => ({ method: 'eth_getBlockByNumber', params: [at, full] })),
    ),
    ...numbersAndTags.map((at) => ({
      method: 'eth_getLogs',
      params: [{ fromBlock: at, toBlock: at, address: token }],
    })),
    ...['latest', 'pending'].map((toBlock) => ({ method: 'eth_getLogs', params: [{ fromBlock: number, toBlock }] })),
    { method: 'eth_getLogs', params: [{ blockHash: block.hash }] },
    ...allBlockReferences.flatMap((at) => [
      { method: 'eth_getBlockReceipts', params: [at] },
      { method: 'eth_getStorageAt', params: [token, slot, at] },
      { method: 'eth_getTransactionCount', params: [account, at] },
      { method: 'eth_getCode', params: [token, at] },
      { method: 'eth_getBalance', params: [account, at] },
    ]),
    { method: 'eth_chainId', params: [] },
    { method: 'eth_blockNumber', params: [] },
  ]
}

/** A devnet that rests, with something sealed and something pre-confirmed, a relay on it, and what to ask about. */
export async function openIdleStack(
  settings: Record<string, string> = {},
): Promise<TestStack & { subject: QuerySubject }> {
  const devnet = await openDevnet({ pace: 'manual', receipts: true })
  transfer({ devnet }, 'AAPLc', 2)
  transfer({ devnet }, 'TSLAc')
  const { number, hash } = devnet.seal()
  transfer({ devnet })
  devnet.seal()
  transfer({ devnet })
  const relay = await openRelayFor(devnet, { ...highRpcRate, ...settings })
  const token = devnet.list.addressOf('AAPLc')
  return { devnet, relay, subject: { account: devnet.custodian, token, slot: '0x2', block: { number, hash } } }
}

/** Some blocks with movements of two tokens, and one without. */
export function produceBlocks(stack: Pick<TestStack, 'devnet'>): void {
  for (const times of [1, 2]) {
    transfer(stack, 'AAPLc', times)
    transfer(stack, 'TSLAc', times)
    stack.devnet.seal()
  }
  stack.devnet.seal()
  transfer(stack, 'AAPLc')
  stack.devnet.seal()
}

const sealedBlocksAbove = ({ chain }: Devnet, after: number) =>
  Array.from({ length: chain.head.number - after }, (_, at) => chain.block(after + 1 + at)).filter((one) => one != null)

/** The hashes of the sealed blocks above one. */
export const blockHashesAbove = (devnet: Devnet, after: number): readonly string[] =>
  sealedBlocksAbove(devnet, after).map(({ hash }) => hash)

/** The sealed logs above a block, of one token or of all. */
export const logsAbove = (devnet: Devnet, after: number, symbol?: string): readonly DevnetLog[] =>
  sealedBlocksAbove(devnet, after)
    .flatMap(({ logs }) => logs)
    .filter(({ address }) => symbol === undefined || address === devnet.list.addressOf(symbol))

/** Where each of them is. */
export const logPositionsAbove = (...which: Parameters<typeof logsAbove>): readonly string[] =>
  logsAbove(...which).map(logPosition)

/** Where a log is, which no other is; in hex or as a number, as clients have it. */
export const logPosition = ({ blockHash, logIndex }: { readonly blockHash?: unknown; readonly logIndex?: unknown }) =>
  `${blockHash} ${Number(logIndex)}`

/** Posts a call; the JSON that comes back. */
async function post({ url }: RpcEndpoint, call: RpcCall): Promise<unknown> {
  const response = await fetch(url, {
    method: 'POST',
    headers: { 'content-type': 'application/json' },
    body: JSON.stringify({ jsonrpc: '2.0', id: 1, ...call }),
  })
  return await response.json()
}

/** Resolves when two doors know the same chain: the newest sealed block, and what is pre-confirmed. */
export async function waitForSameChain(one: RpcEndpoint, other: RpcEndpoint): Promise<void> {
  const blocks = ['latest', 'pending'].map((at) => ({ method: 'eth_getBlockByNumber', params: [at, false] }))
  const chainSeenBy = async (endpoint: RpcEndpoint) =>
    JSON.stringify(await Promise.all(blocks.map((block) => post(endpoint, block))))
  await until(async () => (await chainSeenBy(one)) === (await chainSeenBy(other)), 'that both know the same chain')
}

/** Resolves once a condition holds. */
export async function until(condition: () => boolean | Promise<boolean>, description: string): Promise<void> {
  await vi.waitUntil(condition, WAIT_OPTIONS).catch(() => {
    throw new Error(`waited in vain for ${description}`)
  })
}

/** A wire to a door, which can be cut; and how often somebody came over it. */
export async function openCuttableProxy({
  wsUrl,
}: RpcEndpoint): Promise<{ wsUrl: string; calls: () => number; cut: () => void }> {
  const { hostname, port, pathname } = new URL(wsUrl)
  const sockets = new Set<Socket>()
  let calls = 0
  const server = createServer((clientSide) => {
    calls += 1
    const serverSide = connectSocket(Number(port), hostname)
    clientSide.pipe(serverSide).pipe(clientSide)
    for (const socket of [clientSide, serverSide]) {
      sockets.add(socket)
      socket.on('error', () => socket.destroy())
      socket.once('close', () => sockets.delete(socket))
    }
  })
  server.listen(0, '127.0.0.1')
  await once(server, 'listening')
  const cut = () => {
    for (const socket of sockets) socket.destroy()
  }
  onTestFinished(() => {
    cut()
    server.close()
  })
  return { wsUrl: `ws://127.0.0.1:${(server.address() as AddressInfo).port}${pathname}`, calls: () => calls, cut }
}
