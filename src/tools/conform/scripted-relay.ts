import { createServer, type IncomingMessage, type Server, type ServerResponse } from 'node:http'
import type { AddressInfo } from 'node:net'
import type { Duplex } from 'node:stream'
import { type WebSocket, WebSocketServer } from 'ws'
import { ConditionWatchers } from '../../lib/condition-watchers.ts'
import { parseJson } from '../../lib/safe-json.ts'
import { Refusal } from '../../protocol/refusal.ts'
import { contentTypeOf } from '../../protocol/transports.ts'
import type { Update } from '../../protocol/updates.ts'
import { lineDigest } from '../../relay/tape/line-digest.ts'
import { type Carrier, responseCarrier, ScriptedConnection, webSocketCarrier } from './scripted-connection.ts'
import type { ScriptedTape } from './scripted-tape.ts'

/** Limit of connections that wait for a scenario. Only a faulty client opens more. */
const WAITING_BOUND = 100
const MESSAGE_BOUND_BYTES = 4_096

/** A relay that plays scenarios. It shares no code with the real relay, except for the types and names of the contract. */
export class ScriptedRelay {
  readonly #server: Server
  readonly #webSockets = new WebSocketServer({ noServer: true, maxPayload: MESSAGE_BOUND_BYTES })
  readonly #waiting: ScriptedConnection[] = []
  readonly connections: ScriptedConnection[] = []
  readonly #arrivals = new ConditionWatchers()
  tape: ScriptedTape

  private constructor(server: Server, tape: ScriptedTape) {
    this.#server = server
    this.tape = tape
    server.on('request', (request, response) => this.#onRequest(request, response))
    server.on('upgrade', (request, socket, head) => this.#onUpgrade(request, socket, head))
  }

  static async open(tape: ScriptedTape): Promise<ScriptedRelay> {
    const server = createServer()
    await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve))
    return new ScriptedRelay(server, tape)
  }

  get url(): string {
    return `http://127.0.0.1:${(this.#server.address() as AddressInfo).port}`
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
    const connection = new ScriptedConnection(transport, query, carrier, () => this.tape)
    if (this.#waiting.length >= WAITING_BOUND) return connection.cut()
    this.connections.push(connection)
    this.#waiting.push(connection)
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
    if (pathname === '/v1/events' && searchParams.get('format') === 'ndjson') return this.#export(searchParams, response)
    response.setHeader('content-type', 'application/json')
    response.end(JSON.stringify(this.#answer(pathname, searchParams)))
  }

  #export(query: URLSearchParams, response: ServerResponse): void {
    const events = this.#eventsOf(query)
    const [after, through] = [query.get('after') ?? this.tape.start, query.get('through') ?? this.tape.end]
    const digest = lineDigest(events.map(({ id }) => id))
    const receipt = { type: 'receipt', after, through, messages: events.length, digest }
    response.setHeader('content-type', contentTypeOf('ndjson'))
    for (const line of query.get('receipt') === 'true' ? [...events, receipt] : events) response.write(`${JSON.stringify(line)}\n`)
    response.end()
  }

  #eventsOf(query: URLSearchParams): readonly Update[] {
    const { tape } = this
    const types = query.get('types')?.split(',')
    const isUpTo = (id: string) => Number(id.split('.')[1]) <= Number((query.get('through') ?? tape.end).split('.')[1])
    return tape.after(query.get('after') ?? tape.start).filter(({ id, type }) => isUpTo(id) && types?.includes(type) !== false)
  }

  /** Answers the requests by which a client fills a gap or draws a page. */
  #answer(pathname: string, query: URLSearchParams): object {
    const { tape } = this
    if (pathname === '/v1/snapshot') return { as_of: tape.end, snapshots: [tape.snapshot(tape.end)], rejected: [] }
    if (pathname === '/v1/status')
      return { demo: false, source: 'pendingLogs', tape: { epoch: tape.epoch, oldest: tape.start, end: tape.end, durable: true } }
    if (pathname === '/v1/events') return { events: this.#eventsOf(query), next: null }
    return new Refusal(404, 'unknown_path', 'The scripted relay does not serve this path.').record
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
