import type { ServerResponse } from 'node:http'
import { afterAll, beforeAll, expect, onTestFinished } from 'vitest'
import type { Devnet, DevnetOptions } from '../../../src/devnet/devnet.ts'
import { ACCOUNTS, serveList, startAnvil } from '../../support/anvil-node.ts'
import { openRelay, type TestRelay } from '../../support/in-process-relay.ts'
import type { QuerySubject } from '../../support/rpc-scenarios.ts'
import { listenNdjson } from '../../support/test-listener.ts'
import { openDevnet, openRelayFor, type TestLifecycle } from '../../support/test-stack.ts'
import { ALICE, BOB, rpcCall, startManualDevnet, ZERO } from '../../unit/devnet/devnet-client.ts'
import { openEndpoint, type Responder } from '../../unit/relay/chain/rpc/fake-endpoint.ts'

/** A node, and the same node as clients reach it through the relay. */
type NodeAndGateway = { readonly devnet: Devnet; readonly node: Devnet }

/** Limits that no test reaches by accident. */
export const highLimits = { RPC_RATE: '1000000', MAX_CLIENTS_PER_ADDRESS: '5000' }

/** The devnet with the relay's `/rpc` as its address. */
export const throughRelay = (devnet: Devnet, { url }: Pick<TestRelay, 'url'>): Devnet => ({ ...devnet, rpcUrl: `${url}/rpc` })

/** Opens something before the tests of a file and closes it after them. */
export function openedOnce<T>(open: (lifecycle: TestLifecycle) => Promise<T>): () => T {
  const cleanups: (() => unknown)[] = []
  let opened: { readonly value: T } | undefined
  beforeAll(async () => {
    const onTestFinished: TestLifecycle['onTestFinished'] = (cleanup) => void cleanups.unshift(cleanup as () => unknown)
    opened = { value: await open({ onTestFinished }) }
  })
  afterAll(async () => {
    for (const cleanup of cleanups) await cleanup()
  })
  return () => {
    if (!opened) throw new Error('opened only while tests run')
    return opened.value
  }
}

/** For tests that only read: two sealed transfers, one pre-confirmed, and a relay that knows the head. */
export const gatewayWithTransfers = (options: DevnetOptions = {}): (() => NodeAndGateway) =>
  openedOnce(async (lifecycle) => {
    const devnet = await openDevnet({ pace: 'manual', ...options }, lifecycle)
    produceTransfers(devnet)
    const relay = await openRelayFor(devnet, highLimits, lifecycle)
    await waitUntilCaughtUp(relay)
    return { devnet, node: throughRelay(devnet, relay) }
  })

/** A devnet that the test drives by hand and a relay in front of it; both end with the test. */
export async function openGatewayForTest(settings: Record<string, string> = {}): Promise<NodeAndGateway> {
  const devnet = await startManualDevnet()
  return { devnet, node: throughRelay(devnet, await openRelayFor(devnet, { ...highLimits, ...settings })) }
}

/** A real node with a mint and a transfer, blocks between them, and a relay in front of it; all end with the test. */
export async function openAnvilGateway(blocksBetween = 0) {
  const anvil = await startAnvil()
  onTestFinished(() => anvil.kill())
  await anvil.send({ functionName: 'mint', args: [ACCOUNTS[0], 1_000n] })
  if (blocksBetween > 0) await anvil.rpc('anvil_mine', blocksBetween)
  await anvil.send({ functionName: 'transfer', args: [ACCOUNTS[1], 7n] })
  const number = Number(await anvil.rpc('eth_blockNumber'))
  const { hash } = await anvil.block(number)
  const list = await serveList({ contract_address: anvil.token, symbol: 'TESTc', name: 'Test', decimals: 8 })
  onTestFinished(() => list.stop())
  const relay = await openRelay({ ...anvil, url: list.url }, highLimits)
  onTestFinished(() => relay.stop())
  const subject = { account: ACCOUNTS[0], token: anvil.token, slot: '0x0', block: { number, hash } } as QuerySubject
  return { anvil, relay, subject }
}

export function produceTransfers(devnet: Devnet): void {
  devnet.transfer({ symbol: 'AAPLc', from: ZERO, to: ALICE, raw: 500n })
  devnet.makeFlashblock()
  devnet.transfer({ symbol: 'AAPLc', from: ALICE, to: BOB, raw: 200n })
  devnet.makeFlashblock()
  devnet.seal()
  devnet.transfer({ symbol: 'AAPLc', from: ALICE, to: BOB, raw: 50n })
  devnet.makeFlashblock()
}

/** Resolves once the relay receives pushed logs and knows the head. */
async function waitUntilCaughtUp({ url }: Pick<TestRelay, 'url'>): Promise<void> {
  const listener = await listenNdjson(`${url}/v1/stream?symbols=*&snapshot=false&heartbeat=1`)
  await listener.waitFor('heartbeat', ({ source, head }) => source === 'pendingLogs' && head.sealed !== null)
  listener.close()
}

/** Asks the relay and the node, whose answers must be equal. */
export async function expectSameAnswer({ node, devnet }: NodeAndGateway, method: string, ...params: unknown[]) {
  const answer = await rpcCall(node, method, ...params)
  expect(answer).toEqual(await rpcCall(devnet, method, ...params))
  return answer
}

export const request = (method: string, params?: unknown, id: unknown = 1) => ({ jsonrpc: '2.0', id, method, params })

export const quantity = (amount: number): `0x${string}` => `0x${amount.toString(16)}`

type RpcRequestBody = Parameters<Responder>[0]
type Override = (request: RpcRequestBody) => Responder | null

/** Answers one method itself; the devnet answers the others. */
export const overrideMethod =
  (method: string, respond: Responder): Override =>
  (request) =>
    request.method === method ? respond : null

/** A relay whose node answers some requests as the test says and the others as the devnet does. */
export async function openGatewayWithOverrides(
  override: Override,
  settingsFor = (upstreamUrl: string, _: Devnet): Record<string, string> => ({ UPSTREAM_RPC_URL: upstreamUrl }),
) {
  const devnet = await startManualDevnet()
  const upstream = await openEndpoint((request, response) => (override(request) ?? forwardTo(devnet))(request, response), {
    chain: devnet.chainId,
  })
  const relay = await openRelayFor(devnet, { ...highLimits, ...settingsFor(upstream.url, devnet) })
  return { devnet, upstream, relay, node: throughRelay(devnet, relay) }
}

const forwardTo =
  (devnet: Devnet): Responder =>
  (request, response) =>
    // The devnet may have stopped already.
    void forward(devnet, request, response).catch(() => response.destroy())

async function forward(devnet: Devnet, request: RpcRequestBody, response: ServerResponse): Promise<void> {
  const headers = { 'content-type': 'application/json' }
  const answer = await fetch(devnet.rpcUrl, { method: 'POST', headers, body: JSON.stringify(request) })
  response.writeHead(answer.status, headers).end(await answer.text())
}
