import { vi } from 'vitest'
import type { DevnetLog } from '../../src/devnet/chain/chain-types.ts'
import type { Devnet } from '../../src/devnet/devnet.ts'
import { openDevnet, openRelayFor, type TestStack, transfer } from './test-stack.ts'

type Hex = `0x${string}`

/** A test sends requests faster than the default rate limit allows. */
const highRpcRate = { RPC_RATE: '10000' }

/** Where JSON-RPC is served, over HTTP and WebSocket: by the relay, or by the node behind it. */
export type RpcEndpoint = { readonly url: string; readonly wsUrl: string }

/** The relay's endpoint. */
export const relayEndpoint = ({ url }: { readonly url: string }): RpcEndpoint => ({
  url: `${url}/rpc`,
  wsUrl: `${url.replace('http', 'ws')}/rpc`,
})

/** The node's endpoint. */
export const nodeEndpoint = ({ rpcUrl, wsUrl }: { readonly rpcUrl: string; readonly wsUrl: string }): RpcEndpoint => ({
  url: rpcUrl,
  wsUrl,
})

/** The block tags. */
export const blockTagNames = ['latest', 'pending', 'safe', 'finalized', 'earliest'] as const

/** What the calls are about: an active account, a token and its storage slot of the supply, and a block with a log. */
export type QuerySubject = {
  readonly account: Hex
  readonly token: Hex
  readonly slot: Hex
  readonly block: { readonly number: number; readonly hash: Hex }
}

/** Accounts without a transaction. */
export const unusedAddresses = (count: number): readonly Hex[] =>
  Array.from({ length: count }, (_, at): Hex => `0x${(at + 1).toString(16).padStart(40, 'c')}`)

/** A call in a request. */
export type RpcCall = { readonly method: string; readonly params: readonly unknown[] }

/** The seven methods, each with every way to name a block, and two more. */
export function callsOfAllMethods({ account, token, slot, block }: QuerySubject): readonly RpcCall[] {
  const number: Hex = `0x${block.number.toString(16)}`
  const numbersAndTags = [...blockTagNames, number]
  const allBlockReferences = [...numbersAndTags, block.hash, { blockHash: block.hash }]
  return [
    ...numbersAndTags.flatMap((at) => [true, false].map((full) => ({ method: 'eth_getBlockByNumber', params: [at, full] }))),
    ...numbersAndTags.map((at) => ({ method: 'eth_getLogs', params: [{ fromBlock: at, toBlock: at, address: token }] })),
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

/** A devnet at rest with sealed and pre-confirmed logs, a relay on it, and what the calls are about. */
export async function openIdleStack(settings: Record<string, string> = {}): Promise<TestStack & { subject: QuerySubject }> {
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

/** Blocks with movements of two tokens, and one without. */
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
  Array.from({ length: chain.head.number - after }, (_, at) => chain.block(after + 1 + at)).filter((block) => block != null)

/** The hashes of the sealed blocks above a number. */
export const blockHashesAbove = (devnet: Devnet, after: number): readonly string[] =>
  sealedBlocksAbove(devnet, after).map(({ hash }) => hash)

/** The sealed logs above a block, of one token or of all. */
export const logsAbove = (devnet: Devnet, after: number, symbol?: string): readonly DevnetLog[] =>
  sealedBlocksAbove(devnet, after)
    .flatMap(({ logs }) => logs)
    .filter(({ address }) => symbol === undefined || address === devnet.list.addressOf(symbol))

/** The places of logs. */
export const logPositionsAbove = (...which: Parameters<typeof logsAbove>): readonly string[] => logsAbove(...which).map(logPosition)

/** The unique place of a log. Clients have it in hex or as numbers. */
export const logPosition = ({ blockHash, logIndex }: { readonly blockHash?: unknown; readonly logIndex?: unknown }) =>
  `${blockHash} ${Number(logIndex)}`

/** Posts a call. Returns the JSON of the answer. */
async function post({ url }: RpcEndpoint, call: RpcCall): Promise<unknown> {
  const response = await fetch(url, {
    method: 'POST',
    headers: { 'content-type': 'application/json' },
    body: JSON.stringify({ jsonrpc: '2.0', id: 1, ...call }),
  })
  return await response.json()
}

/** Resolves when two endpoints know the same newest sealed block and the same pre-confirmed logs. */
export async function waitForSameChain(first: RpcEndpoint, second: RpcEndpoint): Promise<void> {
  const blocks = ['latest', 'pending'].map((at) => ({ method: 'eth_getBlockByNumber', params: [at, false] }))
  const chainSeenBy = async (endpoint: RpcEndpoint) =>
    JSON.stringify(await Promise.all(blocks.map((block) => post(endpoint, block))))
  await until(async () => (await chainSeenBy(first)) === (await chainSeenBy(second)), 'both endpoints to know the same chain')
}

/** Resolves when a condition holds. */
export async function until(condition: () => boolean | Promise<boolean>, description: string): Promise<void> {
  await vi.waitUntil(condition).catch(() => {
    throw new Error(`timed out waiting for ${description}`)
  })
}
