import { createServer, type IncomingMessage, request, type ServerResponse } from 'node:http'
import type { AddressInfo } from 'node:net'
import type { onTestFinished } from 'vitest'
import { WebSocket, WebSocketServer } from 'ws'

/** A seeded proxy loses one message of the tape in so many. */
const LOSES_ONE_IN = 100

type TestLifecycle = { readonly onTestFinished: typeof onTestFinished }

/** Between a client and the relay: it loses messages of the tape, while heartbeats and all else go through. */
export class LossyProxy {
  readonly #target: string
  readonly #server = createServer((incoming, response) => this.#forward(incoming, response))
  readonly #sockets = new WebSocketServer({ noServer: true })
  readonly #cuts = new Set<() => void>()
  #seed: number
  /** The positions of the messages that it lost. */
  readonly lost: string[] = []
  /** The position of the newest heartbeat that went through. */
  heartbeat = ''

  private constructor(target: string, seed: number) {
    this.#target = target
    this.#seed = seed
    this.#server.on('upgrade', (incoming, socket, head) =>
      this.#sockets.handleUpgrade(incoming, socket, head, (client) => this.#connect(client, incoming.url ?? '')),
    )
  }

  static async open(test: TestLifecycle, target: string, seed: number): Promise<LossyProxy> {
    const proxy = new LossyProxy(target, seed)
    await new Promise<void>((resolve) => proxy.#server.listen(0, '127.0.0.1', resolve))
    test.onTestFinished(() => {
      proxy.cut()
      proxy.#server.closeAllConnections()
      proxy.#server.close()
    })
    return proxy
  }

  get url(): string {
    return `http://127.0.0.1:${(this.#server.address() as AddressInfo).port}`
  }

  /** Ends every connection, as a network does. */
  cut(): void {
    for (const cut of this.#cuts) cut()
    this.#cuts.clear()
  }

  #isLost(text: string): boolean {
    if (text.startsWith('{"type":"heartbeat"')) this.heartbeat = JSON.parse(text).id
    if (!text.includes('"prev":')) return false
    this.#seed = (this.#seed * 1_103_515_245 + 12_345) % 2 ** 31
    if (Math.floor((this.#seed / 2 ** 31) * LOSES_ONE_IN) > 0) return false
    this.lost.push(JSON.parse(text).id)
    return true
  }

  #connect(client: WebSocket, path: string): void {
    const relay = new WebSocket(this.#target.replace('http', 'ws') + path, 'stocktape.v1')
    relay.on('message', (data) => this.#isLost(String(data)) || client.send(String(data)))
    relay.on('error', () => client.terminate())
    relay.on('close', (code, reason) => (code >= 4_000 ? client.close(code, String(reason)) : client.terminate()))
    client.on('close', () => relay.terminate())
    this.#cuts.add(() => client.terminate())
  }

  #forward(incoming: IncomingMessage, response: ServerResponse): void {
    const { method, headers, url = '' } = incoming
    const outgoing = request(this.#target + url, { method, headers }, (answer) => {
      response.writeHead(answer.statusCode ?? 502, answer.headers)
      answer.on('error', () => response.destroy())
      if (answer.headers['content-type']?.startsWith('text/event-stream')) this.#forwardEvents(answer, response)
      else answer.pipe(response)
    })
    outgoing.on('error', () => response.destroy())
    response.on('close', () => outgoing.destroy())
    this.#cuts.add(() => response.destroy())
    incoming.pipe(outgoing)
  }

  /** Event by event: each ends with an empty line. */
  #forwardEvents(answer: IncomingMessage, response: ServerResponse): void {
    let rest = ''
    answer.setEncoding('utf8').on('data', (text: string) => {
      const events = (rest + text).split('\n\n')
      rest = events.pop() ?? ''
      for (const event of events) {
        const data = event.split('\n').find((line) => line.startsWith('data: '))
        if (!data || !this.#isLost(data.slice(6))) response.write(`${event}\n\n`)
      }
    })
    answer.on('end', () => response.end())
  }
}
