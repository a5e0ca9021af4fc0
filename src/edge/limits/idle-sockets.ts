import type { Socket } from 'node:net'

/** How many times it is looked within the time that somebody may be silent. */
const CHECKS_PER_BOUND = 10

/**
 * Connections on which nothing was asked yet: no other deadline covers them. They are looked through now and then, since a
 * timer of its own would be touched by every later write to the connection, for as long as it lasts.
 */
export class IdleSockets {
  readonly #boundMs: number
  readonly #idleSince = new Map<Socket, number>()
  readonly #timer: NodeJS.Timeout

  constructor(boundMs: number) {
    this.#boundMs = boundMs
    this.#timer = setInterval(() => this.#closeIdle(), boundMs / CHECKS_PER_BOUND).unref()
  }

  add(socket: Socket): void {
    this.#idleSince.set(socket, performance.now())
  }

  /** Something was asked, or the connection is gone. */
  remove(socket: Socket): void {
    this.#idleSince.delete(socket)
  }

  close(): void {
    clearInterval(this.#timer)
  }

  #closeIdle(): void {
    const now = performance.now()
    for (const [socket, since] of this.#idleSince) {
      // They stand in the order in which they came.
      if (now - since < this.#boundMs) return
      this.#idleSince.delete(socket)
      socket.destroy()
    }
  }
}
