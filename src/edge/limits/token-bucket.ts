/** How often somebody may do something: so often at once, and so often a second in the long run. */
export class Bucket {
  readonly #size: number
  readonly #perSecond: number
  #left: number
  #at: number

  constructor(size: number, perSecond: number, now: number) {
    this.#size = size
    this.#perSecond = perSecond
    this.#left = size
    this.#at = now
  }

  /** Takes so many out; none if there are not as many. */
  take(now: number, count = 1): boolean {
    if (this.left(now) < count) return false
    this.#left -= count
    return true
  }

  left(now: number): number {
    const since = Math.max(0, now - this.#at)
    this.#left = Math.min(this.#size, this.#left + (since / 1_000) * this.#perSecond)
    this.#at = now
    return this.#left
  }
}
