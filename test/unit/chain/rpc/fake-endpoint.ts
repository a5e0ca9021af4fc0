import { once } from 'node:events'
import { createServer, type IncomingMessage, type ServerResponse } from 'node:http'
import type { AddressInfo } from 'node:net'
import { firstValueFrom } from 'rxjs'
import { expect, onTestFinished } from 'vitest'
import { ChainIdentity } from '../../../../src/chain/rpc/chain-id.ts'
import { Rpc } from '../../../../src/chain/rpc/client.ts'
import { UpstreamError } from '../../../../src/chain/rpc/error.ts'

export const CHAIN = 84_532

type Question = { readonly id: number; readonly method: string; readonly params: readonly unknown[] }
export type Answering = (question: Question, response: ServerResponse) => void

export const json = (response: ServerResponse, body: unknown, status = 200, headers: Record<string, string> = {}) => {
  response.writeHead(status, { 'content-type': 'application/json', ...headers }).end(JSON.stringify(body))
}
export const result =
  (value: unknown): Answering =>
  ({ id }, response) =>
    json(response, { jsonrpc: '2.0', id, result: value })
export const refusal =
  (status: number, code: number, message: string, headers: Record<string, string> = {}): Answering =>
  ({ id }, response) =>
    json(response, { jsonrpc: '2.0', id, error: { code, message } }, status, headers)
export const bare =
  (status: number, body = '', headers: Record<string, string> = {}): Answering =>
  (_, response) => {
    response.writeHead(status, headers).end(body)
  }

/** An endpoint on loopback that knows its chain and answers the rest as it is told. */
export const endpoint = async (answering: Answering, { chain = CHAIN }: { chain?: number | Answering } = {}) => {
  const asked: Question[] = []
  const node = { url: '', asked, answering, chain, methods: () => asked.map(({ method }) => method) }
  const server = createServer((request: IncomingMessage, response: ServerResponse) => {
    let body = ''
    request.on('data', (chunk) => {
      body += chunk
    })
    request.on('end', () => {
      const question: Question = JSON.parse(body)
      asked.push(question)
      if (question.method !== 'eth_chainId') return node.answering(question, response)
      if (typeof node.chain === 'function') return node.chain(question, response)
      result(`0x${node.chain.toString(16)}`)(question, response)
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

/** Asks these endpoints, with a clock that stands still until the test moves it. */
export const asker = (urls: readonly string[], chain = new ChainIdentity(CHAIN, 'CHAIN_ID')) => {
  const clock = { now: 1_000_000 }
  const said: { kind: string; detail: unknown }[] = []
  const rpc = new Rpc({
    urls,
    chain,
    now: () => clock.now,
    dice: () => 0.5,
    say: (kind, detail) => said.push({ kind, detail }),
  })
  const blockNumber = () => firstValueFrom(rpc.ask('eth_blockNumber', []))
  return { rpc, clock, said, blockNumber }
}

export const failureOf = async (answer: Promise<unknown>): Promise<UpstreamError> => {
  const failure = await answer.then(
    () => null,
    (error: unknown) => error,
  )
  expect(failure).toBeInstanceOf(UpstreamError)
  return failure as UpstreamError
}
