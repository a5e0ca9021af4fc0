import type { Metrics } from '../../metrics.ts'
import type { Entry } from '../../tape/tape.ts'

/** Measures how long each log takes from its receipt, by the source that brought it. Most of a batch have one time in common. */
export function countDeliveries(
  histogram: Metrics['deliverySeconds'],
  wallTime: () => number,
): (entries: readonly Entry[]) => void {
  const bySource = new Map<string, ReturnType<typeof histogram.labels>>()
  const histogramOf = (source: string) => {
    const known = bySource.get(source) ?? histogram.labels({ source })
    bySource.set(source, known)
    return known
  }
  return (entries) => {
    const now = wallTime()
    let [lastTime, seconds] = ['', 0]
    for (const { update } of entries) {
      if (!('ingest' in update)) continue
      const { source, received_at } = update.ingest
      if (received_at !== lastTime) [lastTime, seconds] = [received_at, Math.max(0, now - Date.parse(received_at)) / 1_000]
      histogramOf(source).observe(seconds)
    }
  }
}
