import type { Socket } from 'node:net'

const CHECKS_PER_BOUND = 10

/**
 * Closes connections that sent no request; no other deadline covers them. One interval checks all of them: Node would
 * refresh a socket's own timeout on every later write, for the whole duration of the connection.
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

  /** Call it when a request arrives or the connection closes. */
  remove(socket: Socket): void {
    this.#idleSince.delete(socket)
  }

  /** Closes the connection that has been silent for the longest time; false if none is. */
  cutOldest(): boolean {
    const [oldest] = this.#idleSince.keys()
    if (!oldest) return false
    this.#idleSince.delete(oldest)
    oldest.destroy()
    return true
  }

  close(): void {
    clearInterval(this.#timer)
  }

  #closeIdle(): void {
    const now = performance.now()
    for (const [socket, since] of this.#idleSince) {
      // The map is in order of arrival, so all that follow are younger.
      if (now - since < this.#boundMs) return
      this.#idleSince.delete(socket)
      socket.destroy()
    }
  }
}
