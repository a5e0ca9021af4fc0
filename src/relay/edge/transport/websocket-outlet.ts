import type { Socket } from 'node:net'
import { WebSocket } from 'ws'
import { type CloseReason, closeCodes, formatCloseReason } from '../../../protocol/close-codes.ts'
import type { Outlet } from './outlet.ts'
import { SocketOutlet } from './socket-outlet.ts'

/** Pings that may stay unanswered before a connection counts as dead. */
const UNANSWERED_PINGS_BOUND = 2

/** Receives what happens on a WebSocket. A call per event needs less memory than listeners: 600 bytes per connection. */
export interface WebSocketEvents {
  /** A text, or null for a binary message. */
  onMessage(text: string | null): void
  onPing(): void
  onPong(): void
  onClose(): void
}

/** A WebSocket that reports when closing starts, on either side: no frame of ours may follow the close frame. */
export class ServerWebSocket extends WebSocket {
  outlet: WebSocketOutlet | null = null
  /** Gets the events in place of listeners, if it is set. */
  events: WebSocketEvents | null = null

  override emit(event: string | symbol, ...values: readonly unknown[]): boolean {
    const { events } = this
    if (!events) return super.emit(event, ...values)
    if (event === 'message') {
      const [data, isBinary] = values
      events.onMessage(isBinary ? null : String(data))
      this.#releaseInflater()
    } else if (event === 'ping') events.onPing()
    else if (event === 'pong') events.onPong()
    else if (event === 'close' || event === 'error') events.onClose()
    return true
  }

  /**
   * Frees what inflated the last message. `ws` would keep 15 KB for each client that ever compressed one.
   * If it renamed this field, only memory use would grow.
   */
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

/**
 * A WebSocket as an outlet. Our frames are whole messages, compressed without the help of `ws`, so they may stand between
 * its frames. `ws` handles the handshake, incoming messages and the close.
 */
export class WebSocketOutlet extends SocketOutlet implements Outlet {
  readonly #webSocket: ServerWebSocket
  #isOpen = true
  #isCorked = false
  #unansweredPings = 0

  constructor(webSocket: ServerWebSocket, socket: Socket) {
    super(socket)
    this.#webSocket = webSocket
    webSocket.outlet = this
  }

  /** Ends all writes, because the close frame is next. */
  stop(): void {
    this.#isOpen = false
  }

  /** Checks two fields and nothing more: one batch may need thousands of these calls. */
  override write(bytes: Buffer): void {
    if (this.#isOpen && this.socket.writable) this.socket.write(bytes)
  }

  ping(): boolean {
    if (this.#unansweredPings >= UNANSWERED_PINGS_BOUND) return true
    this.#unansweredPings += 1
    // Corked, so that the heartbeat that follows goes out in the same write.
    this.cork()
    this.write(PING)
    return false
  }

  /** Joins all writes of this turn of the event loop into one. True for the first call of a turn. */
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

  /** Resets the count of unanswered pings; false if no ping was outstanding. */
  receivePong(): boolean {
    const wasPinged = this.#unansweredPings > 0
    this.#unansweredPings = 0
    return wasPinged
  }

  end(reason: CloseReason, position: string | null): void {
    this.#webSocket.close(closeCodes[reason], formatCloseReason(reason, position))
  }
}
