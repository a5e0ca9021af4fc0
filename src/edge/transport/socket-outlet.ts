import type { Socket } from 'node:net'

/** A socket as the end of the line: bytes are written to it as they are, built once for all who hear them. */
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

  /** Another number whenever the kernel took more, also of one long write that it has not taken all of yet. */
  get progress(): number {
    const { _handle } = this.socket as { _handle?: { writeQueueSize?: number } | null }
    return this.takenBytes - (_handle?.writeQueueSize ?? 0)
  }

  /** Whether it will be said when all that is owed was taken; of little it is not. */
  get willDrain(): boolean {
    return this.socket.writableNeedDrain
  }

  /** Whether nobody is there any more. */
  get isClosed(): boolean {
    return this.socket.closed
  }

  /** Resolves when bytes were taken, or when nobody will take them any more. */
  drained(): Promise<void> {
    return new Promise((resolve) => {
      const onDone = () => {
        this.socket.off('drain', onDone)
        this.socket.off('close', onDone)
        resolve()
      }
      this.socket.on('drain', onDone)
      this.socket.on('close', onDone)
    })
  }
}
