import { once } from 'node:events'
import { createServer, type IncomingMessage, type ServerResponse } from 'node:http'
import type { AddressInfo } from 'node:net'
import { expect, onTestFinished } from 'vitest'
import { ChainIdentity } from '../../../../../src/relay/chain/rpc/chain-identity.ts'
import { EndpointPool } from '../../../../../src/relay/chain/rpc/endpoint-pool.ts'
import { UpstreamError } from '../../../../../src/relay/chain/rpc/upstream-error.ts'

export const CHAIN_ID = 84_532

type RpcRequest = { readonly id: number; readonly method: string; readonly params: readonly unknown[] }
export type Responder = (call: RpcRequest, response: ServerResponse) => void

export const sendJson = (response: ServerResponse, body: unknown, status = 200, headers: Record<string, string> = {}) => {
  response.writeHead(status, { 'content-type': 'application/json', ...headers }).end(JSON.stringify(body))
}
export const resultResponder =
  (value: unknown): Responder =>
  ({ id }, response) =>
    sendJson(response, { jsonrpc: '2.0', id, result: value })
export const errorResponder =
  (status: number, code: number, message: string, headers: Record<string, string> = {}): Responder =>
  ({ id }, response) =>
    sendJson(response, { jsonrpc: '2.0', id, error: { code, message } }, status, headers)
export const rawResponder =
  (status: number, body = '', headers: Record<string, string> = {}): Responder =>
  (_, response) => {
    response.writeHead(status, headers).end(body)
  }

/** An HTTP endpoint on loopback with its own chain and scripted answers. */
export const openEndpoint = async (respond: Responder, { chain = CHAIN_ID }: { chain?: number | Responder } = {}) => {
  const requests: RpcRequest[] = []
  const node = { url: '', requests, respond, chain, methods: () => requests.map(({ method }) => method) }
  const server = createServer((request: IncomingMessage, response: ServerResponse) => {
    let body = ''
    request.on('data', (chunk) => {
      body += chunk
    })
    request.on('end', () => {
      const call: RpcRequest = JSON.parse(body)
      requests.push(call)
      if (call.method !== 'eth_chainId') return node.respond(call, response)
      if (typeof node.chain === 'function') return node.chain(call, response)
      resultResponder(`0x${node.chain.toString(16)}`)(call, response)
    })
  })
  server.listen(0, '127.0.0.1')
  await once(server, 'listening')
  onTestFinished(() => {
    server.closeAllConnections()
    server.close()
  })
  node.url = `http://127.0.0.1:${(server.address() as AddressInfo).port}/key-9f8e7d`
  return node
}

/** A client of these endpoints, with a clock that only the test moves. */
export const openEndpointPool = (urls: readonly string[], chain = new ChainIdentity(CHAIN_ID, 'CHAIN_ID')) => {
  const clock = { now: 1_000_000 }
  const warnings: { kind: string; detail: unknown }[] = []
  const rpc = new EndpointPool({
    urls,
    chain,
    now: () => clock.now,
    random: () => 0.5,
    log: (kind, detail) => warnings.push({ kind, detail }),
  })
  const blockNumber = () => rpc.request('eth_blockNumber', [])
  return { rpc, chain, clock, warnings, blockNumber }
}

/** An endpoint that answers like this, and its client. */
export const openOne = async (respond: Responder, options?: Parameters<typeof openEndpoint>[1]) => {
  const node = await openEndpoint(respond, options)
  return { node, ...openEndpointPool([node.url]) }
}

/** Two endpoints that answer like this, and their client. */
export const openTwo = async (firstResponds: Responder, secondResponds: Responder) => {
  const [first, second] = [await openEndpoint(firstResponds), await openEndpoint(secondResponds)]
  return { first, second, ...openEndpointPool([first.url, second.url]) }
}

export const failureOf = async (answer: Promise<unknown>): Promise<UpstreamError> => {
  const failure = await answer.then(
    () => null,
    (error: unknown) => error,
  )
  expect(failure).toBeInstanceOf(UpstreamError)
  return failure as UpstreamError
}
