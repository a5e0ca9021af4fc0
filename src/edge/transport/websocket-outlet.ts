import type { Socket } from 'node:net'
import { WebSocket } from 'ws'
import { closeReason, type Farewell, farewells } from '../../protocol/close-codes.ts'
import type { Outlet } from '../live/listener.ts'
import { SocketOutlet } from './socket-outlet.ts'

/** Pings that may stay unanswered before a connection counts as dead. */
const PINGS_BOUND = 2

/** A WebSocket that says when its end begins, whoever began it: after the closing frame nothing of ours may follow. */
export class Line extends WebSocket {
  ending: (() => void) | null = null

  override close(code?: number, reason?: string | Buffer): void {
    this.ending?.()
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
  readonly #webSocket: Line
  #open = true
  #gathers = false
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
    this.gather()
    this.write(PING)
    return false
  }

  /** What is written in this turn goes out in one write, when it is over. Whether it is the first of it. */
  gather(): boolean {
    if (this.#gathers) return false
    this.#gathers = true
    this.socket.cork()
    setImmediate(() => {
      this.#gathers = false
      this.socket.uncork()
    })
    return true
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
