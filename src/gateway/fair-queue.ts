import { errorCodes, RpcError } from './rpc-error.ts'

/** Whoever waited for longer has given up, or should. */
const WAIT_BOUND_MS = 10_000

const queueFull = new RpcError(
  errorCodes.limitExceeded,
  'too many questions wait for the upstream; come back in a moment',
  503,
)

type QueuedCall = { readonly queuedAt: number; readonly start: () => void; readonly reject: (fault: RpcError) => void }

/** Lets so many questions be under way at once, and so many others wait: whoever asks has its turn in turn. */
export class FairQueue {
  readonly #bounds: { readonly runningBound: number; readonly queuedBound: number }
  readonly #uptime: () => number
  /** Those who wait, by who asks; whose turn it is stands first. */
  readonly #queues = new Map<string, QueuedCall[]>()
  #queued = 0
  #running = 0

  constructor(bounds: { readonly runningBound: number; readonly queuedBound: number }, uptime: () => number) {
    this.#bounds = bounds
    this.#uptime = uptime
  }

  /** Asks when there is room; throws a `Fault` where there is none, or none in time. */
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

  /** Whoever has most waiting gives a place up to one who has less. */
  #makeRoom(ownQueued: number): void {
    const longest = [...this.#queues.values()].reduce((one, other) => (other.length > one.length ? other : one), [])
    if (longest.length <= ownQueued + 1) throw queueFull
    longest.pop()?.reject(queueFull)
    this.#queued -= 1
  }

  /** Whoever is through hands its place on. */
  #startNext(): void {
    for (const [client, queue] of this.#queues) {
      this.#queues.delete(client)
      for (let next = queue.shift(); next; next = queue.shift()) {
        this.#queued -= 1
        if (this.#uptime() - next.queuedAt >= WAIT_BOUND_MS) {
          next.reject(queueFull)
          continue
        }
        // The others of this row wait until all other rows had their turn.
        if (queue.length > 0) this.#queues.set(client, queue)
        return next.start()
      }
    }
    this.#running -= 1
  }
}
