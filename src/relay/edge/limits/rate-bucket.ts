/** A rate limit: `capacity` at once, and `perSecond` in the long run. Times are milliseconds. */
export class RateBucket {
  readonly #capacity: number
  readonly #perSecond: number
  #available: number
  #refilledAt: number

  constructor(capacity: number, perSecond: number, now: number, available = capacity) {
    this.#capacity = capacity
    this.#perSecond = perSecond
    this.#available = available
    this.#refilledAt = now
  }

  take(now: number, count = 1): boolean {
    if (this.available(now) < count) return false
    this.#available -= count
    return true
  }

  /** Returns the time in ms after which so many would be available; for more than the capacity, after which the bucket is full. */
  waitMs(now: number, count: number): number {
    const lacking = Math.min(count, this.#capacity) - this.available(now)
    return Math.max(0, Math.ceil((lacking / this.#perSecond) * 1_000))
  }

  available(now: number): number {
    const elapsedMs = Math.max(0, now - this.#refilledAt)
    this.#available = Math.min(this.#capacity, this.#available + (elapsedMs / 1_000) * this.#perSecond)
    this.#refilledAt = now
    return this.#available
  }
}
