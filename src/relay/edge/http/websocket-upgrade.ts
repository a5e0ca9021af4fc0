import type { IncomingMessage, Server } from 'node:http'
import type { Socket } from 'node:net'
import type { Duplex } from 'node:stream'
import { WebSocketServer } from 'ws'
import type { Refusal } from '../../../protocol/refusal.ts'
import { MESSAGE_BOUND_BYTES } from '../../../protocol/requests.ts'
import { mayAuthenticate } from '../limits/authorizer.ts'
import { PerTickQueue } from '../limits/per-tick-queue.ts'
import type { StreamServices } from '../live/edge-context.ts'
import { lastEventIdOf } from '../live/http-stream.ts'
import { WebSocketSession } from '../live/websocket-session.ts'
import { acceptDeflateOffer, type Compression } from '../transport/deflate-offer.ts'
import { goingAway } from '../transport/shared-refusals.ts'
import { discardInput, isTaken } from '../transport/socket-takeover.ts'
import { ServerWebSocket, WebSocketOutlet } from '../transport/websocket-outlet.ts'
import {
  badHandshake,
  hasTooManyHeaders,
  sendRawRefusal,
  tooManyHeaders,
  unknownWebSocketPath,
  unreadableAddress,
  wrongHttpVersion,
} from './http-refusals.ts'
import type { PipelinedRequests } from './pipelined-requests.ts'

const SUBPROTOCOL = 'stocktape.v1'
/** A closing handshake that the client never finishes is cut after this. */
const CLOSE_BOUND_MS = 5_000
const FRAGMENTS_BOUND = 16
/** Packets that one message of a stream client may come in. */
const CHUNKS_BOUND = 64
/** Handshakes in one turn of the event loop. */
const HANDSHAKES_PER_TICK = 50

/** A path that accepts WebSockets. */
export type WebSocketRoute = {
  readonly path: string
  /** The bounds of one message: its bytes, and the packets that it may come in. */
  readonly messageBoundBytes: number
  readonly chunksBound: number
  /** Whether messages are compressed for clients that offer it. */
  readonly compresses: boolean
  /** Why a client is refused now, in plain HTTP; null if it is accepted. */
  readonly refusalFor: (address: string, forbidden: Refusal | null) => Refusal | null
  readonly accept: (webSocket: ServerWebSocket, socket: Socket, client: UpgradeClient) => void
}

type UpgradeClient = {
  readonly query: URLSearchParams
  /** The header; empty without one. */
  readonly lastEventId: string
  readonly address: string
  readonly compression: Compression
  /** Why the client lacks access; null if it has it. */
  readonly forbidden: Refusal | null
  /** Whether its first message may change that. */
  readonly mayAuthenticate: boolean
}

export type WebSocketServices = {
  readonly streams: StreamServices
  /** Those beside `/v1/ws`. */
  readonly webSocketRoutes: readonly WebSocketRoute[]
  /** Why no WebSocket is accepted at all. */
  readonly refusal?: Refusal | null
}

/** Answers every upgrade: a path of ours becomes a WebSocket, anything else gets a refusal in plain HTTP. */
export function serveWebSockets(
  server: Server,
  requests: Pick<PipelinedRequests, 'release'>,
  { streams, webSocketRoutes, refusal: refusalOfAll = null }: WebSocketServices,
): { close(): void } {
  const refuse = (socket: Duplex, refusal: Refusal): void => {
    streams.countRefusal(refusal.code)
    sendRawRefusal(socket, refusal)
  }
  const servers = [streamRoute(streams), ...webSocketRoutes].map((route) => ({ route, server: openWebSocketServer(route, refuse) }))
  const byPath = new Map(servers.map((target) => [target.route.path, target]))
  const upgrade = (incoming: IncomingMessage, socket: Socket, head: Buffer): void => {
    const url = URL.parse(incoming.url ?? '', 'http://localhost')
    const requestRefusal = requestRefusalOf(incoming)
    if (requestRefusal || !url) return refuse(socket, requestRefusal ?? unreadableAddress)
    if (refusalOfAll) return refuse(socket, refusalOfAll)
    if (streams.edge.hub.isDraining) return refuse(socket, goingAway)
    const target = byPath.get(url.pathname)
    if (!target) return refuse(socket, unknownWebSocketPath([...byPath.keys()]))
    const query = url.searchParams
    const [address, forbidden] = [streams.clientAddressOf(incoming), streams.authorize(incoming, query)]
    const refusal = target.route.refusalFor(address, forbidden)
    if (refusal) return refuse(socket, refusal)
    const lastEventId = lastEventIdOf(incoming)
    const client = {
      ...{ query, lastEventId, address, forbidden },
      mayAuthenticate: mayAuthenticate(incoming, query, forbidden),
      compression: negotiateCompression(incoming, target.route),
    }
    target.server.handleUpgrade(incoming, socket, head, (webSocket) =>
      target.route.accept(webSocket as ServerWebSocket, socket, client),
    )
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

const streamRoute = (streams: StreamServices): WebSocketRoute => ({
  path: '/v1/ws',
  messageBoundBytes: MESSAGE_BOUND_BYTES,
  chunksBound: CHUNKS_BOUND,
  compresses: streams.compression,
  // A client of our own protocol gets the refusal as a message of that protocol.
  refusalFor: () => null,
  accept: (webSocket, socket, client) => openSession(webSocket, socket, client, streams),
})

function openWebSocketServer(
  { messageBoundBytes, chunksBound, compresses }: WebSocketRoute,
  refuse: (socket: Duplex, refusal: Refusal) => void,
): WebSocketServer {
  const webSocketServer = new WebSocketServer({
    noServer: true,
    maxPayload: messageBoundBytes,
    // Each client message is inflated alone, so nothing is kept for the next one.
    perMessageDeflate: compresses && { clientNoContextTakeover: true, zlibInflateOptions: { chunkSize: messageBoundBytes } },
    clientTracking: false,
    WebSocket: ServerWebSocket,
    handleProtocols: (offered) => (offered.has(SUBPROTOCOL) ? SUBPROTOCOL : false),
    // Known to ws, not yet to its types.
    ...{ maxFragments: FRAGMENTS_BOUND, maxBufferedChunks: chunksBound, closeTimeout: CLOSE_BOUND_MS },
  })
  // A handshake that `ws` rejects gets the same error record as every other mistake.
  webSocketServer.on('wsClientError', ({ message }, socket) => refuse(socket, badHandshake(message)))
  return webSocketServer
}

function requestRefusalOf({ httpVersion, rawHeaders }: IncomingMessage): Refusal | null {
  if (hasTooManyHeaders(rawHeaders)) return tooManyHeaders
  return httpVersion === '1.1' ? null : wrongHttpVersion
}

/** Leaves only the offer that is accepted in the request, so that `ws` answers it as it stands. */
function negotiateCompression({ headers }: IncomingMessage, { compresses }: WebSocketRoute): Compression {
  const offer = compresses ? acceptDeflateOffer(headers['sec-websocket-extensions'] ?? '') : null
  if (offer) headers['sec-websocket-extensions'] = offer.header
  else delete headers['sec-websocket-extensions']
  return offer?.compression ?? 'none'
}

/** One function for all sockets: a closure per socket would cost memory for each listener. */
function destroySocket(this: Duplex): void {
  this.destroy()
}

function openSession(
  webSocket: ServerWebSocket,
  socket: Socket,
  { query, lastEventId, address, compression, forbidden, mayAuthenticate: mayWait }: UpgradeClient,
  streams: StreamServices,
): void {
  const outlet = new WebSocketOutlet(webSocket, socket)
  const session = new WebSocketSession(outlet, address, compression, streams)
  webSocket.events = session
  // From here on `ws` handles errors of the socket.
  socket.off('error', destroySocket)
  if (mayWait) session.waitForKey(query, lastEventId)
  else session.open(query, lastEventId, forbidden)
}
