import { LatencyTally } from '../bench/latency-tally.ts'
import type { Percentiles } from '../bench/percentiles.ts'

/** How long transfers took from the chain to the listeners. */
export type LatencySummary = Percentiles & { readonly transfers: number }

/** Records how long one transfer took: its number, its order on the tape, and the time. */
export type RecordLatency = (latency: { readonly number: number; readonly order: number; readonly micros: number }) => void

/** Collects latencies between two summaries. */
export class LatencyRecorder {
  #tally = new LatencyTally()
  /** The order of each transfer's first message. After a reorganisation it is published again, and is old by then. */
  readonly #firstOrders = new Map<number, number>()

  readonly record: RecordLatency = ({ number, order, micros }) => {
    const first = this.#firstOrders.get(number)
    if (first === undefined) this.#firstOrders.set(number, order)
    if (first === undefined || first === order) this.#tally.add(micros)
  }

  takeSummary(): LatencySummary {
    const summary = { transfers: this.#tally.count, ...this.#tally.percentiles() }
    this.#tally = new LatencyTally()
    return summary
  }
}
