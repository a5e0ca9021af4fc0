/** An update waits at most this share of a delivery round's duration. */
const COST_SHARE = 0.25
/** A shorter delay is not worth a timer. */
const MIN_DELAY_MS = 1
/** The measured duration halves in this time, so that one round slowed by a pause of the machine does not delay the next ones. */
const HALF_LIFE_MS = 100

/** Delays updates so that one write carries several. With few listeners nothing waits; with many, a fraction of a long round. */
export class BatchDelay {
  readonly #boundMs: number
  #roundMs = 0
  #recordedAt = 0

  constructor(boundMs: number) {
    this.#boundMs = boundMs
  }

  delayMs(now: number): number {
    const delay = Math.min(this.#decayedMs(now) * COST_SHARE, this.#boundMs)
    return delay < MIN_DELAY_MS ? 0 : delay
  }

  recordRound(from: number, to: number): void {
    this.#roundMs = Math.max(to - from, this.#decayedMs(to))
    this.#recordedAt = to
  }

  #decayedMs(now: number): number {
    return this.#roundMs * 0.5 ** ((now - this.#recordedAt) / HALF_LIFE_MS)
  }
}
