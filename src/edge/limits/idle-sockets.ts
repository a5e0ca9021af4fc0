import type { Socket } from 'node:net'

/** How many times it is looked within the time that somebody may be silent. */
const LOOKS = 10

/**
 * Connections on which nothing was asked yet: no other deadline covers them. They are looked through now and then, since a
 * timer of its own would be touched by every later write to the connection, for as long as it lasts.
 */
export class Silences {
  readonly #boundMs: number
  readonly #since = new Map<Socket, number>()
  readonly #looking: NodeJS.Timeout

  constructor(boundMs: number) {
    this.#boundMs = boundMs
    this.#looking = setInterval(() => this.#look(), boundMs / LOOKS).unref()
  }

  begin(socket: Socket): void {
    this.#since.set(socket, performance.now())
  }

  /** Something was asked, or the connection is gone. */
  broken(socket: Socket): void {
    this.#since.delete(socket)
  }

  close(): void {
    clearInterval(this.#looking)
  }

  #look(): void {
    const now = performance.now()
    for (const [socket, since] of this.#since) {
      // They stand in the order in which they came.
      if (now - since < this.#boundMs) return
      this.#since.delete(socket)
      socket.destroy()
    }
  }
}
