import type { Socket } from 'node:net'
import type { Writable } from 'node:stream'

/** Writes bytes unchanged to a socket; they were encoded once for all listeners. */
export class SocketOutlet {
  protected readonly socket: Socket

  constructor(socket: Socket) {
    this.socket = socket
  }

  write(bytes: Buffer): void {
    this.socket.write(bytes)
  }

  /** Bytes accepted from us and not yet taken by the kernel. */
  get backlog(): number {
    return this.socket.writableLength
  }

  get takenBytes(): number {
    return this.socket.bytesWritten - this.socket.writableLength
  }

  /** Changes whenever the kernel takes bytes, even part of one long write. `bytesWritten` counts whole writes only. */
  get progress(): number {
    const { _handle } = this.socket as { _handle?: { writeQueueSize?: number } | null }
    return this.takenBytes - (_handle?.writeQueueSize ?? 0)
  }

  /** Whether the socket will emit `drain`. Node does not for small backlogs. */
  get willDrain(): boolean {
    return this.socket.writableNeedDrain
  }

  get isClosed(): boolean {
    return this.socket.closed
  }

  drained(): Promise<void> {
    return drainedOrClosed(this.socket)
  }
}

/** Resolves when the stream drains or closes. */
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
