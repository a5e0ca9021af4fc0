import type { ServerResponse } from 'node:http'
import { expect } from 'vitest'
import { type Devnet, type DevnetOptions, startDevnet } from '../../../src/devnet/devnet.ts'
import { openRelay, type TestRelay } from '../../support/in-process-relay.ts'
import { listenNdjson } from '../../support/test-listener.ts'
import { relayOn } from '../../support/test-stack.ts'
import { type Answering, endpoint } from '../../unit/chain/rpc/fake-endpoint.ts'
import { ALICE, ask, BOB, manual, ZERO } from '../../unit/devnet/devnet-client.ts'

/** A node, and the same node as it is asked through a relay. */
type Pair = { readonly devnet: Devnet; readonly node: Devnet }

/** Both, for the tests of a file that only read. */
export type Rows = Pair & { readonly relay: TestRelay; stop(): Promise<void> }

/** A devnet asked through another door. */
export const through = (devnet: Devnet, { url }: Pick<TestRelay, 'url'>): Devnet => ({
  ...devnet,
  rpcUrl: `${url}/rpc`,
})

/** Whoever asks as eager as these tests do is nobody's concern here. */
export const eager = { RPC_RATE: '1000000' }

/** Two transfers that are sealed, one that is pre-confirmed, and a relay that knows how far the chain is. */
export async function openRows(options: DevnetOptions = {}, settings: Record<string, string> = {}): Promise<Rows> {
  const devnet = await startDevnet({ pace: 'manual', ...options })
  happen(devnet)
  const relay = await openRelay(devnet, { ...eager, ...settings })
  await caughtUp(relay)
  return {
    devnet,
    relay,
    node: through(devnet, relay),
    async stop() {
      await relay.stop()
      await devnet.stop()
    },
  }
}

/** A devnet where nothing happens by itself and a relay in front of it; both end with the test. */
export async function ownRows(options: DevnetOptions = {}, settings: Record<string, string> = {}): Promise<Pair> {
  const devnet = await manual(options)
  return { devnet, node: through(devnet, await relayOn(devnet, { ...eager, ...settings })) }
}

/** What there is to be read. */
export function happen(devnet: Devnet): void {
  devnet.transfer({ symbol: 'AAPLc', from: ZERO, to: ALICE, raw: 500n })
  devnet.flash()
  devnet.transfer({ symbol: 'AAPLc', from: ALICE, to: BOB, raw: 200n })
  devnet.flash()
  devnet.seal()
  devnet.transfer({ symbol: 'AAPLc', from: ALICE, to: BOB, raw: 50n })
  devnet.flash()
}

/** Resolves once a relay is pushed its logs and knows the head. */
export async function caughtUp({ url }: Pick<TestRelay, 'url'>): Promise<void> {
  const ear = await listenNdjson(`${url}/v1/stream?symbols=*&snapshot=false&heartbeat=1`)
  await ear.hear('heartbeat', ({ source, head }) => source === 'pendingLogs' && head.sealed !== null)
  ear.close()
}

/** Asks the relay and the node itself, who must say the same; the result. */
export async function same({ node, devnet }: Pair, method: string, ...params: unknown[]): Promise<unknown> {
  const told = await ask(node, method, ...params)
  expect(told).toEqual(await ask(devnet, method, ...params))
  return told.result
}

/** One request as it is posted. */
export const request = (method: string, params: readonly unknown[] = [], id: unknown = 1) => ({
  jsonrpc: '2.0',
  id,
  method,
  params,
})

export const quantity = (amount: number): `0x${string}` => `0x${amount.toString(16)}`

type Question = Parameters<Answering>[0]

/** A node that says what the devnet says, but for what a test answers itself. */
export const standIn = (devnet: Devnet, answers: (question: Question) => Answering | null) =>
  endpoint((question, response) => (answers(question) ?? passedOn(devnet))(question, response), {
    chain: devnet.chainId,
  })

const passedOn =
  (devnet: Devnet): Answering =>
  (question, response) =>
    // A devnet that is stopped says nothing any more.
    void pass(devnet, question, response).catch(() => response.destroy())

async function pass(devnet: Devnet, question: Question, response: ServerResponse): Promise<void> {
  const headers = { 'content-type': 'application/json' }
  const answer = await fetch(devnet.rpcUrl, { method: 'POST', headers, body: JSON.stringify(question) })
  response.writeHead(answer.status, headers).end(await answer.text())
}
