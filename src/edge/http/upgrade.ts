import { type IncomingMessage, type Server, STATUS_CODES } from 'node:http'
import type { Socket } from 'node:net'
import type { Duplex } from 'node:stream'
import { type RawData, WebSocketServer } from 'ws'
import { RPC_CHUNKS_BOUND, RPC_MESSAGE_BOUND_BYTES, type RpcSockets } from '../../gateway/sockets.ts'
import { Refusal } from '../../protocol/refusal.ts'
import { MESSAGE_BOUND_BYTES } from '../../protocol/requests.ts'
import { PerTickQueue } from '../limits/per-tick.ts'
import type { StreamServices } from '../live/http-stream.ts'
import { WebSocketSession } from '../live/websocket-session.ts'
import { goingAway } from '../transport/shared-refusals.ts'
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

/** What is behind a path: how large a message may be, and what is done with a socket that comes in. */
type WebSocketRoute = {
  readonly webSocketServer: WebSocketServer
  /** Why nobody can come in now; said in plain HTTP. */
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
export function serveWebSockets(server: Server, streams: StreamServices, rpcSockets: RpcSockets): { close(): void } {
  const routes: Readonly<Record<string, WebSocketRoute>> = {
    '/v1/ws': {
      webSocketServer: openWebSocketServer(MESSAGE_BOUND_BYTES, CHUNKS_BOUND),
      // Whoever speaks our own protocol is told in its own words.
      refusalFor: () => null,
      accept: (webSocket, socket, client) => openSession(webSocket, socket, client, streams),
    },
    '/rpc': {
      webSocketServer: openWebSocketServer(RPC_MESSAGE_BOUND_BYTES, RPC_CHUNKS_BOUND),
      refusalFor: (address, forbidden) => forbidden ?? rpcSockets.refusalFor(address),
      accept: (webSocket, socket, { address }) => rpcSockets.accept(webSocket, socket, address),
    },
  }
  const upgrade = (incoming: IncomingMessage, socket: Socket, head: Buffer): void => {
    const url = URL.canParse(incoming.url ?? '', 'http://localhost')
      ? new URL(incoming.url ?? '', 'http://localhost')
      : null
    const upgradeRefusal = upgradeRefusalOf(incoming, url, streams)
    if (upgradeRefusal || !url)
      return refuse(socket, upgradeRefusal ?? new Refusal(400, 'bad_request', 'The address cannot be read.'))
    const route = routes[url.pathname]
    if (!route) return refuse(socket, unknownPath(Object.keys(routes)))
    const query = url.searchParams
    const client = { query, address: streams.clientAddressOf(incoming), forbidden: streams.authorize(incoming, query) }
    const refusal = route.refusalFor(client.address, client.forbidden)
    if (refusal) return refuse(socket, refusal)
    route.webSocketServer.handleUpgrade(incoming, socket, head, (webSocket) =>
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
      for (const { webSocketServer } of Object.values(routes)) webSocketServer.close()
    },
  }
}

function openWebSocketServer(maxPayload: number, maxBufferedChunks: number): WebSocketServer {
  const webSocketServer = new WebSocketServer({
    noServer: true,
    maxPayload,
    perMessageDeflate: false,
    clientTracking: false,
    WebSocket: ServerWebSocket,
    handleProtocols: (offered) => (offered.has(SUBPROTOCOL) ? SUBPROTOCOL : false),
    // Known to ws, not yet to its types.
    ...{ maxFragments: FRAGMENTS_BOUND, maxBufferedChunks, closeTimeout: CLOSE_BOUND_MS },
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
  return url && edge.hub.isDraining ? goingAway : null
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
