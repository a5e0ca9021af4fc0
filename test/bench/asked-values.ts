import type { Figures } from './listener-load.ts'
import { formatNumber, print, ratioOf } from './result-table.ts'

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
    print(
      `${what.padEnd(WHAT_CHARS)}${formatNumber(measured, digits).padStart(12)}${bound.padStart(12)}${verdict.padEnd(9)}  ${note}`.trimEnd(),
    )
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

/** The medians of the ratios of this commit to another, whose figures have names that end in `suffix`. */
export function compareCommits(figuresByName: ReadonlyMap<string, readonly Figures[]>, suffix: string): readonly Comparison[] {
  return [...figuresByName].flatMap(([name, figures]) => {
    const others = figuresByName.get(name + suffix)
    if (!others) return []
    return comparedFigures.flatMap(([what, figure]) => {
      const ratio = ratioOf(figure, [figures, others], [true, true])
      return ratio
        ? [{ what: `${name}: ${what}, this :${suffix}`, measured: ratio.median, digits: 2, asked: null, note: ratio.note }]
        : []
    })
  })
}

/** The medians of the ratios within each round, from the rounds in which relay and floor kept up. */
export function compareRatios(
  figuresByName: ReadonlyMap<string, readonly Figures[]>,
  growthListeners: readonly number[],
): readonly Comparison[] {
  // A ratio to a slow peer is still meaningful.
  const mustKeepUp = (name: string) => /relay|floor|mixed/.test(name)
  const growth = growthListeners.map((listeners): Ratio => {
    const what = `CPU per delivery, ${formatNumber(listeners, 0)} listeners, relay : floor`
    return [what, 'cpuSecondsPerMillion', `${listeners}, relay`, `${listeners}, C floor`, null]
  })
  return [...ratios, ...growth].flatMap(([what, figure, first, second, asked]) => {
    const pair = [figuresByName.get(first) ?? [], figuresByName.get(second) ?? []] as const
    const ratio = ratioOf(figure, pair, [mustKeepUp(first), mustKeepUp(second)])
    return ratio ? [{ what, measured: ratio.median, digits: 2, asked, note: ratio.note }] : []
  })
}
