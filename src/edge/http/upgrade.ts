import { type IncomingMessage, type Server, STATUS_CODES } from 'node:http'
import type { Socket } from 'node:net'
import type { Duplex } from 'node:stream'
import { type RawData, WebSocketServer } from 'ws'
import { Refusal } from '../../protocol/refusal.ts'
import { MESSAGE_BOUND_BYTES } from '../../protocol/requests.ts'
import { PerTickQueue } from '../limits/per-tick.ts'
import type { StreamServices } from '../live/http-stream.ts'
import { WebSocketSession } from '../live/websocket-session.ts'
import { discardInput, isTaken } from '../transport/takeover.ts'
import { ServerWebSocket, WebSocketOutlet } from '../transport/websocket-outlet.ts'

const SUBPROTOCOL = 'stocktape.v1'
/** The versions of the protocol that are spoken; a refusal must say them (RFC 6455 §4.4). */
const VERSIONS = '13, 8'
/** A closing handshake that the other side never finishes is cut after this. */
const CLOSE_BOUND_MS = 5_000
const FRAGMENTS_BOUND = 16
/** Packets that one message may come in. */
const CHUNKS_BOUND = 64
/** Handshakes in one turn of the event loop. */
const HANDSHAKES_PER_TICK = 50

/** A path that accepts WebSockets. */
export type WebSocketRoute = {
  readonly path: string
  /** The bounds of one message: its bytes, and the packets that it may come in. */
  readonly messageBoundBytes: number
  readonly chunksBound: number
  /** Why a client is refused now, in plain HTTP; null if it is accepted. */
  readonly refusalFor: (address: string, forbidden: Refusal | null) => Refusal | null
  readonly accept: (webSocket: ServerWebSocket, socket: Socket, client: UpgradeClient) => void
}

type UpgradeClient = {
  readonly query: URLSearchParams
  readonly address: string
  /** Why it may not listen at all. */
  readonly forbidden: Refusal | null
}

/** Answers every upgrade: what has a path of ours becomes a WebSocket, anything else gets a plain answer and is closed. */
export function serveWebSockets(
  server: Server,
  streams: StreamServices,
  extraRoutes: readonly WebSocketRoute[],
): { close(): void } {
  const servers = new Map(
    [streamRoute(streams), ...extraRoutes].map((route) => [
      route.path,
      { route, webSocketServer: openWebSocketServer(route) },
    ]),
  )
  const upgrade = (incoming: IncomingMessage, socket: Socket, head: Buffer): void => {
    const url = URL.canParse(incoming.url ?? '', 'http://localhost')
      ? new URL(incoming.url ?? '', 'http://localhost')
      : null
    const upgradeRefusal = upgradeRefusalOf(incoming, url, streams)
    if (upgradeRefusal || !url)
      return refuse(socket, upgradeRefusal ?? new Refusal(400, 'bad_request', 'The address cannot be read.'))
    const target = servers.get(url.pathname)
    if (!target) return refuse(socket, unknownPath([...servers.keys()]))
    const { route, webSocketServer } = target
    const query = url.searchParams
    const client = { query, address: streams.clientAddressOf(incoming), forbidden: streams.authorize(incoming, query) }
    const refusal = route.refusalFor(client.address, client.forbidden)
    if (refusal) return refuse(socket, refusal)
    webSocketServer.handleUpgrade(incoming, socket, head, (webSocket) =>
      route.accept(webSocket as ServerWebSocket, socket, client),
    )
  }
  const handshakes = new PerTickQueue(HANDSHAKES_PER_TICK)
  const onUpgrade = (incoming: IncomingMessage, socket: Socket, head: Buffer): void => {
    if (isTaken(socket)) return discardInput(socket)
    socket.on('error', destroySocket)
    handshakes.run(() => upgrade(incoming, socket, head))
  }
  server.on('upgrade', onUpgrade)
  return {
    close() {
      server.off('upgrade', onUpgrade)
      for (const { webSocketServer } of servers.values()) webSocketServer.close()
    },
  }
}

const streamRoute = (streams: StreamServices): WebSocketRoute => ({
  path: '/v1/ws',
  messageBoundBytes: MESSAGE_BOUND_BYTES,
  chunksBound: CHUNKS_BOUND,
  // A client of our own protocol gets the refusal as a message of that protocol.
  refusalFor: () => null,
  accept: (webSocket, socket, client) => openSession(webSocket, socket, client, streams),
})

function openWebSocketServer({ messageBoundBytes, chunksBound }: WebSocketRoute): WebSocketServer {
  const webSocketServer = new WebSocketServer({
    noServer: true,
    maxPayload: messageBoundBytes,
    perMessageDeflate: false,
    clientTracking: false,
    WebSocket: ServerWebSocket,
    handleProtocols: (offered) => (offered.has(SUBPROTOCOL) ? SUBPROTOCOL : false),
    // Known to ws, not yet to its types.
    ...{ maxFragments: FRAGMENTS_BOUND, maxBufferedChunks: chunksBound, closeTimeout: CLOSE_BOUND_MS },
  })
  // A handshake that `ws` finds fault with is answered like every other mistake.
  webSocketServer.on('wsClientError', (error, socket) =>
    refuse(socket, new Refusal(400, 'bad_handshake', `${error.message}.`)),
  )
  return webSocketServer
}

function upgradeRefusalOf(incoming: IncomingMessage, url: URL | null, { edge }: StreamServices): Refusal | null {
  if (incoming.headers.upgrade?.toLowerCase() !== 'websocket') {
    return new Refusal(400, 'bad_upgrade', 'Only websocket upgrades are answered.')
  }
  if (incoming.httpVersion !== '1.1') return new Refusal(400, 'bad_handshake', 'A WebSocket begins with HTTP/1.1.')
  if (url && edge.hub.isDraining)
    return new Refusal(503, 'going_away', 'This server is about to stop; come back in a moment.')
  return null
}

const unknownPath = (paths: readonly string[]): Refusal =>
  new Refusal(404, 'unknown_path', `There is no WebSocket at this path; they are at ${paths.join(' and ')}.`)

/** An answer in plain HTTP to what never became a WebSocket, or never was a request. */
export function refuse(socket: Duplex, refusal: Refusal): void {
  const body = JSON.stringify(refusal.record)
  const retry = refusal.code === 503 || refusal.code === 429 ? 'retry-after: 1\r\n' : ''
  const versions = refusal.reason === 'bad_handshake' ? `sec-websocket-version: ${VERSIONS}\r\n` : ''
  socket.end(
    `HTTP/1.1 ${refusal.code} ${STATUS_CODES[refusal.code]}\r\nconnection: close\r\ncontent-type: application/json\r\n` +
      `access-control-allow-origin: *\r\n` +
      `${versions}${retry}content-length: ${Buffer.byteLength(body)}\r\n\r\n${body}`,
    () => socket.destroy(),
  )
}

/** One function for all sockets: what a listener holds for as long as it stays is paid for by every listener. */
function destroySocket(this: Duplex): void {
  this.destroy()
}

function openSession(
  webSocket: ServerWebSocket,
  socket: Socket,
  { query, address, forbidden }: UpgradeClient,
  streams: StreamServices,
): void {
  const outlet = new WebSocketOutlet(webSocket, socket)
  const session = new WebSocketSession(outlet, address, streams)
  webSocket.on('message', (data: RawData, isBinary: boolean) => session.receive(isBinary ? null : String(data)))
  webSocket.on('ping', () => session.countMessage())
  webSocket.on('pong', () => {
    if (!outlet.receivePong()) session.countMessage()
  })
  const onClose = () => session.onClose()
  webSocket.on('close', onClose)
  webSocket.on('error', onClose)
  session.open(query, forbidden)
}
