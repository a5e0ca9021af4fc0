import diagnosticsChannel from 'node:diagnostics_channel'
import { once } from 'node:events'
import type { IncomingMessage } from 'node:http'
import { connect, type Socket } from 'node:net'
import { text } from 'node:stream/consumers'
import type { HttpBindings } from '@hono/node-server'
import { Hono } from 'hono'
import { describe, expect, it, onTestFinished } from 'vitest'
import { listen } from '../../../src/relay/edge/http/http-server.ts'
import { formatRequest, openRawConnection, type RawConnection } from './raw-connection.ts'
import { handshakeRequest, RawWebSocketClient } from './raw-websocket-client.ts'
import { sharedRelayForFile } from './shared-relay.ts'
import { encodeFrame } from './websocket-frames.ts'

const sharedRelay = sharedRelayForFile()

const CONNECTIONS = 60
const REQUESTS = 200
/** As many as a connection serves. */
const CONNECTION_BOUND = 1_000
/** Requests of one connection that Node may parse, and that may begin, in one turn of the event loop. */
const [PARSED_PER_TURN_BOUND, BEGUN_PER_TURN_BOUND] = [64, 40]
/** Requests of all connections that may begin in one turn: one of each, and some of those behind them. */
const ALL_BEGUN_PER_TURN_BOUND = CONNECTIONS + 40

/** Counts what happens within one turn of the event loop, for each connection and for all. */
class CountsPerTurn {
  readonly #counts = new Map<unknown, number>()
  greatest = 0
  greatestOfAll = 0
  total = 0

  count(socket: Socket): void {
    if (this.#counts.size === 0) setImmediate(() => this.#counts.clear())
    this.total += 1
    this.greatest = Math.max(this.greatest, this.#increment(socket))
    this.greatestOfAll = Math.max(this.greatestOfAll, this.#increment('all'))
  }

  #increment(key: unknown): number {
    const count = (this.#counts.get(key) ?? 0) + 1
    this.#counts.set(key, count)
    return count
  }
}

/** A server whose answers repeat what they are asked, the odd ones a turn later. */
async function openEchoServer() {
  const [parsed, begun] = [new CountsPerTurn(), new CountsPerTurn()]
  const app = new Hono<{ Bindings: HttpBindings }>()
  app.all('/*', async (c) => {
    begun.count(c.env.incoming.socket)
    if (c.req.path.endsWith('7')) await new Promise(setImmediate)
    return c.text(`${c.req.path} ${await c.req.text()}`)
  })
  const context = { clients: { isDraining: false }, clientAddressOf: () => 'here', countRefusal() {} } as never
  const server = await listen(app, { context, webSocketRoutes: [] }, { host: '127.0.0.1', port: 0, maxClients: CONNECTIONS })
  const onStart = (message: unknown) => {
    const { request } = message as { request: IncomingMessage }
    if (request.socket.localPort === server.port) parsed.count(request.socket)
  }
  diagnosticsChannel.subscribe('http.server.request.start', onStart)
  onTestFinished(async () => {
    diagnosticsChannel.unsubscribe('http.server.request.start', onStart)
    await server.close(0)
  })
  return { parsed, begun, port: server.port }
}

async function connectTo(port: number): Promise<RawConnection> {
  const raw = await openRawConnection(`http://127.0.0.1:${port}`)
  onTestFinished(() => void raw.socket.destroy())
  return raw
}

describe('requests that many connections pipeline', () => {
  it('begin a few in each turn of the event loop, and each gets its answer in order', async () => {
    const { parsed, begun, port } = await openEchoServer()
    const pathsOf = (connection: number) => Array.from({ length: REQUESTS }, (_, at) => `/${connection}/${at}`)
    const sockets = Array.from({ length: CONNECTIONS }, () => connect(port, '127.0.0.1'))
    await Promise.all(sockets.map((socket) => once(socket, 'connect')))
    for (const [index, socket] of sockets.entries()) {
      socket.write(
        pathsOf(index)
          .map((path, at) => formatRequest(`GET ${path}`, at === REQUESTS - 1 ? ['connection: close'] : []))
          .join(''),
      )
    }
    const answers = await Promise.all(sockets.map(text))
    for (const [index, answer] of answers.entries()) {
      expect(answer.match(/\/\d+\/\d+ /g)).toEqual(pathsOf(index).map((path) => `${path} `))
    }
    expect(parsed.greatest).toBeLessThanOrEqual(PARSED_PER_TURN_BOUND)
    expect(begun.greatest).toBeLessThanOrEqual(BEGUN_PER_TURN_BOUND)
    expect(begun.greatestOfAll).toBeLessThanOrEqual(ALL_BEGUN_PER_TURN_BOUND)
  })

  it.each([
    ['are refused for what they expect', ['expect: the-unexpected'], '', 417],
    ['have a body', ['content-length: 1'], 'x', 200],
  ])('begin a few in each turn also where they %s', async (_, lines, body, status) => {
    const { parsed, port } = await openEchoServer()
    const raw = await connectTo(port)
    raw.send(formatRequest('POST /', lines, body).repeat(REQUESTS))
    for (let count = 0; count < REQUESTS; count += 1) expect((await raw.response()).status).toBe(status)
    expect(parsed.greatest).toBeLessThanOrEqual(PARSED_PER_TURN_BOUND)
  })
})

describe('a pipelined request', () => {
  it('begins when the answer before it is sent, and reads the body that is still to come', async () => {
    const { begun, port } = await openEchoServer()
    const raw = await connectTo(port)
    const [small, large] = ['x'.repeat(3_000), 'y'.repeat(300_000)]
    raw.send(
      formatRequest('POST /7', ['content-length: 3000'], small),
      formatRequest('GET /17'),
      formatRequest('POST /27', ['content-length: 300000'], large),
      formatRequest('POST /37', ['transfer-encoding: chunked'], `1388\r\n${'z'.repeat(5_000)}\r\n0\r\n\r\n`),
      formatRequest('GET /47'),
    )
    const bodies = []
    for (let count = 0; count < 5; count += 1) bodies.push((await raw.response()).body)
    expect(bodies).toEqual([`/7 ${small}`, '/17 ', `/27 ${large}`, `/37 ${'z'.repeat(5_000)}`, '/47 '])
    expect(begun.greatest).toBe(1)
  })

  it('is answered although the client has closed its half', async () => {
    const { port } = await openEchoServer()
    const raw = await connectTo(port)
    raw.send(['/7', '/1', '/2'].map((path) => formatRequest(`GET ${path}`)).join(''))
    raw.finish()
    for (const path of ['/7', '/1', '/2']) expect((await raw.response()).body).toBe(`${path} `)
  })

  it('beyond those that a connection serves is refused, and what follows is not even parsed', async () => {
    const { parsed, port } = await openEchoServer()
    const raw = await connectTo(port)
    raw.send(formatRequest('GET /').repeat(3 * CONNECTION_BOUND))
    for (let count = 0; count < CONNECTION_BOUND; count += 1) expect((await raw.response()).status).toBe(200)
    expect((await raw.response()).status).toBe(503)
    expect(parsed.total).toBeLessThanOrEqual(CONNECTION_BOUND + PARSED_PER_TURN_BOUND)
  })

  it('that is a handshake opens its WebSocket after the answers before it, with the frames behind it', async () => {
    for (const path of ['/healthz', '/metrics']) {
      const raw = await sharedRelay.connect()
      const ping = encodeFrame({ payload: '{"type":"ping","req":1}' })
      raw.send(Buffer.concat([Buffer.from(formatRequest(`GET ${path}`).repeat(3) + handshakeRequest()), ping]))
      for (let count = 0; count < 3; count += 1) expect((await raw.response()).status).toBe(200)
      const client = await RawWebSocketClient.accepted(raw)
      await client.listener.waitFor('pong')
    }
  })
})
