import { type IncomingMessage, type Server, STATUS_CODES } from 'node:http'
import type { Socket } from 'node:net'
import type { Duplex } from 'node:stream'
import { type RawData, WebSocketServer } from 'ws'
import { RPC_CHUNKS_BOUND, RPC_MESSAGE_BOUND_BYTES, type RpcLines } from '../../gateway/sockets.ts'
import { Refusal } from '../../protocol/refusal.ts'
import { MESSAGE_BOUND_BYTES } from '../../protocol/requests.ts'
import { Pace } from '../limits/per-tick.ts'
import type { Streams } from '../live/http-stream.ts'
import { Conversation } from '../live/websocket-session.ts'
import { ignore, isTaken } from '../transport/takeover.ts'
import { Line, WebSocketOutlet } from '../transport/websocket-outlet.ts'

const SUBPROTOCOL = 'stocktape.v1'
/** The versions of the protocol that are spoken; a refusal must say them (RFC 6455 §4.4). */
const VERSIONS = '13, 8'
/** A closing handshake that the other side never finishes is cut after this. */
const CLOSE_BOUND_MS = 5_000
const FRAGMENTS_BOUND = 16
/** Packets that one message may come in. */
const CHUNKS_BOUND = 64
/** Handshakes in one turn of the event loop. */
const HANDSHAKES_AT_ONCE = 50

/** What is behind a path: how large a message may be, and what is done with a socket that comes in. */
type Door = {
  readonly sockets: WebSocketServer
  /** Why nobody can come in now; said in plain HTTP. */
  readonly objection: (address: string, forbidden: Refusal | null) => Refusal | null
  readonly welcome: (line: Line, socket: Socket, caller: Caller) => void
}

type Caller = {
  readonly query: URLSearchParams
  readonly address: string
  /** Why it may not listen at all. */
  readonly forbidden: Refusal | null
}

/** Answers every upgrade: what has a path of ours becomes a WebSocket, anything else gets a plain answer and is closed. */
export function serveWebSockets(server: Server, streams: Streams, lines: RpcLines): { close(): void } {
  const doors: Readonly<Record<string, Door>> = {
    '/v1/ws': {
      sockets: openSockets(MESSAGE_BOUND_BYTES, CHUNKS_BOUND),
      // Whoever speaks our own protocol is told in its own words.
      objection: () => null,
      welcome: (line, socket, caller) => converse(line, socket, caller, streams),
    },
    '/rpc': {
      sockets: openSockets(RPC_MESSAGE_BOUND_BYTES, RPC_CHUNKS_BOUND),
      objection: (address, forbidden) => forbidden ?? lines.objection(address),
      welcome: (line, socket, { address }) => lines.welcome(line, socket, address),
    },
  }
  const upgrade = (incoming: IncomingMessage, socket: Socket, head: Buffer): void => {
    const url = URL.canParse(incoming.url ?? '', 'http://localhost')
      ? new URL(incoming.url ?? '', 'http://localhost')
      : null
    const fault = faultOf(incoming, url, streams)
    if (fault || !url) return refuse(socket, fault ?? new Refusal(400, 'bad_request', 'The address cannot be read.'))
    const door = doors[url.pathname]
    if (!door) return refuse(socket, nowhere(Object.keys(doors)))
    const query = url.searchParams
    const caller = { query, address: streams.addressOf(incoming), forbidden: streams.admit(incoming, query) }
    const objection = door.objection(caller.address, caller.forbidden)
    if (objection) return refuse(socket, objection)
    door.sockets.handleUpgrade(incoming, socket, head, (line) => door.welcome(line as Line, socket, caller))
  }
  const pace = new Pace(HANDSHAKES_AT_ONCE)
  const paced = (incoming: IncomingMessage, socket: Socket, head: Buffer): void => {
    if (isTaken(socket)) return ignore(socket)
    socket.on('error', cut)
    pace.do(() => upgrade(incoming, socket, head))
  }
  server.on('upgrade', paced)
  return {
    close() {
      server.off('upgrade', paced)
      for (const { sockets } of Object.values(doors)) sockets.close()
    },
  }
}

function openSockets(maxPayload: number, maxBufferedChunks: number): WebSocketServer {
  const sockets = new WebSocketServer({
    noServer: true,
    maxPayload,
    perMessageDeflate: false,
    clientTracking: false,
    WebSocket: Line,
    handleProtocols: (offered) => (offered.has(SUBPROTOCOL) ? SUBPROTOCOL : false),
    // Known to ws, not yet to its types.
    ...{ maxFragments: FRAGMENTS_BOUND, maxBufferedChunks, closeTimeout: CLOSE_BOUND_MS },
  })
  // A handshake that `ws` finds fault with is answered like every other mistake.
  sockets.on('wsClientError', (fault, socket) => refuse(socket, new Refusal(400, 'bad_handshake', `${fault.message}.`)))
  return sockets
}

function faultOf(incoming: IncomingMessage, url: URL | null, { house }: Streams): Refusal | null {
  if (incoming.headers.upgrade?.toLowerCase() !== 'websocket') {
    return new Refusal(400, 'bad_upgrade', 'Only websocket upgrades are answered.')
  }
  if (incoming.httpVersion !== '1.1') return new Refusal(400, 'bad_handshake', 'A WebSocket begins with HTTP/1.1.')
  if (url && house.hub.draining)
    return new Refusal(503, 'going_away', 'This server is about to stop; come back in a moment.')
  return null
}

const nowhere = (paths: readonly string[]): Refusal =>
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
function cut(this: Duplex): void {
  this.destroy()
}

function converse(webSocket: Line, socket: Socket, { query, address, forbidden }: Caller, streams: Streams): void {
  const outlet = new WebSocketOutlet(webSocket, socket)
  const conversation = new Conversation(outlet, address, streams)
  webSocket.on('message', (data: RawData, isBinary: boolean) => conversation.hear(isBinary ? null : String(data)))
  webSocket.on('ping', () => conversation.count())
  webSocket.on('pong', () => {
    if (!outlet.answered()) conversation.count()
  })
  const over = () => conversation.over()
  webSocket.on('close', over)
  webSocket.on('error', over)
  conversation.begin(query, forbidden)
}
