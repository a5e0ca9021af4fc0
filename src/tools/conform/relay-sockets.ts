import { createServer, type IncomingMessage, type Server, type ServerResponse } from 'node:http'
import type { AddressInfo } from 'node:net'
import type { Duplex } from 'node:stream'
import { type WebSocket, WebSocketServer } from 'ws'
import { ConditionWatchers } from '../../lib/condition-watchers.ts'
import { parseJson } from '../../lib/safe-json.ts'
import { contentTypeOf, formatOf, framings } from '../../protocol/transports.ts'
import type { Carrier, ScriptedConnection } from '../../sdk/testing/scripted-connection.ts'
import { ScriptedRelay } from '../../sdk/testing/scripted-relay.ts'
import type { ExactTape } from './exact-tape.ts'

/** Limit of connections that wait for a scenario. Only a faulty client opens more. */
const WAITING_BOUND = 100
const MESSAGE_BOUND_BYTES = 4_096
/** Time that a browser waits before it reconnects. */
const RETRY_MS = 1_000

/** A relay that plays scenarios, behind sockets. */
export class RelaySockets {
  readonly #server: Server
  readonly #webSockets = new WebSocketServer({ noServer: true, maxPayload: MESSAGE_BOUND_BYTES })
  readonly #relay: ScriptedRelay<ExactTape>
  readonly #waiting: ScriptedConnection[] = []
  readonly #arrivals = new ConditionWatchers()

  private constructor(server: Server, tape: ExactTape) {
    this.#server = server
    this.#relay = new ScriptedRelay(tape)
    server.on('request', (request, response) => this.#onRequest(request, response))
    server.on('upgrade', (request, socket, head) => this.#onUpgrade(request, socket, head))
  }

  static async open(tape: ExactTape): Promise<RelaySockets> {
    const server = createServer()
    await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve))
    return new RelaySockets(server, tape)
  }

  get url(): string {
    return `http://127.0.0.1:${(this.#server.address() as AddressInfo).port}`
  }

  get tape(): ExactTape {
    return this.#relay.tape
  }

  set tape(tape: ExactTape) {
    this.#relay.tape = tape
  }

  get connections(): readonly ScriptedConnection[] {
    return this.#relay.connections
  }

  /** Waits for the next connection. Resolves to null if none arrives in time. */
  async nextConnection(withinMs: number): Promise<ScriptedConnection | null> {
    await this.#arrivals.until(() => this.#waiting.length > 0, withinMs)
    return this.#waiting.shift() ?? null
  }

  async close(): Promise<void> {
    for (const connection of this.connections) connection.cut()
    this.#server.closeAllConnections()
    this.#webSockets.close()
    await new Promise((resolve) => this.#server.close(resolve))
  }

  #add(transport: ScriptedConnection['transport'], query: URLSearchParams, carrier: Carrier): void {
    if (this.#waiting.length >= WAITING_BOUND) return carrier.cut()
    this.#waiting.push(this.#relay.connect(transport, query, carrier))
    this.#arrivals.notify()
  }

  #onUpgrade(request: IncomingMessage, socket: Duplex, head: Buffer): void {
    socket.on('error', () => socket.destroy())
    const { pathname, searchParams } = new URL(request.url ?? '/', 'http://relay')
    if (pathname !== '/v1/ws') return void socket.end('HTTP/1.1 404 Not Found\r\nconnection: close\r\n\r\n')
    const query = withLastEventId(searchParams, request)
    const hasSymbols = query.has('symbols')
    const upgrade = (accepted: (webSocket: WebSocket) => void) => this.#webSockets.handleUpgrade(request, socket, head, accepted)
    const carrier = webSocketCarrier(upgrade, socket, (text) => {
      if (!hasSymbols) this.#add('websocket', subscriptionOf(text), carrier)
    })
    // Without symbols in the URL, the client subscribes with its first message.
    if (hasSymbols) this.#add('websocket', query, carrier)
    else carrier.accept()
  }

  #onRequest(request: IncomingMessage, response: ServerResponse): void {
    const { pathname, searchParams } = new URL(request.url ?? '/', 'http://relay')
    if (pathname.startsWith('/v1/stream')) {
      const format = searchParams.get('format') ?? (request.headers.accept?.includes('ndjson') ? 'ndjson' : 'sse')
      const transport = format === 'ndjson' ? 'ndjson' : 'sse'
      return this.#add(transport, withLastEventId(searchParams, request), responseCarrier(response, transport))
    }
    const { status, contentType, body } = this.#relay.answer(pathname, searchParams)
    response.writeHead(status, { 'content-type': contentType }).end(body)
  }
}

function withLastEventId(query: URLSearchParams, { headers }: IncomingMessage): URLSearchParams {
  const lastEventId = headers['last-event-id']
  if (typeof lastEventId === 'string' && lastEventId !== '') query.set('since', lastEventId)
  return query
}

function subscriptionOf(text: string): URLSearchParams {
  // A client whose message is not JSON has no selection.
  const fields = Object.entries(parseJson(text) ?? {}).filter(([, value]) => value !== null)
  return new URLSearchParams(Object.fromEntries(fields.map(([name, value]) => [name, String(value)])))
}

function webSocketCarrier(
  upgrade: (accepted: (webSocket: WebSocket) => void) => void,
  socket: Duplex,
  onFirstMessage: (text: string) => void,
): Carrier {
  let webSocket: WebSocket | null = null
  const accept = () => {
    if (webSocket || socket.destroyed) return
    upgrade((accepted) => {
      webSocket = accepted
      webSocket.on('error', () => accepted.terminate())
      webSocket.once('message', (data) => onFirstMessage(String(data)))
    })
  }
  return {
    accept,
    send: (text) => webSocket?.send(text),
    close: (code, reason) => {
      accept()
      webSocket?.close(code, reason)
    },
    cut: () => socket.destroy(),
    refuse: (status, body, headers) => {
      if (webSocket) return webSocket.terminate()
      const lines = Object.entries(headers).map(([name, value]) => `${name}: ${value}\r\n`)
      socket.end(
        `HTTP/1.1 ${status} Refused\r\nconnection: close\r\n${lines.join('')}content-length: ${Buffer.byteLength(body)}\r\n\r\n${body}`,
      )
    },
    onClose: (callback) => socket.on('close', callback),
  }
}

const responseCarrier = (response: ServerResponse, transport: 'sse' | 'ndjson'): Carrier => ({
  accept: () => {
    response.writeHead(200, { 'content-type': contentTypeOf(transport), 'cache-control': 'no-cache, no-transform' })
    response.flushHeaders()
    response.write(formatOf(transport).preface(RETRY_MS))
  },
  send: (text) => response.write(framings[transport](JSON.parse(text), text)),
  close: () => response.end(),
  cut: () => response.destroy(),
  refuse: (status, body, headers) => {
    response.writeHead(status, { 'content-type': 'application/json', ...headers })
    response.end(body)
  },
  onClose: (callback) => response.on('close', callback),
})
