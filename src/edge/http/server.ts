import { createServer, type IncomingMessage, type Server, type ServerResponse } from 'node:http'
import type { AddressInfo, Socket } from 'node:net'
import type { Duplex } from 'node:stream'
import type { HttpBindings } from '@hono/node-server'
import { getRequestListener, RequestError } from '@hono/node-server'
import type { Hono } from 'hono'
import type { RpcSockets } from '../../gateway/sockets.ts'
import { Refusal } from '../../protocol/refusal.ts'
import { IdleSockets } from '../limits/idle-sockets.ts'
import type { StreamServices } from '../live/http-stream.ts'
import { internalError } from '../transport/shared-refusals.ts'
import { detach, isTaken } from '../transport/takeover.ts'
import { refuse, serveWebSockets } from './upgrade.ts'

/** How long a client may take. */
const BOUNDS_MS = {
  headers: 10_000,
  request: 15_000,
  keepAlive: 5_000,
  /** A connection that says nothing at all is covered by no other deadline. */
  idle: 15_000,
  /** How often the first two are looked at; Node's own 30 s would make up to 40 s of 10. */
  check: 1_000,
}
const HEADERS_BOUND_BYTES = 8_192
/** A request with more headers than this is no request of a reader. */
const HEADERS_BOUND = 100
/** One after the other on a connection that is kept. */
const REQUESTS_BOUND = 1_000
/** Connections beyond those of the listeners: who asks for history, health or metrics, and who is turned away. */
const SPARE_CONNECTIONS = 1_000
/** How often a server that stops looks for connections on which nothing is left to answer. */
const IDLE_CHECK_MS = 50

/** Where those who know no other protocol than HTTP ask: their libraries may offer HTTP/2 by themselves. */
const plainHttpPaths = /^\/(rpc|v1\/tokenized-stocks)(?![^/?])/

/** What Node's parser says of a request that it gives up on. */
const parserErrorStatuses: Readonly<Record<string, number>> = {
  HPE_HEADER_OVERFLOW: 431,
  ERR_HTTP_REQUEST_TIMEOUT: 408,
}

const tooManyHeaders = new Refusal(431, 'too_many_headers', `A request has at most ${HEADERS_BOUND} headers.`)

const errorHeaders = { 'content-type': 'application/json', 'access-control-allow-origin': '*' } as const

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
  { streams, lines: rpcSockets }: { readonly streams: StreamServices; readonly lines: RpcSockets },
  listenAt: { readonly host: string; readonly port: number; readonly clientsBound: number },
  boundsMs: Readonly<typeof BOUNDS_MS> = BOUNDS_MS,
): Promise<EdgeServer> {
  const handle = getRequestListener(app.fetch, { errorHandler: errorResponse })
  const serverOptions = {
    headersTimeout: boundsMs.headers,
    requestTimeout: boundsMs.request,
    connectionsCheckingInterval: boundsMs.check,
    keepAliveTimeout: boundsMs.keepAlive,
    // A request without one is answered by us, with a record like every other mistake.
    requireHostHeader: false,
    maxHeaderSize: HEADERS_BOUND_BYTES,
    noDelay: true,
    // Whoever merely offers another protocol is answered in this one, where a plain answer is what is wanted.
    shouldUpgradeCallback: ({ headers, url }: IncomingMessage) =>
      headers.upgrade?.toLowerCase() === 'websocket' || !plainHttpPaths.test(url ?? ''),
  }
  const idleSockets = new IdleSockets(boundsMs.idle)
  const pendingAnswers = new WeakMap<Duplex, number>()
  const trackAnswer = (socket: Duplex, outgoing: ServerResponse) => {
    pendingAnswers.set(socket, (pendingAnswers.get(socket) ?? 0) + 1)
    outgoing.once('close', () => pendingAnswers.set(socket, (pendingAnswers.get(socket) ?? 1) - 1))
  }
  const server = createServer(serverOptions, (incoming, outgoing) => {
    idleSockets.remove(incoming.socket)
    if (isTaken(incoming.socket)) return detach(incoming, outgoing)
    // Nobody needs to keep a connection to a server that stops.
    if (!server.listening) outgoing.shouldKeepAlive = false
    trackAnswer(incoming.socket, outgoing)
    if (incoming.rawHeaders.length > 2 * HEADERS_BOUND) {
      outgoing.writeHead(431, { ...errorHeaders, connection: 'close' }).end(JSON.stringify(tooManyHeaders.record))
      return
    }
    void handle(incoming, outgoing)
  })
  server.maxConnections = listenAt.clientsBound + SPARE_CONNECTIONS
  server.maxRequestsPerSocket = REQUESTS_BOUND
  // Those that became WebSockets are no longer known to the server itself.
  const sockets = new Set<Socket>()
  function forget(this: Socket): void {
    sockets.delete(this)
    idleSockets.remove(this)
  }
  server.on('connection', (socket) => {
    sockets.add(socket)
    socket.on('close', forget)
    idleSockets.add(socket)
  })
  server.prependListener('upgrade', (incoming) => idleSockets.remove(incoming.socket))
  server.on('clientError', (error: NodeJS.ErrnoException, socket) => {
    // Nothing may be written into an answer that is owed or under way.
    const isBusy = isTaken(socket) || pendingAnswers.get(socket)
    if (error.code === 'ECONNRESET' || !socket.writable || isBusy) return socket.destroy()
    const code = parserErrorStatuses[error.code ?? ''] ?? 400
    refuse(socket, new Refusal(code, 'bad_request', 'This request cannot be read as HTTP, is too large or too slow.'))
  })
  const webSockets = serveWebSockets(server, streams, rpcSockets)
  await startListening(server, listenAt)
  return {
    port: (server.address() as AddressInfo).port,
    async close(withinMs) {
      const closed = new Promise<void>((resolve) => server.close(() => resolve()))
      const idleTimer = setInterval(() => {
        server.closeIdleConnections()
        // Those that never asked anything are not among them.
        for (const socket of sockets) if (socket.bytesRead === 0) socket.destroy()
      }, IDLE_CHECK_MS)
      const deadline = setTimeout(() => {
        for (const socket of sockets) socket.destroy()
      }, withinMs)
      await closed
      clearTimeout(deadline)
      clearInterval(idleTimer)
      idleSockets.close()
      webSockets.close()
    },
  }
}

/** What never reached a route is answered like every other mistake. */
function errorResponse(failure: unknown): Response {
  const { code, record } =
    failure instanceof RequestError
      ? new Refusal(400, 'bad_request', 'The address or the host of this request cannot be read.')
      : internalError
  return Response.json(record, { status: code, headers: { ...errorHeaders, connection: 'close' } })
}

const startListening = (server: Server, { host, port }: { host: string; port: number }): Promise<void> =>
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
