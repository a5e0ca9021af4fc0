/** An update waits for others for at most this share of what giving it to everybody costs. */
const SHARE = 0.5
/** Less than this is not worth a timer: then nothing waits. */
const LEAST_MS = 1
/** After so long a dear round is believed by half: one that a pause of the machine made dear must not hold up the next. */
const HALF_LIFE_MS = 100

/**
 * How long an update may wait, so that one write carries those that come right after it too. What a fan-out costs is the
 * number of its writes: where few listen nothing waits, and where a round takes long, a part of that is hardly noticed.
 */
export class Patience {
  readonly #boundMs: number
  #roundMs = 0
  #tookAt = 0

  constructor(boundMs: number) {
    this.#boundMs = boundMs
  }

  /** How long what comes at a time may wait. */
  ms(at: number): number {
    const ms = Math.min(this.#believedMs(at) * SHARE, this.#boundMs)
    return ms < LEAST_MS ? 0 : ms
  }

  /** A round took from one time to another. */
  took(from: number, to: number): void {
    this.#roundMs = Math.max(to - from, this.#believedMs(to))
    this.#tookAt = to
  }

  #believedMs(at: number): number {
    return this.#roundMs * 0.5 ** ((at - this.#tookAt) / HALF_LIFE_MS)
  }
}
