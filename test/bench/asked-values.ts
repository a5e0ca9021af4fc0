import { type Figures, isBehind } from './listener-load.ts'
import { formatNumber, median, print } from './result-table.ts'

/** What is asked of the relay, next to what was measured. */

type Bound = { readonly atMost: number } | { readonly atLeast: number }
export type Comparison = {
  readonly what: string
  readonly measured: number
  readonly digits: number
  /** Null where the value is printed to be known. */
  readonly asked: Bound | null
  readonly note?: string
}

const isMet = (measured: number, asked: Bound): boolean =>
  'atMost' in asked ? measured <= asked.atMost : measured >= asked.atLeast

const WHAT_CHARS = 56

/** Prints each measured value with the asked one. */
export function printComparisons(comparisons: readonly Comparison[]): void {
  if (comparisons.length === 0) return
  print()
  print(`${''.padEnd(WHAT_CHARS)}${'measured'.padStart(12)}${'asked'.padStart(12)}`)
  for (const { what, measured, digits, asked, note = '' } of comparisons) {
    const bound = asked === null ? '' : 'atMost' in asked ? `≤ ${asked.atMost}` : `≥ ${formatNumber(asked.atLeast, 0)}`
    const verdict = asked === null ? '' : isMet(measured, asked) ? '  met' : '  NOT MET'
    const values = `${formatNumber(measured, digits).padStart(12)}${bound.padStart(12)}${verdict.padEnd(9)}`
    print(`${what.padEnd(WHAT_CHARS)}${values}  ${note}`.trimEnd())
  }
}

type Ratio = readonly [what: string, figure: keyof Figures, first: string, second: string, asked: Bound | null]

const ratios: readonly Ratio[] = [
  ['CPU per WebSocket delivery, relay : floor', 'cpuSecondsPerMillion', 'ws, relay', 'ws, C floor', { atMost: 1.5 }],
  ['CPU per SSE delivery, relay : floor', 'cpuSecondsPerMillion', 'sse, relay', 'sse, C floor', { atMost: 1.5 }],
  ['CPU per lone delivery, relay : floor', 'cpuSecondsPerMillion', 'lone ws, relay', 'lone ws, C floor', { atMost: 1.33 }],
  ['CPU per delivery, 2 workers : 1', 'cpuSecondsPerMillion', 'ws, 2 workers', 'ws, 1 worker', { atMost: 1.1 }],
  ['p99 over WebSocket, relay : floor', 'p99Ms', 'ws, relay', 'ws, C floor', { atMost: 2 }],
  ['p99 over SSE, relay : floor', 'p99Ms', 'sse, relay', 'sse, C floor', { atMost: 2 }],
  ['CPU per delivery, SSE : WebSocket', 'cpuSecondsPerMillion', 'sse, relay', 'ws, relay', null],
  ['deliveries per CPU-second, relay : naive ws', 'deliveriesPerCpuSecond', 'ws, relay', 'ws, naive ws', { atLeast: 15 }],
  ['the same, lone transfers', 'deliveriesPerCpuSecond', 'lone ws, relay', 'lone ws, naive ws', null],
  ['the same, own sets : naive ws', 'deliveriesPerCpuSecond', 'mixed, own set', 'ws, naive ws', { atLeast: 10 }],
  ['deliveries per CPU-second, relay : streamSSE', 'deliveriesPerCpuSecond', 'sse, relay', 'sse, hono streamSSE', null],
  ['deliveries per CPU-second, own sets : same set', 'deliveriesPerCpuSecond', 'mixed, own set', 'mixed, same set', null],
  ['bytes of bursts, deflated : plain', 'bytesPerMessage', 'bursts, deflated', 'bursts, plain', { atMost: 0.3 }],
  ['bytes of lone transfers, deflated : plain', 'bytesPerMessage', 'lone, deflated', 'lone, plain', { atMost: 0.6 }],
  ['CPU per delivery of bursts, deflated : plain', 'cpuSecondsPerMillion', 'bursts, deflated', 'bursts, plain', { atMost: 1.3 }],
  ['CPU per lone delivery, deflated : plain', 'cpuSecondsPerMillion', 'lone, deflated', 'lone, plain', null],
]

/** What is compared of two commits. */
const comparedFigures = [
  ['CPU per delivery', 'cpuSecondsPerMillion'],
  ['p50', 'p50Ms'],
  ['p99', 'p99Ms'],
  ['writes per delivery', 'writesPerMessage'],
] as const satisfies readonly (readonly [string, keyof Figures])[]

type FiguresByName = ReadonlyMap<string, readonly Figures[]>

/** The median of the ratios within each round: of the rounds in which the required servers kept up, if there are any. */
function ratioIn(all: FiguresByName, [what, figure, first, second, asked]: Ratio, mustKeepUp: (name: string) => boolean) {
  const rounds = (all.get(first) ?? []).flatMap((one, round) => {
    const other = all.get(second)?.[round]
    const ratio = other ? one[figure] / other[figure] : Number.NaN
    if (!other || !Number.isFinite(ratio) || ratio === 0) return []
    return [{ ratio, inTime: !(mustKeepUp(first) && isBehind(one)) && !(mustKeepUp(second) && isBehind(other)) }]
  })
  const inTime = rounds.filter((round) => round.inTime)
  const measured = (inTime.length > 0 ? inTime : rounds).map(({ ratio }) => ratio)
  if (measured.length === 0) return []
  const spread = measured.length > 1 ? `(${Math.min(...measured).toFixed(2)} to ${Math.max(...measured).toFixed(2)})` : ''
  const late = rounds.length - inTime.length
  const skipped = late === rounds.length ? ' *' : late > 0 ? ` without ${late} of ${rounds.length} rounds` : ''
  return [{ what, measured: median(measured), digits: 2, asked, note: `${spread}${skipped}` }]
}

/** The ratios of this commit to another, whose figures have names that end in `suffix`. */
export const compareCommits = (all: FiguresByName, suffix: string): readonly Comparison[] =>
  [...all.keys()].flatMap((name) =>
    comparedFigures.flatMap(([what, figure]) =>
      ratioIn(all, [`${name}: ${what}, this :${suffix}`, figure, name, name + suffix, null], () => true),
    ),
  )

/** The ratios to the peers. A ratio to a slow peer is still meaningful. */
export function compareRatios(all: FiguresByName, growthListeners: readonly number[]): readonly Comparison[] {
  const growth = growthListeners.map((listeners): Ratio => {
    const what = `CPU per delivery, ${formatNumber(listeners, 0)} listeners, relay : floor`
    return [what, 'cpuSecondsPerMillion', `${listeners}, relay`, `${listeners}, C floor`, null]
  })
  return [...ratios, ...growth].flatMap((ratio) => ratioIn(all, ratio, (name) => /relay|floor|mixed/.test(name)))
}
