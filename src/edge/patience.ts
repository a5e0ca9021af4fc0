/** An update waits for others for at most this share of what giving it to everybody costs. */
const SHARE = 0.5
/** Less than this is not worth a timer: then nothing waits. */
const LEAST_MS = 1
/** How much of a dearer round before is still believed. */
const MEMORY = 0.9

/**
 * How long an update may wait, so that one write carries those that come right after it too. What a fan-out costs is the
 * number of its writes: where few listen nothing waits, and where a round takes long, a part of that is hardly noticed.
 */
export class Patience {
  readonly #boundMs: number
  #roundMs = 0

  constructor(boundMs: number) {
    this.#boundMs = boundMs
  }

  get ms(): number {
    const ms = Math.min(this.#roundMs * SHARE, this.#boundMs)
    return ms < LEAST_MS ? 0 : ms
  }

  /** A round took so long. */
  took(ms: number): void {
    this.#roundMs = Math.max(ms, this.#roundMs * MEMORY)
  }
}
