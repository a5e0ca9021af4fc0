/** Limit of the wait of a call. A call that waited longer is refused: its client has probably given up. */
const WAIT_BOUND_MS = 10_000

type QueuedCall = { readonly queuedAt: number; readonly start: () => void; readonly reject: (error: Error) => void }

type QueueBounds = {
  readonly runningBound: number
  readonly queuedBound: number
  /** Refuses a call that finds no room, or that waited too long. */
  readonly full: Error
}

/** Limits the calls that run and the calls that wait. Clients take turns, whatever their number of calls. */
export class FairQueue {
  readonly #bounds: QueueBounds
  readonly #uptime: () => number
  /** The waiting calls, in the order of the clients' turns. */
  readonly #queues = new Map<string, QueuedCall[]>()
  #queued = 0
  #running = 0

  constructor(bounds: QueueBounds, uptime: () => number) {
    this.#bounds = bounds
    this.#uptime = uptime
  }

  /** Runs the call when there is room. Throws `full` if the call waited too long, or if the queue is full. */
  async run<Answer>(call: () => Promise<Answer>, client: string): Promise<Answer> {
    if (this.#running < this.#bounds.runningBound) this.#running += 1
    else await this.#enqueue(client)
    try {
      return await call()
    } finally {
      this.#startNext()
    }
  }

  #enqueue(client: string): Promise<void> {
    const queue = this.#queues.get(client) ?? []
    if (this.#queued >= this.#bounds.queuedBound) this.#makeRoom(queue.length)
    this.#queues.set(client, queue)
    this.#queued += 1
    return new Promise((start, reject) => queue.push({ queuedAt: this.#uptime(), start, reject }))
  }

  /** Refuses the last waiting call of the client with the longest queue, or the new call if that is its own client. */
  #makeRoom(ownQueued: number): void {
    const longest = [...this.#queues.values()].reduce((one, other) => (other.length > one.length ? other : one), [])
    if (longest.length <= ownQueued + 1) throw this.#bounds.full
    longest.pop()?.reject(this.#bounds.full)
    this.#queued -= 1
  }

  #startNext(): void {
    for (const [client, queue] of this.#queues) {
      this.#queues.delete(client)
      for (let next = queue.shift(); next; next = queue.shift()) {
        this.#queued -= 1
        if (this.#uptime() - next.queuedAt >= WAIT_BOUND_MS) {
          next.reject(this.#bounds.full)
          continue
        }
        // The client's other calls wait until every other client has had a turn.
        if (queue.length > 0) this.#queues.set(client, queue)
        return next.start()
      }
    }
    this.#running -= 1
  }
}
