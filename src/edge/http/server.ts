import { createServer, type IncomingMessage, type Server, type ServerResponse } from 'node:http'
import type { AddressInfo, Socket } from 'node:net'
import type { Duplex } from 'node:stream'
import type { HttpBindings } from '@hono/node-server'
import { getRequestListener, RequestError } from '@hono/node-server'
import type { Hono } from 'hono'
import type { RpcLines } from '../../gateway/sockets.ts'
import { Refusal } from '../../protocol/refusal.ts'
import { Silences } from '../limits/idle-sockets.ts'
import type { Streams } from '../live/http-stream.ts'
import { isTaken, release } from '../transport/takeover.ts'
import { refuse, serveWebSockets } from './upgrade.ts'

/** How long a client may take. */
const BOUNDS_MS = {
  headers: 10_000,
  request: 15_000,
  keepAlive: 5_000,
  /** A connection that says nothing at all is covered by no other deadline. */
  silence: 15_000,
  /** How often the first two are looked at; Node's own 30 s would make up to 40 s of 10. */
  look: 1_000,
}
const HEADERS_BOUND_BYTES = 8_192
/** A request with more headers than this is no request of a reader. */
const HEADERS_BOUND = 100
/** One after the other on a connection that is kept. */
const REQUESTS_BOUND = 1_000
/** Connections beyond those of the listeners: who asks for history, health or metrics, and who is turned away. */
const SPARE_CONNECTIONS = 1_000
/** How often a server that stops looks for connections on which nothing is left to answer. */
const IDLE_EVERY_MS = 50

/** Where those who know no other protocol than HTTP ask: their libraries may offer HTTP/2 by themselves. */
const plainly = /^\/(rpc|v1\/tokenized-stocks)(?![^/?])/

/** What Node's parser says of a request that it gives up on. */
const faults: Readonly<Record<string, number>> = { HPE_HEADER_OVERFLOW: 431, ERR_HTTP_REQUEST_TIMEOUT: 408 }

const tooManyHeaders = new Refusal(431, 'too_many_headers', `A request has at most ${HEADERS_BOUND} headers.`)

const recordHeaders = { 'content-type': 'application/json', 'access-control-allow-origin': '*' } as const

/** The place could not be listened on; says which and why. */
export class ListenError extends Error {}

/** One listening server: HTTP and WebSocket on the same port. */
export type EdgeServer = {
  readonly port: number
  /** Takes no more, and resolves when everybody has left or the time is over. */
  close(withinMs: number): Promise<void>
}

export async function listen(
  app: Hono<{ Bindings: HttpBindings }>,
  { streams, lines }: { readonly streams: Streams; readonly lines: RpcLines },
  at: { readonly host: string; readonly port: number; readonly clientsBound: number },
  boundsMs: Readonly<typeof BOUNDS_MS> = BOUNDS_MS,
): Promise<EdgeServer> {
  const answer = getRequestListener(app.fetch, { errorHandler: answerTo })
  const bounds = {
    headersTimeout: boundsMs.headers,
    requestTimeout: boundsMs.request,
    connectionsCheckingInterval: boundsMs.look,
    keepAliveTimeout: boundsMs.keepAlive,
    // A request without one is answered by us, with a record like every other mistake.
    requireHostHeader: false,
    maxHeaderSize: HEADERS_BOUND_BYTES,
    noDelay: true,
    // Whoever merely offers another protocol is answered in this one, where a plain answer is what is wanted.
    shouldUpgradeCallback: ({ headers, url }: IncomingMessage) =>
      headers.upgrade?.toLowerCase() === 'websocket' || !plainly.test(url ?? ''),
  }
  const silences = new Silences(boundsMs.silence)
  const owed = new WeakMap<Duplex, number>()
  const owe = (socket: Duplex, outgoing: ServerResponse) => {
    owed.set(socket, (owed.get(socket) ?? 0) + 1)
    outgoing.once('close', () => owed.set(socket, (owed.get(socket) ?? 1) - 1))
  }
  const server = createServer(bounds, (incoming, outgoing) => {
    silences.broken(incoming.socket)
    if (isTaken(incoming.socket)) return release(incoming, outgoing)
    // Nobody needs to keep a connection to a server that stops.
    if (!server.listening) outgoing.shouldKeepAlive = false
    owe(incoming.socket, outgoing)
    if (incoming.rawHeaders.length > 2 * HEADERS_BOUND) {
      outgoing.writeHead(431, { ...recordHeaders, connection: 'close' }).end(JSON.stringify(tooManyHeaders.record))
      return
    }
    void answer(incoming, outgoing)
  })
  server.maxConnections = at.clientsBound + SPARE_CONNECTIONS
  server.maxRequestsPerSocket = REQUESTS_BOUND
  // Those that became WebSockets are no longer known to the server itself.
  const sockets = new Set<Socket>()
  function forget(this: Socket): void {
    sockets.delete(this)
    silences.broken(this)
  }
  server.on('connection', (socket) => {
    sockets.add(socket)
    socket.on('close', forget)
    silences.begin(socket)
  })
  server.prependListener('upgrade', (incoming) => silences.broken(incoming.socket))
  server.on('clientError', (fault: NodeJS.ErrnoException, socket) => {
    // Nothing may be written into an answer that is owed or under way.
    const busy = isTaken(socket) || owed.get(socket)
    if (fault.code === 'ECONNRESET' || !socket.writable || busy) return socket.destroy()
    const code = faults[fault.code ?? ''] ?? 400
    refuse(socket, new Refusal(code, 'bad_request', 'This request cannot be read as HTTP, is too large or too slow.'))
  })
  const webSockets = serveWebSockets(server, streams, lines)
  await listening(server, at)
  return {
    port: (server.address() as AddressInfo).port,
    async close(withinMs) {
      const closed = new Promise<void>((resolve) => server.close(() => resolve()))
      const idle = setInterval(() => {
        server.closeIdleConnections()
        // Those that never asked anything are not among them.
        for (const socket of sockets) if (socket.bytesRead === 0) socket.destroy()
      }, IDLE_EVERY_MS)
      const late = setTimeout(() => {
        for (const socket of sockets) socket.destroy()
      }, withinMs)
      await closed
      clearTimeout(late)
      clearInterval(idle)
      silences.close()
      webSockets.close()
    },
  }
}

/** What never reached a route is answered like every other mistake. */
function answerTo(failure: unknown): Response {
  const { code, record } =
    failure instanceof RequestError
      ? new Refusal(400, 'bad_request', 'The address or the host of this request cannot be read.')
      : new Refusal(500, 'internal', 'Something failed on this side; try again.')
  return Response.json(record, { status: code, headers: { ...recordHeaders, connection: 'close' } })
}

const listening = (server: Server, { host, port }: { host: string; port: number }): Promise<void> =>
  new Promise((resolve, reject) => {
    server.once('error', (failure: NodeJS.ErrnoException) => {
      const why =
        failure.code === 'EADDRINUSE'
          ? 'is in use: stop what listens there or set another PORT'
          : `cannot be listened on (${failure.message}): set another HOST or PORT`
      reject(new ListenError(`port ${port} on ${host} ${why}`))
    })
    server.listen(port, host, resolve)
  })
