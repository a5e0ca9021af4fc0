/** How long transfers took from the chain to the listeners. */
export type LatencySummary = { readonly transfers: number; readonly p50Ms: number; readonly p99Ms: number; readonly maxMs: number }

/** Records how long one transfer took: its number, its order on the tape, and the time. */
export type RecordLatency = (latency: { readonly number: number; readonly order: number; readonly micros: number }) => void

/** Collects latencies between two summaries. */
export class LatencyRecorder {
  #micros: number[] = []
  /** The order of each transfer's first message. After a reorganisation it is published again, and is old by then. */
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
