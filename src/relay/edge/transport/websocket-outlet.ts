import type { Socket } from 'node:net'
import { WebSocket } from 'ws'
import { type CloseReason, closeCodes, formatCloseReason } from '../../../protocol/close-codes.ts'
import { SocketOutlet } from './socket-outlet.ts'

/** A connection with this many unanswered pings counts as dead. */
const UNANSWERED_PINGS_BOUND = 2

/** Receives the events of a WebSocket by direct calls, which need 600 bytes less per connection than event listeners. */
export interface WebSocketEvents {
  onMessage(data: unknown, isBinary: boolean): void
  onPing(): void
  onPong(): void
  onClose(): void
}

/** A WebSocket that stops its outlet when either side begins to close, because no frame may follow the close frame. */
export class ServerWebSocket extends WebSocket {
  outlet: WebSocketOutlet | null = null
  /** Receives the events in place of event listeners, if it is set. */
  events: WebSocketEvents | null = null

  override emit(event: string | symbol, ...values: readonly unknown[]): boolean {
    const { events } = this
    if (!events) return super.emit(event, ...values)
    if (event === 'message') {
      const [data, isBinary] = values
      events.onMessage(data, isBinary === true)
      this.#releaseInflater()
    } else if (event === 'ping') events.onPing()
    else if (event === 'pong') events.onPong()
    else if (event === 'close' || event === 'error') events.onClose()
    return true
  }

  /** Frees 15 KB that `ws` keeps for each client that has compressed a message. If `ws` renames the field, memory use grows. */
  #releaseInflater(): void {
    const { _extensions } = this as { _extensions?: { 'permessage-deflate'?: { cleanup(): void } } }
    _extensions?.['permessage-deflate']?.cleanup()
  }

  override close(code?: number, reason?: string | Buffer): void {
    this.outlet?.stop()
    super.close(code, reason)
  }
}

/** An empty ping (RFC 6455 §5.5.2). */
const PING = Buffer.of(0x89, 0)

/** Writes whole frames, compressed without `ws`. `ws` handles the handshake, incoming messages and the close. */
export class WebSocketOutlet extends SocketOutlet {
  readonly #webSocket: ServerWebSocket
  #isOpen = true
  #isCorked = false
  #unansweredPings = 0

  constructor(webSocket: ServerWebSocket, socket: Socket) {
    super(socket)
    this.#webSocket = webSocket
    webSocket.outlet = this
  }

  /** Prevents further writes, because the close frame is next. */
  stop(): void {
    this.#isOpen = false
  }

  /** Checks only two fields: one batch may need thousands of these calls. */
  override write(bytes: Buffer): void {
    if (this.#isOpen && this.socket.writable) this.socket.write(bytes)
  }

  override ping(): boolean {
    if (this.#unansweredPings >= UNANSWERED_PINGS_BOUND) return true
    this.#unansweredPings += 1
    // The socket is corked, so that the ping and the heartbeat after it are one write.
    this.cork()
    this.write(PING)
    return false
  }

  /** Joins all writes of this turn of the event loop into one. Returns true for the first call of a turn. */
  cork(): boolean {
    if (this.#isCorked) return false
    this.#isCorked = true
    this.socket.cork()
    setImmediate(() => {
      this.#isCorked = false
      this.socket.uncork()
    })
    return true
  }

  /** Resets the count of unanswered pings. Returns false if no ping was outstanding. */
  receivePong(): boolean {
    const wasPinged = this.#unansweredPings > 0
    this.#unansweredPings = 0
    return wasPinged
  }

  override end(reason: CloseReason, position: string | null): void {
    this.#webSocket.close(closeCodes[reason], formatCloseReason(reason, position))
  }
}
