/** An update waits for others for at most this share of what giving it to everybody costs. */
const COST_SHARE = 0.5
/** Less than this is not worth a timer: then nothing waits. */
const MIN_DELAY_MS = 1
/** After so long a dear round is believed by half: one that a pause of the machine made dear must not hold up the next. */
const HALF_LIFE_MS = 100

/**
 * How long an update may wait, so that one write carries those that come right after it too. What a fan-out costs is the
 * number of its writes: where few listen nothing waits, and where a round takes long, a part of that is hardly noticed.
 */
export class BatchDelay {
  readonly #boundMs: number
  #roundMs = 0
  #recordedAt = 0

  constructor(boundMs: number) {
    this.#boundMs = boundMs
  }

  /** How long what comes at a time may wait. */
  delayMs(now: number): number {
    const delay = Math.min(this.#decayedMs(now) * COST_SHARE, this.#boundMs)
    return delay < MIN_DELAY_MS ? 0 : delay
  }

  /** A round took from one time to another. */
  recordRound(from: number, to: number): void {
    this.#roundMs = Math.max(to - from, this.#decayedMs(to))
    this.#recordedAt = to
  }

  #decayedMs(now: number): number {
    return this.#roundMs * 0.5 ** ((now - this.#recordedAt) / HALF_LIFE_MS)
  }
}
