import type { Socket } from 'node:net'
import type { Writable } from 'node:stream'
import type { CloseReason } from '../../../protocol/close-codes.ts'

/** Time that a client has to take the last bytes. After it the connection is cut. */
const END_BOUND_MS = 5_000

/** Connection that takes the bytes for a listener: a WebSocket, a streaming response or an export. */
export interface Outlet {
  write(bytes: Buffer): void
  /** Number of bytes that were written and that the kernel has not taken yet. */
  readonly backlog: number
  /** Number of bytes that the kernel has taken in total. It never falls. */
  readonly takenBytes: number
  /** Resolves when there is room again, or when the connection has ended. */
  drained(): Promise<void>
  /** Pings the client if the transport can; true if the client left too many pings unanswered. */
  ping(): boolean
  end(reason: CloseReason, position: string | null): void
  /** Ends the connection at once, without sending unsent bytes. */
  cut(): void
}

/** Writes bytes unchanged to a socket, because they are already encoded, once for all listeners. A stream ends with its connection. */
export class SocketOutlet implements Outlet {
  protected readonly socket: Socket
  #takenBytes = 0

  constructor(socket: Socket) {
    this.socket = socket
  }

  write(bytes: Buffer): void {
    this.socket.write(bytes)
  }

  /** Number of bytes that the kernel has not taken yet. It may have taken only some bytes of a write. */
  get backlog(): number {
    const { writableLength } = this.socket
    // Most listeners have no backlog. With thousands of listeners, each further read of the socket costs time.
    if (writableLength === 0 || this.socket.destroyed) return 0
    const { _handle, _writableState } = this.socket as SocketInternals
    const current = _writableState?.writelen ?? 0
    return writableLength - current + (_handle?.writeQueueSize ?? current)
  }

  get takenBytes(): number {
    // Node no longer knows what part of its last write a closed socket has taken.
    this.#takenBytes = Math.max(this.#takenBytes, this.#measureTaken())
    return this.#takenBytes
  }

  #measureTaken(): number {
    const { _handle } = this.socket as SocketInternals
    // `bytesWritten` of the socket would add up the socket's queue at each call.
    if (_handle?.bytesWritten === undefined) return this.socket.bytesWritten - this.socket.writableLength
    return _handle.bytesWritten - (_handle.writeQueueSize ?? 0)
  }

  /** Whether the socket will emit `drain`: for small backlogs Node does not. */
  get willDrain(): boolean {
    return this.socket.writableNeedDrain
  }

  get isClosed(): boolean {
    return this.socket.closed
  }

  drained(): Promise<void> {
    return drainedOrClosed(this.socket)
  }

  ping(): boolean {
    return false
  }

  cut(): void {
    this.socket.destroy()
  }

  /** Ends the connection after the bytes that are already written, if the client takes them in time. */
  end(_reason?: CloseReason, _position?: string | null): void {
    this.socket.end()
    const cutTimer = setTimeout(() => this.cut(), END_BOUND_MS)
    this.socket.once('close', () => clearTimeout(cutTimer))
  }
}

/** Node's fields of the current write: its length, and its unsent bytes. Without them, the write counts as unsent until its end. */
type SocketInternals = {
  readonly _handle?: { readonly writeQueueSize?: number; readonly bytesWritten?: number } | null
  readonly _writableState?: { readonly writelen?: number }
}

export const drainedOrClosed = (stream: Writable): Promise<void> =>
  new Promise((resolve) => {
    const onDone = () => {
      stream.off('drain', onDone)
      stream.off('close', onDone)
      resolve()
    }
    stream.on('drain', onDone)
    stream.on('close', onDone)
  })
