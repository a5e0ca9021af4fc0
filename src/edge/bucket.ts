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

  /** Takes one out; false if there is none. */
  take(now: number): boolean {
    const since = Math.max(0, now - this.#at)
    this.#left = Math.min(this.#size, this.#left + (since / 1_000) * this.#perSecond)
    this.#at = now
    if (this.#left < 1) return false
    this.#left -= 1
    return true
  }
}
