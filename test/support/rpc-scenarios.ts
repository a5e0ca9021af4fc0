import { once } from 'node:events'
import { type AddressInfo, createServer, connect as dial, type Socket } from 'node:net'
import { onTestFinished, vi } from 'vitest'
import type { Log } from '../../src/devnet/chain/block.ts'
import type { Devnet } from '../../src/devnet/devnet.ts'
import { openDevnet, relayOn, transfer, type World } from './test-stack.ts'

type Hex = `0x${string}`

/** How a condition is looked at: soon, and not for ever; reaching the end is a failure, never a pause. */
export const LATEST_MS = { timeout: 10_000, interval: 5 }

/** Whoever asks as fast as a test does would be asked to come back slower. */
export const ample = { RPC_RATE: '10000' }

/** Where JSON-RPC is served, over both carriers: by the relay, or by the node behind it. */
export type Door = { readonly url: string; readonly wsUrl: string }

/** The relay's door. */
export const doorOf = ({ url }: { readonly url: string }): Door => ({
  url: `${url}/rpc`,
  wsUrl: `${url.replace('http', 'ws')}/rpc`,
})

/** The node's door. */
export const nodeOf = ({ rpcUrl, wsUrl }: { readonly rpcUrl: string; readonly wsUrl: string }): Door => ({
  url: rpcUrl,
  wsUrl,
})

/** The tags that a block may be named by. */
export const tags = ['latest', 'pending', 'safe', 'finalized', 'earliest'] as const

/** What is asked about: somebody who did something, a token and where it counts its supply, a block that holds a log. */
export type Subject = {
  readonly account: Hex
  readonly token: Hex
  readonly slot: Hex
  readonly block: { readonly number: number; readonly hash: Hex }
}

/** So many accounts that never did anything. */
export const strangers = (count: number): readonly Hex[] =>
  Array.from({ length: count }, (_, at): Hex => `0x${(at + 1).toString(16).padStart(40, 'c')}`)

/** A call as it stands in a request. */
export type Call = { readonly method: string; readonly params: readonly unknown[] }

/** The seven methods, each with every way of naming a block that it takes, and the two beside them. */
export function sevenMethods({ account, token, slot, block }: Subject): readonly Call[] {
  const number: Hex = `0x${block.number.toString(16)}`
  const named = [...tags, number]
  const hashed = [...named, block.hash, { blockHash: block.hash }]
  return [
    ...named.flatMap((at) => [true, false].map((full) => ({ method: 'eth_getBlockByNumber', params: [at, full] }))),
    ...named.map((at) => ({ method: 'eth_getLogs', params: [{ fromBlock: at, toBlock: at, address: token }] })),
    ...['latest', 'pending'].map((toBlock) => ({ method: 'eth_getLogs', params: [{ fromBlock: number, toBlock }] })),
    { method: 'eth_getLogs', params: [{ blockHash: block.hash }] },
    ...hashed.flatMap((at) => [
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
export async function openResting(settings: Record<string, string> = {}): Promise<World & { subject: Subject }> {
  const devnet = await openDevnet({ pace: 'manual', receipts: true })
  transfer({ devnet }, 'AAPLc', 2)
  transfer({ devnet }, 'TSLAc')
  const { number, hash } = devnet.seal()
  transfer({ devnet })
  devnet.seal()
  transfer({ devnet })
  const relay = await relayOn(devnet, { ...ample, ...settings })
  const token = devnet.list.addressOf('AAPLc')
  return { devnet, relay, subject: { account: devnet.custodian, token, slot: '0x2', block: { number, hash } } }
}

/** Some blocks with movements of two tokens, and one without. */
export function live(world: Pick<World, 'devnet'>): void {
  for (const times of [1, 2]) {
    transfer(world, 'AAPLc', times)
    transfer(world, 'TSLAc', times)
    world.devnet.seal()
  }
  world.devnet.seal()
  transfer(world, 'AAPLc')
  world.devnet.seal()
}

const sealedAbove = ({ chain }: Devnet, after: number) =>
  Array.from({ length: chain.head.number - after }, (_, at) => chain.block(after + 1 + at)).filter((one) => one != null)

/** The hashes of the sealed blocks above one. */
export const blocksAbove = (devnet: Devnet, after: number): readonly string[] =>
  sealedAbove(devnet, after).map(({ hash }) => hash)

/** The sealed logs above a block, of one token or of all. */
export const logsAbove = (devnet: Devnet, after: number, symbol?: string): readonly Log[] =>
  sealedAbove(devnet, after)
    .flatMap(({ logs }) => logs)
    .filter(({ address }) => symbol === undefined || address === devnet.list.addressOf(symbol))

/** Where each of them is. */
export const placesAbove = (...which: Parameters<typeof logsAbove>): readonly string[] =>
  logsAbove(...which).map(placeOf)

/** Where a log is, which no other is; in hex or as a number, as clients have it. */
export const placeOf = ({ blockHash, logIndex }: { readonly blockHash?: unknown; readonly logIndex?: unknown }) =>
  `${blockHash} ${Number(logIndex)}`

/** Posts a call; the JSON that comes back. */
async function post({ url }: Door, call: Call): Promise<unknown> {
  const response = await fetch(url, {
    method: 'POST',
    headers: { 'content-type': 'application/json' },
    body: JSON.stringify({ jsonrpc: '2.0', id: 1, ...call }),
  })
  return await response.json()
}

/** Resolves when two doors know the same chain: the newest sealed block, and what is pre-confirmed. */
export async function agreeing(one: Door, other: Door): Promise<void> {
  const blocks = ['latest', 'pending'].map((at) => ({ method: 'eth_getBlockByNumber', params: [at, false] }))
  const seen = async (door: Door) => JSON.stringify(await Promise.all(blocks.map((block) => post(door, block))))
  await until(async () => (await seen(one)) === (await seen(other)), 'that both know the same chain')
}

/** Resolves once a condition holds. */
export async function until(holds: () => boolean | Promise<boolean>, what: string): Promise<void> {
  await vi.waitUntil(holds, LATEST_MS).catch(() => {
    throw new Error(`waited in vain for ${what}`)
  })
}

/** A wire to a door, which can be cut; and how often somebody came over it. */
export async function openWire({ wsUrl }: Door): Promise<{ wsUrl: string; calls: () => number; cut: () => void }> {
  const { hostname, port, pathname } = new URL(wsUrl)
  const ends = new Set<Socket>()
  let calls = 0
  const server = createServer((near) => {
    calls += 1
    const far = dial(Number(port), hostname)
    near.pipe(far).pipe(near)
    for (const end of [near, far]) {
      ends.add(end)
      end.on('error', () => end.destroy())
      end.once('close', () => ends.delete(end))
    }
  })
  server.listen(0, '127.0.0.1')
  await once(server, 'listening')
  const cut = () => {
    for (const end of ends) end.destroy()
  }
  onTestFinished(() => {
    cut()
    server.close()
  })
  return { wsUrl: `ws://127.0.0.1:${(server.address() as AddressInfo).port}${pathname}`, calls: () => calls, cut }
}
