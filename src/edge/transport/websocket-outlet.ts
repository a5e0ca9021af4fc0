import type { Socket } from 'node:net'
import { WebSocket } from 'ws'
import { type CloseReason, closeCodes, formatCloseReason } from '../../protocol/close-codes.ts'
import type { Outlet } from './outlet.ts'
import { SocketOutlet } from './socket-outlet.ts'

/** Pings that may stay unanswered before a connection counts as dead. */
const UNANSWERED_PINGS_BOUND = 2

/** A WebSocket that says when its end begins, whoever began it: after the closing frame nothing of ours may follow. */
export class ServerWebSocket extends WebSocket {
  onClosing: (() => void) | null = null

  override close(code?: number, reason?: string | Buffer): void {
    this.onClosing?.()
    super.close(code, reason)
  }
}

/** An empty ping (RFC 6455 §5.5.2), the same for everybody. */
const PING = Buffer.of(0x89, 0)

/**
 * A WebSocket as an outlet. Frames of ours are neither fragmented nor compressed, so that they may stand between those of
 * `ws`, which keeps the handshake, what comes in and the close.
 */
export class WebSocketOutlet extends SocketOutlet implements Outlet {
  readonly #webSocket: ServerWebSocket
  #isOpen = true
  #isCorked = false
  #unansweredPings = 0

  constructor(webSocket: ServerWebSocket, socket: Socket) {
    super(socket)
    this.#webSocket = webSocket
    webSocket.onClosing = () => {
      this.#isOpen = false
    }
  }

  /** Asks nobody but itself and the socket, which are at hand anyway: there may be thousands of these in a row. */
  override write(bytes: Buffer): void {
    if (this.#isOpen && this.socket.writable) this.socket.write(bytes)
  }

  ping(): boolean {
    if (this.#unansweredPings >= UNANSWERED_PINGS_BOUND) return true
    this.#unansweredPings += 1
    // The heartbeat that comes with it goes out in the same write.
    this.cork()
    this.write(PING)
    return false
  }

  /** What is written in this turn goes out in one write, when it is over. Whether it is the first of it. */
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

  /** A sign of life; false if nobody had asked for one. */
  receivePong(): boolean {
    const wasPinged = this.#unansweredPings > 0
    this.#unansweredPings = 0
    return wasPinged
  }

  end(reason: CloseReason, position: string | null): void {
    this.#webSocket.close(closeCodes[reason], formatCloseReason(reason, position))
  }
}
