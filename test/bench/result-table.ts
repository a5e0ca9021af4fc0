import type { Figures } from './listener-load.ts'

/** The printed results: medians of the rounds, and of the ratios within each round. */

export const print = (line = ''): void => void process.stdout.write(`${line}\n`)

export function median(values: readonly number[]): number {
  const sorted = [...values].sort((a, b) => a - b)
  const [low, high] = [sorted[Math.floor((sorted.length - 1) / 2)], sorted[Math.ceil((sorted.length - 1) / 2)]]
  return low === undefined || high === undefined ? Number.NaN : (low + high) / 2
}

/** Below this a server was behind: it sent waiting messages together, so they cost less than the same work in time. */
const KEEPING_UP_PACE = 0.95
export const isBehind = ({ pace }: Figures): boolean => pace < KEEPING_UP_PACE

/** The ratio of two servers' figures; taken from the rounds in which the required servers kept up, if there are any. */
export function ratioOf(
  figure: keyof Figures,
  [firsts, seconds]: readonly [readonly Figures[], readonly Figures[]],
  mustKeepUp: readonly [boolean, boolean],
): { readonly median: number; readonly note: string } | null {
  const rounds = firsts.flatMap((first, round) => {
    const second = seconds[round]
    const ratio = second ? first[figure] / second[figure] : Number.NaN
    if (!second || !Number.isFinite(ratio) || ratio === 0) return []
    return [{ ratio, inTime: ![first, second].some((figures, at) => mustKeepUp[at] && isBehind(figures)) }]
  })
  const inTime = rounds.filter((round) => round.inTime)
  const ratios = (inTime.length > 0 ? inTime : rounds).map(({ ratio }) => ratio)
  if (ratios.length === 0) return null
  const spread = ratios.length > 1 ? `(${Math.min(...ratios).toFixed(2)} to ${Math.max(...ratios).toFixed(2)})` : ''
  const skippedRounds = rounds.length - inTime.length
  const note =
    skippedRounds === rounds.length ? ' *' : skippedRounds > 0 ? ` without ${skippedRounds} of ${rounds.length} rounds` : ''
  return { median: median(ratios), note: `${spread}${note}` }
}

type Column = { readonly name: string; readonly of: (figures: Figures) => number; readonly digits: number }

const columns: readonly Column[] = [
  { name: 'deliveries/s', of: (figures) => figures.deliveriesPerSecond, digits: 0 },
  { name: 'per CPU-s', of: (figures) => figures.deliveriesPerCpuSecond, digits: 0 },
  { name: 'CPU-s/M', of: (figures) => figures.cpuSecondsPerMillion, digits: 3 },
  { name: 'p50 ms', of: (figures) => figures.p50Ms, digits: 1 },
  { name: 'p99 ms', of: (figures) => figures.p99Ms, digits: 1 },
  { name: 'max ms', of: (figures) => figures.maxMs, digits: 1 },
  { name: 'missing', of: (figures) => figures.missing, digits: 0 },
  { name: 'wrong', of: (figures) => figures.wrong, digits: 0 },
  { name: 'lost', of: (figures) => figures.lost, digits: 0 },
  { name: 'bytes', of: (figures) => figures.bytesPerMessage, digits: 0 },
  { name: 'writes', of: (figures) => figures.writesPerMessage, digits: 3 },
  { name: 'clients %', of: (figures) => figures.listenersLoad * 100, digits: 0 },
]
const NAME_CHARS = 30
const COLUMN_CHARS = 13

export const head = (): string => ''.padEnd(NAME_CHARS) + columns.map(({ name }) => name.padStart(COLUMN_CHARS)).join('')

/** One line: the medians of these rounds. */
export const row = (name: string, rounds: readonly Figures[]): string =>
  `${name}${rounds.some(isBehind) ? ' *' : ''}`.padEnd(NAME_CHARS) +
  columns.map(({ of, digits }) => formatNumber(median(rounds.map(of)), digits).padStart(COLUMN_CHARS)).join('')

export const formatNumber = (value: number, digits: number): string =>
  value.toLocaleString('en', { minimumFractionDigits: digits, maximumFractionDigits: digits })

export type Percentiles = { readonly p50Ms: number; readonly p99Ms: number; readonly maxMs: number }

export function percentilesOf(values: readonly number[]): Percentiles {
  const sorted = [...values].sort((a, b) => a - b)
  const at = (share: number) => sorted[Math.min(sorted.length - 1, Math.floor(sorted.length * share))] ?? 0
  return { p50Ms: at(0.5), p99Ms: at(0.99), maxMs: at(1) }
}
