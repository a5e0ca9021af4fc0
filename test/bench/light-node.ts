import { once } from 'node:events'
import { createServer, type IncomingMessage, type ServerResponse } from 'node:http'
import type { AddressInfo, Socket } from 'node:net'
import { type WebSocket, WebSocketServer } from 'ws'
import { LightChain } from './light-chain.ts'

/** An upstream that costs little: a chain and its list behind one port, for one relay. */

type Request = { readonly id: unknown; readonly method: string; readonly params: readonly unknown[] }
type Subscriber = { readonly socket: Socket; readonly client: WebSocket; pendingLogs: string | null; newHeads: string | null }

const UNKNOWN_METHOD = '{"code":-32601,"message":"the method does not exist"}'

export class LightNode {
  readonly chain: LightChain
  readonly #subscribers = new Set<Subscriber>()
  readonly #subscribed = Promise.withResolvers<void>()
  #lastSubscription = 0
  #url = ''

  constructor(tokens: number) {
    this.chain = new LightChain(tokens)
  }

  get url(): string {
    return this.#url
  }

  /** Resolves when a relay follows the pending logs. */
  get subscribed(): Promise<void> {
    return this.#subscribed.promise
  }

  async open(): Promise<void> {
    const server = createServer((request, response) => void this.#answerRequest(request, response))
    const sockets = new WebSocketServer({ server, perMessageDeflate: false })
    sockets.on('connection', (client, { socket }) => {
      socket.setNoDelay(true)
      const subscriber: Subscriber = { socket, client, pendingLogs: null, newHeads: null }
      this.#subscribers.add(subscriber)
      client.on('message', (data) => client.send(this.#answerSocket(subscriber, JSON.parse(String(data)))))
      client.on('close', () => this.#subscribers.delete(subscriber))
      client.on('error', () => {})
    })
    server.listen(0, '127.0.0.1')
    await once(server, 'listening')
    this.#url = `http://127.0.0.1:${(server.address() as AddressInfo).port}`
  }

  /** Makes transfers and pushes each in a message of its own. */
  push(from: number, count: number): void {
    const [subscriber] = [...this.#subscribers].filter(({ pendingLogs }) => pendingLogs !== null)
    const frames = this.chain.push(from, count, subscriber?.pendingLogs ?? null)
    subscriber?.socket.write(frames)
  }

  seal(): void {
    const result = this.chain.seal()
    for (const { client, newHeads } of this.#subscribers) {
      if (newHeads === null) continue
      client.send(JSON.stringify({ jsonrpc: '2.0', method: 'eth_subscription', params: { subscription: newHeads, result } }))
    }
  }

  #answerSocket(subscriber: Subscriber, { id, method, params }: Request): string {
    if (method === 'eth_unsubscribe') return JSON.stringify({ jsonrpc: '2.0', id, result: true })
    if (method !== 'eth_subscribe') return String(this.#envelope(id, this.chain.answer(method, params)))
    const [kind] = params
    if (kind !== 'pendingLogs' && kind !== 'newHeads') return String(this.#envelope(id, undefined))
    this.#lastSubscription += 1
    subscriber[kind] = `0x${this.#lastSubscription.toString(16)}`
    if (kind === 'pendingLogs') this.#subscribed.resolve()
    return JSON.stringify({ jsonrpc: '2.0', id, result: subscriber[kind] })
  }

  async #answerRequest(request: IncomingMessage, response: ServerResponse): Promise<void> {
    response.setHeader('content-type', 'application/json')
    if (request.method === 'GET') return void response.end(this.chain.list)
    const chunks: Buffer[] = []
    for await (const chunk of request) chunks.push(chunk)
    const { id, method, params }: Request = JSON.parse(Buffer.concat(chunks).toString())
    response.end(this.#envelope(id, this.chain.answer(method, params)))
  }

  #envelope(id: unknown, result: string | Buffer | undefined): Buffer {
    const head = `{"jsonrpc":"2.0","id":${JSON.stringify(id)},`
    if (result === undefined) return Buffer.from(`${head}"error":${UNKNOWN_METHOD}}`)
    return Buffer.concat([Buffer.from(`${head}"result":`), Buffer.from(result), Buffer.from('}')])
  }
}
