/** The printed results: medians of the rounds, and of the ratios within each round. */

export const print = (line = ''): void => void process.stdout.write(`${line}\n`)

export const formatNumber = (value: number, digits: number): string =>
  value.toLocaleString('en', { minimumFractionDigits: digits, maximumFractionDigits: digits })

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

type Column<Figures> = readonly [name: string, of: (figures: Figures) => number, digits: number]

const NAME_CHARS = 40
const COLUMN_CHARS = 13

/** A table with one line for each name: the medians of its rounds. */
export const tableOf = <Figures>(title: string, columns: readonly Column<Figures>[]) => ({
  printHead: () => print(title.padEnd(NAME_CHARS) + columns.map(([name]) => name.padStart(COLUMN_CHARS)).join('')),
  printRow: (name: string, rounds: readonly Figures[]) =>
    print(
      name.padEnd(NAME_CHARS) +
        columns.map(([, of, digits]) => formatNumber(median(rounds.map(of)), digits).padStart(COLUMN_CHARS)).join(''),
    ),
})
