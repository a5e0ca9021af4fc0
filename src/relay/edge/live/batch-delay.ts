/** An update waits for others for at most this share of the time that a delivery round takes. */
const COST_SHARE = 0.25
/** A shorter delay is not worth a timer. */
const MIN_DELAY_MS = 1
/** The measured cost halves in this time, so that one round slowed by a machine pause does not delay the next ones. */
const HALF_LIFE_MS = 100

/**
 * How long an update waits so that one write also carries the updates right after it. Fan-out costs one write per
 * listener: with few listeners nothing waits, and with many the delay is a fraction of a long round.
 */
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

  /** Records how long a delivery round took. */
  recordRound(from: number, to: number): void {
    this.#roundMs = Math.max(to - from, this.#decayedMs(to))
    this.#recordedAt = to
  }

  #decayedMs(now: number): number {
    return this.#roundMs * 0.5 ** ((now - this.#recordedAt) / HALF_LIFE_MS)
  }
}
