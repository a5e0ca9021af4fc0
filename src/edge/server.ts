import { createServer, type Server } from 'node:http'
import type { AddressInfo, Socket } from 'node:net'
import type { HttpBindings } from '@hono/node-server'
import { getRequestListener } from '@hono/node-server'
import type { Hono } from 'hono'
import { Refusal } from '../protocol/refusal.ts'
import type { Streams } from './stream.ts'
import { isTaken, release } from './takeover.ts'
import { refuse, serveWebSockets } from './ws.ts'

const HEADERS_BOUND_MS = 10_000
const REQUEST_BOUND_MS = 15_000
const KEEP_ALIVE_MS = 5_000
const HEADERS_BOUND_BYTES = 8_192
/** A request with more headers than this is no request of a reader. */
const HEADERS_BOUND = 100
/** One after the other on a connection that is kept. */
const REQUESTS_BOUND = 1_000
/** Connections beyond those of the listeners: who asks for history, health or metrics, and who is turned away. */
const SPARE_CONNECTIONS = 1_000
/** A connection that says nothing at all is covered by no other deadline. */
const SILENCE_BOUND_MS = 15_000

/** What Node's parser says of a request that it gives up on. */
const faults: Readonly<Record<string, number>> = { HPE_HEADER_OVERFLOW: 431, ERR_HTTP_REQUEST_TIMEOUT: 408 }

const tooManyHeaders = new Refusal(431, 'too_many_headers', `A request has at most ${HEADERS_BOUND} headers.`)

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
  streams: Streams,
  at: { readonly host: string; readonly port: number; readonly clientsBound: number },
): Promise<EdgeServer> {
  const answer = getRequestListener(app.fetch)
  const bounds = {
    headersTimeout: HEADERS_BOUND_MS,
    requestTimeout: REQUEST_BOUND_MS,
    keepAliveTimeout: KEEP_ALIVE_MS,
    maxHeaderSize: HEADERS_BOUND_BYTES,
    noDelay: true,
  }
  const server = createServer(bounds, (incoming, outgoing) => {
    incoming.socket.setTimeout(0)
    if (isTaken(incoming.socket)) return release(incoming, outgoing)
    if (incoming.rawHeaders.length > 2 * HEADERS_BOUND) return refuse(incoming.socket, tooManyHeaders)
    void answer(incoming, outgoing)
  })
  server.maxConnections = at.clientsBound + SPARE_CONNECTIONS
  server.maxRequestsPerSocket = REQUESTS_BOUND
  // Those that became WebSockets are no longer known to the server itself.
  const sockets = new Set<Socket>()
  server.on('connection', (socket) => {
    sockets.add(socket)
    socket.on('close', () => sockets.delete(socket))
    socket.setTimeout(SILENCE_BOUND_MS, () => socket.destroy())
  })
  server.prependListener('upgrade', (incoming) => incoming.socket.setTimeout(0))
  server.on('clientError', (fault: NodeJS.ErrnoException, socket) => {
    if (fault.code === 'ECONNRESET' || !socket.writable) return socket.destroy()
    const code = faults[fault.code ?? ''] ?? 400
    refuse(socket, new Refusal(code, 'bad_request', 'This request cannot be read as HTTP, is too large or too slow.'))
  })
  const webSockets = serveWebSockets(server, streams)
  await listening(server, at)
  return {
    port: (server.address() as AddressInfo).port,
    async close(withinMs) {
      const closed = new Promise<void>((resolve) => server.close(() => resolve()))
      server.closeIdleConnections()
      const late = setTimeout(() => {
        for (const socket of sockets) socket.destroy()
      }, withinMs)
      await closed
      clearTimeout(late)
      webSockets.close()
    },
  }
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
