export function median(values: readonly number[]): number {
  const sorted = [...values].sort((a, b) => a - b)
  const [low, high] = [sorted[Math.floor((sorted.length - 1) / 2)], sorted[Math.ceil((sorted.length - 1) / 2)]]
  return low === undefined || high === undefined ? Number.NaN : (low + high) / 2
}

export type Percentiles = { readonly p50Ms: number; readonly p99Ms: number; readonly maxMs: number }

export function percentilesOf(values: readonly number[]): Percentiles {
  const sorted = [...values].sort((a, b) => a - b)
  const at = (share: number) => sorted[Math.min(sorted.length - 1, Math.floor(sorted.length * share))] ?? Number.NaN
  return { p50Ms: at(0.5), p99Ms: at(0.99), maxMs: at(1) }
}
