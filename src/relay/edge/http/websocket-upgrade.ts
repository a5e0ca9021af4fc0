import type { IncomingMessage, Server } from 'node:http'
import type { Socket } from 'node:net'
import type { Duplex } from 'node:stream'
import { WebSocketServer } from 'ws'
import type { Refusal } from '../../../protocol/refusal.ts'
import { MESSAGE_BOUND_BYTES } from '../../../protocol/requests.ts'
import { mayAuthenticate } from '../limits/authorizer.ts'
import { PerTickQueue } from '../limits/per-tick-queue.ts'
import * as refusals from '../limits/refusals.ts'
import type { EdgeContext } from '../live/edge-context.ts'
import { lastEventIdOf } from '../live/http-stream.ts'
import { WebSocketSession } from '../live/websocket-session.ts'
import { acceptDeflateOffer, type Compression } from '../transport/deflate-offer.ts'
import { sendRawRefusal } from '../transport/send-refusal.ts'
import { discardInput, isTaken } from '../transport/socket-takeover.ts'
import { ServerWebSocket, WebSocketOutlet } from '../transport/websocket-outlet.ts'
import type { PipelinedRequests } from './pipelined-requests.ts'

const SUBPROTOCOL = 'stocktape.v1'
/** Limit of the time for the closing handshake. After it the connection is cut. */
const CLOSE_BOUND_MS = 5_000
const FRAGMENTS_BOUND = 16
/** Limit of the packets into which a client of a stream may split one message. */
const CHUNKS_BOUND = 64
const HANDSHAKES_PER_TICK = 50

export type WebSocketRoute = {
  readonly path: string
  /** Limit of the bytes of one message of a client. `chunksBound` is the limit of its packets. */
  readonly messageBoundBytes: number
  readonly chunksBound: number
  readonly compresses: boolean
  /** Returns the refusal of a client in plain HTTP; null if the client is accepted. */
  readonly refusalFor: (address: string, forbidden: Refusal | null) => Refusal | null
  readonly accept: (webSocket: ServerWebSocket, socket: Socket, client: UpgradeClient) => void
}

type UpgradeClient = {
  readonly query: URLSearchParams
  readonly lastEventId: string
  readonly address: string
  readonly compression: Compression
  /** The refusal of a client without access; null if it has access. */
  readonly forbidden: Refusal | null
  /** Whether the client's first message may be its API key. */
  readonly mayAuthenticate: boolean
}

export type WebSocketServices = {
  readonly context: EdgeContext
  readonly webSocketRoutes: readonly WebSocketRoute[]
  /** Refusal of every WebSocket; absent or null if WebSockets are served. */
  readonly refusal?: Refusal | null
}

/** Answers every upgrade: opens a WebSocket on a known path, and refuses any other in plain HTTP. */
export function serveWebSockets(
  server: Server,
  requests: Pick<PipelinedRequests, 'release'>,
  { context, webSocketRoutes, refusal: refusalOfAll = null }: WebSocketServices,
): { close(): void } {
  const refuse = (socket: Duplex, refusal: Refusal, incoming?: IncomingMessage): void => {
    context.countRefusal(refusal.code, incoming)
    sendRawRefusal(socket, refusal)
  }
  const servers = [streamRoute(context), ...webSocketRoutes].map((route) => ({ route, server: openWebSocketServer(route, refuse) }))
  const byPath = new Map(servers.map((target) => [target.route.path, target]))
  const upgrade = (incoming: IncomingMessage, socket: Socket, head: Buffer): void => {
    const url = URL.parse(incoming.url ?? '', 'http://localhost')
    if (refusals.hasTooManyHeaders(incoming.rawHeaders)) return refuse(socket, refusals.tooManyHeaders)
    if (incoming.httpVersion !== '1.1') return refuse(socket, refusals.wrongHttpVersion)
    if (!url) return refuse(socket, refusals.unreadableAddress)
    if (refusalOfAll) return refuse(socket, refusalOfAll)
    if (context.clients.isDraining) return refuse(socket, refusals.goingAway, incoming)
    const target = byPath.get(url.pathname)
    if (!target) return refuse(socket, refusals.unknownWebSocketPath([...byPath.keys()]), incoming)
    const query = url.searchParams
    const address = context.clientAddressOf(incoming)
    const forbidden = context.authorize(incoming, query)
    const refusal = target.route.refusalFor(address, forbidden)
    if (refusal) return refuse(socket, refusal, incoming)
    const mayWait = mayAuthenticate(incoming, query, forbidden)
    const compression = negotiateCompression(incoming, target.route)
    const client = { query, lastEventId: lastEventIdOf(incoming), address, compression, forbidden, mayAuthenticate: mayWait }
    target.server.handleUpgrade(incoming, socket, head, (webSocket) => {
      // `ws` handles the errors of the socket from here on.
      socket.off('error', destroySocket)
      target.route.accept(webSocket as ServerWebSocket, socket, client)
    })
  }
  const handshakes = new PerTickQueue(HANDSHAKES_PER_TICK)
  const onUpgrade = (incoming: IncomingMessage, socket: Socket, head: Buffer): void => {
    if (isTaken(socket)) return requests.release(socket, () => discardInput(socket))
    socket.on('error', destroySocket)
    requests.release(socket, () => handshakes.run(() => upgrade(incoming, socket, head)))
  }
  server.on('upgrade', onUpgrade)
  return {
    close() {
      server.off('upgrade', onUpgrade)
      for (const { server: webSocketServer } of servers) webSocketServer.close()
    },
  }
}

const streamRoute = (context: EdgeContext): WebSocketRoute => ({
  path: '/v1/ws',
  messageBoundBytes: MESSAGE_BOUND_BYTES,
  chunksBound: CHUNKS_BOUND,
  compresses: context.compression,
  // The session itself sends refusals, as messages of the stream.
  refusalFor: () => null,
  accept: (webSocket, socket, { query, lastEventId, address, compression, forbidden, mayAuthenticate: mayWait }) => {
    const session = new WebSocketSession(new WebSocketOutlet(webSocket, socket), address, compression, context)
    webSocket.events = session
    if (mayWait) session.waitForApiKey(query, lastEventId)
    else session.open(query, lastEventId, forbidden)
  },
})

function openWebSocketServer(
  { messageBoundBytes, chunksBound, compresses }: WebSocketRoute,
  refuse: (socket: Duplex, refusal: Refusal) => void,
): WebSocketServer {
  const webSocketServer = new WebSocketServer({
    noServer: true,
    maxPayload: messageBoundBytes,
    // Each client message is inflated alone, so no state is kept between messages.
    perMessageDeflate: compresses && { clientNoContextTakeover: true, zlibInflateOptions: { chunkSize: messageBoundBytes } },
    clientTracking: false,
    WebSocket: ServerWebSocket,
    handleProtocols: (offered) => (offered.has(SUBPROTOCOL) ? SUBPROTOCOL : false),
    // Options that the types of `ws` lack.
    ...{ maxFragments: FRAGMENTS_BOUND, maxBufferedChunks: chunksBound, closeTimeout: CLOSE_BOUND_MS },
  })
  webSocketServer.on('wsClientError', ({ message }, socket) => refuse(socket, refusals.badHandshake(message)))
  return webSocketServer
}

/** Removes all offers but the accepted one from the request, so that `ws` confirms exactly that. */
function negotiateCompression({ headers }: IncomingMessage, { compresses }: WebSocketRoute): Compression {
  const offer = compresses ? acceptDeflateOffer(headers['sec-websocket-extensions'] ?? '') : null
  if (offer) headers['sec-websocket-extensions'] = offer.header
  else delete headers['sec-websocket-extensions']
  return offer?.compression ?? 'none'
}

/** All sockets share this function, because a closure per socket would use memory for each listener. */
function destroySocket(this: Duplex): void {
  this.destroy()
}
