import { createServer, type IncomingMessage, type Server, type ServerOptions, type ServerResponse } from 'node:http'
import type { AddressInfo, Socket } from 'node:net'
import type { Duplex } from 'node:stream'
import type { HttpBindings } from '@hono/node-server'
import { getRequestListener } from '@hono/node-server'
import type { Hono } from 'hono'
import type { Refusal } from '../../protocol/refusal.ts'
import { IdleSockets } from '../limits/idle-sockets.ts'
import type { StreamServices } from '../live/http-stream.ts'
import { detach, isTaken } from '../transport/takeover.ts'
import { HEADERS_BOUND, refusalHeaders, refusalResponse, sendRawRefusal, tooManyHeaders, unreadableRequest } from './refusals.ts'
import { serveWebSockets, type WebSocketRoute } from './upgrade.ts'

/** How long a client may take. */
const BOUNDS_MS = {
  headers: 10_000,
  request: 15_000,
  keepAlive: 5_000,
  /** For a connection that sends nothing at all: no other deadline covers it. */
  idle: 15_000,
  /** How often Node checks the first two. Its default of 30 s would make up to 40 s of 10. */
  check: 1_000,
}
const HEADERS_BOUND_BYTES = 8_192
/** Requests one after the other on a connection that is kept. */
const REQUESTS_BOUND = 1_000
/** Connections beyond those of the listeners: for history, health and metrics, and to refuse the others. */
const SPARE_CONNECTIONS = 1_000
/** How often a stopping server looks for connections with nothing left to answer. */
const IDLE_CHECK_MS = 50

/** The statuses of the errors of Node's HTTP parser. */
const parserErrorStatuses: Readonly<Record<string, number>> = { HPE_HEADER_OVERFLOW: 431, ERR_HTTP_REQUEST_TIMEOUT: 408 }

/** The port cannot be listened on; the message says which and why. */
export class ListenError extends Error {}

/** One listening server: HTTP and WebSocket on the same port. */
export type EdgeServer = {
  readonly port: number
  /** Accepts no new connection, and resolves when all have ended or the time is over. */
  close(withinMs: number): Promise<void>
}

export async function listen(
  app: Hono<{ Bindings: HttpBindings }>,
  services: {
    readonly streams: StreamServices
    readonly webSocketRoutes: readonly WebSocketRoute[]
    /** Why no WebSocket is accepted at all. */
    readonly refusal?: Refusal | null
  },
  address: { readonly host: string; readonly port: number; readonly clientsBound: number },
  boundsMs: Readonly<typeof BOUNDS_MS> = BOUNDS_MS,
): Promise<EdgeServer> {
  const connections = new Connections(boundsMs.idle)
  const handle = getRequestListener(app.fetch, { errorHandler: refusalResponse })
  const server = createServer(serverOptions(boundsMs), (incoming, outgoing) => {
    connections.startAnswer(incoming.socket, outgoing)
    if (isTaken(incoming.socket)) return detach(incoming, outgoing)
    // A stopping server keeps no connection open for a next request.
    if (!server.listening) outgoing.shouldKeepAlive = false
    if (incoming.rawHeaders.length <= 2 * HEADERS_BOUND) return void handle(incoming, outgoing)
    outgoing.writeHead(431, refusalHeaders).end(JSON.stringify(tooManyHeaders.record))
  })
  server.maxConnections = address.clientsBound + SPARE_CONNECTIONS
  server.maxRequestsPerSocket = REQUESTS_BOUND
  server.on('connection', (socket) => connections.add(socket))
  server.prependListener('upgrade', ({ socket }) => connections.markUsed(socket))
  server.on('clientError', (error: NodeJS.ErrnoException, socket) => {
    // The error must not be written into an answer that is due or under way.
    const isBusy = isTaken(socket) || connections.isAnswering(socket)
    if (error.code === 'ECONNRESET' || !socket.writable || isBusy) return socket.destroy()
    sendRawRefusal(socket, unreadableRequest(parserErrorStatuses[error.code ?? ''] ?? 400))
  })
  const webSockets = serveWebSockets(server, services.streams, services.webSocketRoutes, services.refusal)
  await startListening(server, address)
  return {
    port: (server.address() as AddressInfo).port,
    close: async (withinMs) => {
      await closeServer(server, connections, withinMs)
      connections.close()
      webSockets.close()
    },
  }
}

const serverOptions = (boundsMs: Readonly<typeof BOUNDS_MS>): ServerOptions => ({
  headersTimeout: boundsMs.headers,
  requestTimeout: boundsMs.request,
  connectionsCheckingInterval: boundsMs.check,
  keepAliveTimeout: boundsMs.keepAlive,
  // The relay answers a request without a host itself, with an error record like for every other mistake.
  requireHostHeader: false,
  maxHeaderSize: HEADERS_BOUND_BYTES,
  noDelay: true,
  // A client that merely offers another protocol, such as h2c, gets its answer over HTTP/1.1.
  shouldUpgradeCallback: ({ headers }: IncomingMessage) => headers.upgrade?.toLowerCase() === 'websocket',
})

/** All connections. Node's server forgets those that became WebSockets or streams. */
class Connections {
  readonly #sockets = new Set<Socket>()
  readonly #idleSockets: IdleSockets
  readonly #pendingAnswers = new WeakMap<Duplex, number>()
  readonly #remove: (this: Socket) => void

  constructor(idleBoundMs: number) {
    const sockets = this.#sockets
    const idleSockets = new IdleSockets(idleBoundMs)
    this.#idleSockets = idleSockets
    // One function for all sockets, since each listener keeps its own for as long as it is connected.
    this.#remove = function remove() {
      sockets.delete(this)
      idleSockets.remove(this)
    }
  }

  add(socket: Socket): void {
    this.#sockets.add(socket)
    socket.on('close', this.#remove)
    this.#idleSockets.add(socket)
  }

  markUsed(socket: Socket): void {
    this.#idleSockets.remove(socket)
  }

  startAnswer(socket: Socket, outgoing: ServerResponse): void {
    this.markUsed(socket)
    if (isTaken(socket)) return
    this.#pendingAnswers.set(socket, (this.#pendingAnswers.get(socket) ?? 0) + 1)
    outgoing.once('close', () => this.#pendingAnswers.set(socket, (this.#pendingAnswers.get(socket) ?? 1) - 1))
  }

  isAnswering(socket: Duplex): boolean {
    return (this.#pendingAnswers.get(socket) ?? 0) > 0
  }

  /** Node does not count connections that never sent a byte as idle. */
  destroyUnused(): void {
    for (const socket of this.#sockets) if (socket.bytesRead === 0) socket.destroy()
  }

  destroyAll(): void {
    for (const socket of this.#sockets) socket.destroy()
  }

  close(): void {
    this.#idleSockets.close()
  }
}

async function closeServer(server: Server, connections: Connections, withinMs: number): Promise<void> {
  const closed = new Promise<void>((resolve) => server.close(() => resolve()))
  const idleTimer = setInterval(() => {
    server.closeIdleConnections()
    connections.destroyUnused()
  }, IDLE_CHECK_MS)
  const deadline = setTimeout(() => connections.destroyAll(), withinMs)
  await closed
  clearTimeout(deadline)
  clearInterval(idleTimer)
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
