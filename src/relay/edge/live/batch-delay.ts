/** Limit of the delay of an update, as a share of the measured duration of a delivery. */
const COST_SHARE = 0.25
/** A shorter delay is not worth a timer. */
const MIN_DELAY_MS = 1
/** The measured duration of a delivery halves in this time, so that one pause of the machine does not delay later updates. */
const HALF_LIFE_MS = 100

/** Delays updates so that one write contains several. With few listeners no update waits, because a delivery takes little time. */
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
