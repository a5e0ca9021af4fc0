/** A difference of less than this is the delay of the network, not a clock that is wrong. */
const TOLERATED_MS = 2_000
/** How long a measurement counts, and once more as long. A clock that is set while the page is open is noticed after that. */
const PERIOD_MS = 60_000

/** The time as the relay sees it: the clock of the reader may be wrong, and ages must be right. */
export class ServerClock {
  readonly #read: () => number
  #current = Number.NEGATIVE_INFINITY
  #former = Number.NEGATIVE_INFINITY
  #periodStartMs: number

  constructor(read: () => number = Date.now) {
    this.#read = read
    this.#periodStartMs = read()
  }

  /** A live message was written at this time, and took some time to come. The one that took least says most. */
  observe(time: string): void {
    const nowMs = this.#read()
    if (Math.abs(nowMs - this.#periodStartMs) > PERIOD_MS) {
      this.#former = this.#current
      this.#current = Number.NEGATIVE_INFINITY
      this.#periodStartMs = nowMs
    }
    this.#current = Math.max(this.#current, Date.parse(time) - nowMs)
  }

  nowMs(): number {
    const offsetMs = Math.max(this.#current, this.#former)
    return this.#read() + (Number.isFinite(offsetMs) && Math.abs(offsetMs) >= TOLERATED_MS ? offsetMs : 0)
  }
}
