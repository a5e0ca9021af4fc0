import { type IncomingMessage, type Server, STATUS_CODES } from 'node:http'
import type { Socket } from 'node:net'
import type { Duplex } from 'node:stream'
import { type RawData, WebSocket, WebSocketServer } from 'ws'
import { closeReason, type Farewell, farewells } from '../protocol/farewell.ts'
import { Refusal } from '../protocol/refusal.ts'
import { MESSAGE_BOUND_BYTES } from '../protocol/requests.ts'
import { Conversation } from './conversation.ts'
import type { Outlet } from './listener.ts'
import { SocketOutlet } from './outlet.ts'
import { Pace } from './pace.ts'
import type { Streams } from './stream.ts'
import { ignore, isTaken } from './takeover.ts'

const PATH = '/v1/ws'
const SUBPROTOCOL = 'stocktape.v1'
/** The versions of the protocol that are spoken; a refusal must say them (RFC 6455 §4.4). */
const VERSIONS = '13, 8'
/** A closing handshake that the other side never finishes is cut after this. */
const CLOSE_BOUND_MS = 5_000
const FRAGMENTS_BOUND = 16
const CHUNKS_BOUND = 64
/** Handshakes in one turn of the event loop. */
const HANDSHAKES_AT_ONCE = 50
/** Pings that may stay unanswered before a connection counts as dead. */
const PINGS_BOUND = 2

/** Answers every upgrade: `/v1/ws` becomes a WebSocket, anything else gets a plain answer and is closed. */
export function serveWebSockets(server: Server, streams: Streams): { close(): void } {
  const sockets = new WebSocketServer({
    noServer: true,
    maxPayload: MESSAGE_BOUND_BYTES,
    perMessageDeflate: false,
    clientTracking: false,
    WebSocket: Line,
    handleProtocols: (offered) => (offered.has(SUBPROTOCOL) ? SUBPROTOCOL : false),
    // Known to ws, not yet to its types.
    ...{ maxFragments: FRAGMENTS_BOUND, maxBufferedChunks: CHUNKS_BOUND, closeTimeout: CLOSE_BOUND_MS },
  })
  // A handshake that `ws` finds fault with is answered like every other mistake.
  sockets.on('wsClientError', (fault, socket) => refuse(socket, new Refusal(400, 'bad_handshake', `${fault.message}.`)))
  const upgrade = (incoming: IncomingMessage, socket: Socket, head: Buffer): void => {
    const url = URL.canParse(incoming.url ?? '', 'http://localhost')
      ? new URL(incoming.url ?? '', 'http://localhost')
      : null
    const refusal = refusalOf(incoming, url, streams)
    if (refusal || !url)
      return refuse(socket, refusal ?? new Refusal(400, 'bad_request', 'The address cannot be read.'))
    const query = url.searchParams
    const caller = { query, address: streams.addressOf(incoming), forbidden: streams.admit(incoming, query) }
    sockets.handleUpgrade(incoming, socket, head, (webSocket) => converse(webSocket, socket, caller, streams))
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
      sockets.close()
    },
  }
}

function refusalOf(incoming: IncomingMessage, url: URL | null, { house }: Streams): Refusal | null {
  if (incoming.headers.upgrade?.toLowerCase() !== 'websocket') {
    return new Refusal(400, 'bad_upgrade', 'Only websocket upgrades are answered.')
  }
  if (incoming.httpVersion !== '1.1') return new Refusal(400, 'bad_handshake', 'A WebSocket begins with HTTP/1.1.')
  if (url?.pathname !== PATH)
    return new Refusal(404, 'unknown_path', `There is no WebSocket at this path; it is at ${PATH}.`)
  if (house.hub.draining) return new Refusal(503, 'going_away', 'This server is about to stop; come back in a moment.')
  return null
}

/** An answer in plain HTTP to what never became a WebSocket, or never was a request. */
export function refuse(socket: Duplex, refusal: Refusal): void {
  const body = JSON.stringify(refusal.record)
  const retry = refusal.code === 503 ? 'retry-after: 1\r\n' : ''
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

type Caller = {
  readonly query: URLSearchParams
  readonly address: string
  /** Why it may not listen at all. */
  readonly forbidden: Refusal | null
}

/** A WebSocket that says when its end begins, whoever began it: after the closing frame nothing of ours may follow. */
class Line extends WebSocket {
  ending: (() => void) | null = null

  override close(code?: number, reason?: string | Buffer): void {
    this.ending?.()
    super.close(code, reason)
  }
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

/** An empty ping (RFC 6455 §5.5.2), the same for everybody. */
const PING = Buffer.of(0x89, 0)

/**
 * A WebSocket as an outlet. Frames of ours are neither fragmented nor compressed, so that they may stand between those of
 * `ws`, which keeps the handshake, what comes in and the close.
 */
class WebSocketOutlet extends SocketOutlet implements Outlet {
  readonly #webSocket: Line
  #open = true
  #unanswered = 0

  constructor(webSocket: Line, socket: Socket) {
    super(socket)
    this.#webSocket = webSocket
    webSocket.ending = () => {
      this.#open = false
    }
  }

  /** Asks nobody but itself and the socket, which are at hand anyway: there may be thousands of these in a row. */
  override write(bytes: Buffer): void {
    if (this.#open && this.socket.writable) this.socket.write(bytes)
  }

  ping(): boolean {
    if (this.#unanswered >= PINGS_BOUND) return true
    this.#unanswered += 1
    // The heartbeat that comes with it goes out in the same write.
    this.socket.cork()
    this.write(PING)
    process.nextTick(() => this.socket.uncork())
    return false
  }

  /** A sign of life; false if nobody had asked for one. */
  answered(): boolean {
    const asked = this.#unanswered > 0
    this.#unanswered = 0
    return asked
  }

  end(farewell: Farewell, position: string | null): void {
    this.#webSocket.close(farewells[farewell], closeReason(farewell, position))
  }
}
