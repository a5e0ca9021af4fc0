import type { ServerResponse } from 'node:http'
import { expect } from 'vitest'
import { type Devnet, type DevnetOptions, startDevnet } from '../../../src/devnet/devnet.ts'
import { openRelay, type TestRelay } from '../../support/in-process-relay.ts'
import { listenNdjson } from '../../support/test-listener.ts'
import { openRelayFor } from '../../support/test-stack.ts'
import { openEndpoint, type Responder } from '../../unit/chain/rpc/fake-endpoint.ts'
import { ALICE, BOB, rpcCall, startManualDevnet, ZERO } from '../../unit/devnet/devnet-client.ts'

/** A node, and the same node as it is asked through a relay. */
type NodeAndGateway = { readonly devnet: Devnet; readonly node: Devnet }

/** Both, for the tests of a file that only read. */
export type GatewayStack = NodeAndGateway & { readonly relay: TestRelay; stop(): Promise<void> }

/** A devnet asked through another door. */
export const throughRelay = (devnet: Devnet, { url }: Pick<TestRelay, 'url'>): Devnet => ({
  ...devnet,
  rpcUrl: `${url}/rpc`,
})

/** Whoever asks as eager as these tests do is nobody's concern here. */
export const highRpcRateSettings = { RPC_RATE: '1000000' }

/** Two transfers that are sealed, one that is pre-confirmed, and a relay that knows how far the chain is. */
export async function openGatewayStack(
  options: DevnetOptions = {},
  settings: Record<string, string> = {},
): Promise<GatewayStack> {
  const devnet = await startDevnet({ pace: 'manual', ...options })
  produceTransfers(devnet)
  const relay = await openRelay(devnet, { ...highRpcRateSettings, ...settings })
  await waitUntilCaughtUp(relay)
  return {
    devnet,
    relay,
    node: throughRelay(devnet, relay),
    async stop() {
      await relay.stop()
      await devnet.stop()
    },
  }
}

/** A devnet where nothing happens by itself and a relay in front of it; both end with the test. */
export async function openGatewayForTest(
  options: DevnetOptions = {},
  settings: Record<string, string> = {},
): Promise<NodeAndGateway> {
  const devnet = await startManualDevnet(options)
  return { devnet, node: throughRelay(devnet, await openRelayFor(devnet, { ...highRpcRateSettings, ...settings })) }
}

/** What there is to be read. */
export function produceTransfers(devnet: Devnet): void {
  devnet.transfer({ symbol: 'AAPLc', from: ZERO, to: ALICE, raw: 500n })
  devnet.makeFlashblock()
  devnet.transfer({ symbol: 'AAPLc', from: ALICE, to: BOB, raw: 200n })
  devnet.makeFlashblock()
  devnet.seal()
  devnet.transfer({ symbol: 'AAPLc', from: ALICE, to: BOB, raw: 50n })
  devnet.makeFlashblock()
}

/** Resolves once a relay is pushed its logs and knows the head. */
export async function waitUntilCaughtUp({ url }: Pick<TestRelay, 'url'>): Promise<void> {
  const listener = await listenNdjson(`${url}/v1/stream?symbols=*&snapshot=false&heartbeat=1`)
  await listener.waitFor('heartbeat', ({ source, head }) => source === 'pendingLogs' && head.sealed !== null)
  listener.close()
}

/** Asks the relay and the node itself, who must say the same; the result. */
export async function expectSameAnswer(
  { node, devnet }: NodeAndGateway,
  method: string,
  ...params: unknown[]
): Promise<unknown> {
  const published = await rpcCall(node, method, ...params)
  expect(published).toEqual(await rpcCall(devnet, method, ...params))
  return published.result
}

/** One request as it is posted. */
export const request = (method: string, params: readonly unknown[] = [], id: unknown = 1) => ({
  jsonrpc: '2.0',
  id,
  method,
  params,
})

export const quantity = (amount: number): `0x${string}` => `0x${amount.toString(16)}`

type RpcRequestBody = Parameters<Responder>[0]

/** A node that says what the devnet says, but for what a test answers itself. */
export const nodeWithOverrides = (devnet: Devnet, answers: (request: RpcRequestBody) => Responder | null) =>
  openEndpoint((request, response) => (answers(request) ?? forwardToDevnet(devnet))(request, response), {
    chain: devnet.chainId,
  })

const forwardToDevnet =
  (devnet: Devnet): Responder =>
  (request, response) =>
    // A devnet that is stopped says nothing any more.
    void forward(devnet, request, response).catch(() => response.destroy())

async function forward(devnet: Devnet, request: RpcRequestBody, response: ServerResponse): Promise<void> {
  const headers = { 'content-type': 'application/json' }
  const answer = await fetch(devnet.rpcUrl, { method: 'POST', headers, body: JSON.stringify(request) })
  response.writeHead(answer.status, headers).end(await answer.text())
}
