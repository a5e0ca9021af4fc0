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
  url = ''

  constructor(tokens: number) {
    this.chain = new LightChain(tokens)
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
    this.url = `http://127.0.0.1:${(server.address() as AddressInfo).port}`
  }

  /** Makes transfers and pushes each in a message of its own, all with one write. */
  push(from: number, count: number): void {
    const logs = this.chain.push(from, count)
    for (const { socket, client, pendingLogs } of this.#subscribers) {
      if (pendingLogs === null) continue
      socket.cork()
      for (const log of logs) client.send(notification(pendingLogs, log))
      socket.uncork()
    }
  }

  seal(): void {
    const header = JSON.stringify(this.chain.seal())
    for (const { client, newHeads } of this.#subscribers) if (newHeads !== null) client.send(notification(newHeads, header))
  }

  #answerSocket(subscriber: Subscriber, { id, method, params }: Request): string {
    const [kind] = params
    if (method === 'eth_unsubscribe') return answerTo(id, 'true')
    if (method !== 'eth_subscribe') return answerTo(id, this.chain.answer(method, params))
    if (kind !== 'pendingLogs' && kind !== 'newHeads') return answerTo(id, undefined)
    this.#lastSubscription += 1
    subscriber[kind] = `0x${this.#lastSubscription.toString(16)}`
    if (kind === 'pendingLogs') this.#subscribed.resolve()
    return answerTo(id, `"${subscriber[kind]}"`)
  }

  async #answerRequest(request: IncomingMessage, response: ServerResponse): Promise<void> {
    response.setHeader('content-type', 'application/json')
    if (request.method === 'GET') return void response.end(this.chain.list)
    const chunks: Buffer[] = []
    for await (const chunk of request) chunks.push(chunk)
    const { id, method, params }: Request = JSON.parse(Buffer.concat(chunks).toString())
    response.end(answerTo(id, this.chain.answer(method, params)))
  }
}

const answerTo = (id: unknown, result: string | undefined): string =>
  `{"jsonrpc":"2.0","id":${JSON.stringify(id)},${result === undefined ? `"error":${UNKNOWN_METHOD}` : `"result":${result}`}}`

const notification = (subscription: string, result: string): string =>
  `{"jsonrpc":"2.0","method":"eth_subscription","params":{"subscription":"${subscription}","result":${result}}}`
