import type { Percentiles } from './percentiles.ts'

/** Buckets per power of two, so that a latency is exact to 2 %. */
const STEPS = 64
const POWERS = 32

/** A histogram of latencies, because there are millions. */
export class LatencyTally {
  readonly #counts = new Uint32Array(STEPS * POWERS)
  #maxMicros = 0
  count = 0

  add(micros: number): void {
    const whole = Math.max(micros, 0)
    const power = whole < STEPS ? 0 : 26 - Math.clz32(whole)
    const step = power * STEPS + (whole >>> power)
    this.#counts[step] = (this.#counts[step] ?? 0) + 1
    this.count += 1
    if (whole > this.#maxMicros) this.#maxMicros = whole
  }

  percentiles(): Percentiles {
    return { p50Ms: this.#microsAt(0.5) / 1_000, p99Ms: this.#microsAt(0.99) / 1_000, maxMs: this.#maxMicros / 1_000 }
  }

  /** The latency that this share did not exceed. */
  #microsAt(share: number): number {
    let left = Math.min(this.count - 1, Math.floor(this.count * share))
    for (const [step, count] of this.#counts.entries()) {
      left -= count
      if (left < 0) return (step % STEPS) * 2 ** Math.floor(step / STEPS)
    }
    return 0
  }
}
