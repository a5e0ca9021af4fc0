/** How often somebody may do something: so often at once, and so often a second in the long run. */
export class TokenBucket {
  readonly #capacity: number
  readonly #perSecond: number
  #available: number
  #refilledAt: number

  constructor(capacity: number, perSecond: number, now: number) {
    this.#capacity = capacity
    this.#perSecond = perSecond
    this.#available = capacity
    this.#refilledAt = now
  }

  /** Takes so many out; none if there are not as many. */
  take(now: number, count = 1): boolean {
    if (this.available(now) < count) return false
    this.#available -= count
    return true
  }

  available(now: number): number {
    const elapsedMs = Math.max(0, now - this.#refilledAt)
    this.#available = Math.min(this.#capacity, this.#available + (elapsedMs / 1_000) * this.#perSecond)
    this.#refilledAt = now
    return this.#available
  }
}
