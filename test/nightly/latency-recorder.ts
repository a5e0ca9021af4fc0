/** How long some transfers took from the chain to those who heard them. */
export type LatencySummary = {
  readonly transfers: number
  readonly p50Ms: number
  readonly p99Ms: number
  readonly maxMs: number
}

/** Takes how long one transfer took: its number, its place on the tape, and the time. */
export type RecordLatency = (one: { readonly number: number; readonly order: number; readonly micros: number }) => void

/** Gathers how long each took, from one look to the next. */
export class LatencyRecorder {
  #micros: number[] = []
  /** Where each stands on the tape that was told first: what is told again after a reorganisation is old by then. */
  readonly #firstOrders = new Map<number, number>()

  readonly record: RecordLatency = ({ number, order, micros }) => {
    const first = this.#firstOrders.get(number)
    if (first === undefined) this.#firstOrders.set(number, order)
    if (first === undefined || first === order) this.#micros.push(micros)
  }

  takeSummary(): LatencySummary {
    const sorted = Float64Array.from(this.#micros).sort()
    this.#micros = []
    const at = (share: number) => (sorted[Math.ceil(sorted.length * share) - 1] ?? 0) / 1_000
    return { transfers: sorted.length, p50Ms: at(0.5), p99Ms: at(0.99), maxMs: at(1) }
  }
}
