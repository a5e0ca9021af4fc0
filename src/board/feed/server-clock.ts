/** Limit of a difference that counts as delay of the network. Above it, the clock of the reader is wrong. */
const TOLERATED_MS = 2_000
/** Each measurement is used for one to two periods, so that the page notices a clock that is set while the page is open. */
const PERIOD_MS = 60_000

/** Estimates the relay's time, because the reader's clock may be wrong and ages must be right. */
export class ServerClock {
  readonly #read: () => number
  #current = Number.NEGATIVE_INFINITY
  #former = Number.NEGATIVE_INFINITY
  #periodStartMs: number

  constructor(read: () => number = Date.now) {
    this.#read = read
    this.#periodStartMs = read()
  }

  /** Takes the time of a live message. The message with the shortest delay gives the best estimate. */
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
