import type { Figures } from './listener-load.ts'

/** What is printed: medians of the rounds, and of the ratios within each. */

export const print = (line = ''): void => void process.stdout.write(`${line}\n`)

export function median(values: readonly number[]): number {
  const sorted = [...values].sort((a, b) => a - b)
  const [low, high] = [sorted[Math.floor((sorted.length - 1) / 2)], sorted[Math.ceil((sorted.length - 1) / 2)]]
  return low === undefined || high === undefined ? Number.NaN : (low + high) / 2
}

/** Below this a server was behind: what waited went out together, so it cost less than the same work in time. */
const KEEPING_UP_PACE = 0.95
const isBehind = ({ pace }: Figures): boolean => pace < KEEPING_UP_PACE

/** A figure of two servers, as a ratio; how it was in the rounds in which those who must keep up did, if there were any. */
export function ratioOf(
  figure: keyof Figures,
  [some, others]: readonly [readonly Figures[], readonly Figures[]],
  mustKeepUp: readonly [boolean, boolean],
): string | null {
  const rounds = some.flatMap((one, round) => {
    const other = others[round]
    const ratio = other ? one[figure] / other[figure] : Number.NaN
    if (!other || !Number.isFinite(ratio) || ratio === 0) return []
    return [{ ratio, inTime: ![one, other].some((each, at) => mustKeepUp[at] && isBehind(each)) }]
  })
  const inTime = rounds.filter((round) => round.inTime)
  const ratios = (inTime.length > 0 ? inTime : rounds).map(({ ratio }) => ratio)
  if (ratios.length === 0) return null
  const spread = ratios.length > 1 ? `(${Math.min(...ratios).toFixed(2)} to ${Math.max(...ratios).toFixed(2)})` : ''
  const skippedRounds = rounds.length - inTime.length
  const note =
    skippedRounds === rounds.length
      ? ' *'
      : skippedRounds > 0
        ? ` without ${skippedRounds} of ${rounds.length} rounds`
        : ''
  return `${median(ratios).toFixed(2).padStart(6)} ${spread}${note}`
}

type Column = { readonly name: string; readonly of: (figures: Figures) => number; readonly digits: number }

const columns: readonly Column[] = [
  { name: 'deliveries/s', of: (one) => one.deliveriesPerSecond, digits: 0 },
  { name: 'per CPU-s', of: (one) => one.deliveriesPerCpuSecond, digits: 0 },
  { name: 'CPU-s/M', of: (one) => one.cpuSecondsPerMillion, digits: 3 },
  { name: 'p50 ms', of: (one) => one.p50Ms, digits: 1 },
  { name: 'p99 ms', of: (one) => one.p99Ms, digits: 1 },
  { name: 'max ms', of: (one) => one.maxMs, digits: 1 },
  { name: 'missing', of: (one) => one.missing, digits: 0 },
  { name: 'wrong', of: (one) => one.wrong, digits: 0 },
  { name: 'lost', of: (one) => one.lost, digits: 0 },
  { name: 'bytes', of: (one) => one.bytesPerMessage, digits: 0 },
  { name: 'ears %', of: (one) => one.listenersLoad * 100, digits: 0 },
]
const NAME_CHARS = 24
const COLUMN_CHARS = 13

export const head = (): string =>
  ''.padEnd(NAME_CHARS) + columns.map(({ name }) => name.padStart(COLUMN_CHARS)).join('')

/** One line: the medians of these rounds. */
export const row = (name: string, rounds: readonly Figures[]): string =>
  `${name}${rounds.some(isBehind) ? ' *' : ''}`.padEnd(NAME_CHARS) +
  columns.map(({ of, digits }) => formatNumber(median(rounds.map(of)), digits).padStart(COLUMN_CHARS)).join('')

export const formatNumber = (value: number, digits: number): string =>
  value.toLocaleString('en', { minimumFractionDigits: digits, maximumFractionDigits: digits })
