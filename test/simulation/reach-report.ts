import { readFileSync } from 'node:fs'
import { RECENT_BLOCKS_BOUND } from '../../src/relay/chain/blocks/block-bounds.ts'
import { type Interval, type UnreachedParts, unreachedInBoth } from './branch-coverage.ts'
import { type Fault, type FaultKind, faultTable } from './fault-table.ts'
import type { SourcePeriod } from './simulation.ts'
import type { SimulationInput } from './simulation-run.ts'
import { LEAST_TAPE_BOUND, type Settings } from './simulation-settings.ts'
import type { WorkerReach } from './worker-pool.ts'

/** How long a fault counts as active that happens at one moment. */
const MOMENT_MS = 1_000
/** Rows of the longest list. */
const ROWS_BOUND = 1_000
/** Characters of a line. */
const WIDTH = 132

/** What a world is like from its beginning to its end. */
const unusualWorlds: Readonly<Record<string, (settings: Settings) => boolean>> = {
  'several endpoints': ({ endpoints = 1 }) => endpoints > 1,
  'a tape that evicts': ({ tapeBound }) => tapeBound !== undefined,
  'a tape that the open keys alone may fill': ({ tapeBound }) => tapeBound !== undefined && tapeBound <= LEAST_TAPE_BOUND,
  'a chain whose oldest blocks are forgotten': ({ safeLag }) => safeLag > RECENT_BLOCKS_BOUND,
  'pools of a manager': ({ hasManager = false }) => hasManager,
}

const kinds = Object.keys(faultTable) as readonly FaultKind[]

/** What a number of seeds reached: faults, pairs of faults, changes of the source, and branches. */
export class ReachReport {
  readonly #seconds = new Map<FaultKind, number>()
  readonly #seeds = new Map<FaultKind, number>()
  readonly #worlds = new Map<string, number>()
  readonly #pairs = new Set<string>()
  readonly #changes = new Map<string, number>()
  readonly #trades = new Map<string, number>()
  readonly #managerTrades = new Map<string, number>()
  readonly #steps = new Map<string, number>()
  #unreached: UnreachedParts = new Map()

  /** Faults of the socket do nothing to a relay without one. */
  addFaults({ settings, faults }: SimulationInput): void {
    for (const [world, isThis] of Object.entries(unusualWorlds)) addTo(this.#worlds, world, isThis(settings) ? 1 : 0)
    const active = faults.filter(({ target }) => target !== 'socket' || settings.hasLink)
    for (const { kind, for: durationMs } of active) addTo(this.#seconds, kind, durationMs / 1_000)
    for (const kind of new Set(active.map((fault) => fault.kind))) addTo(this.#seeds, kind, 1)
    for (const [index, fault] of active.entries())
      for (const other of active.slice(index + 1)) if (areAtOnce(fault, other)) this.#pairs.add(pairOf(fault.kind, other.kind))
  }

  /** The statuses of one seed, in order. */
  addStatuses(statuses: readonly SourcePeriod[]): void {
    for (const [index, { status, trades, managerTrades }] of statuses.entries()) {
      addTo(this.#changes, `${statuses[index - 1]?.status ?? 'start'} → ${status}`, 1)
      addTo(this.#trades, status, trades)
      addTo(this.#managerTrades, status, managerTrades)
    }
  }

  addWorker({ steps, unreached }: WorkerReach): void {
    for (const [step, count] of steps) addTo(this.#steps, step, count)
    this.#unreached = unreachedInBoth(this.#unreached, unreached)
  }

  lines(): readonly string[] {
    return [...this.#faultLines(), ...this.#pairLines(), ...this.#changeLines(), ...this.#stepLines(), ...this.#branchLines()]
  }

  #faultLines(): readonly string[] {
    const rows = kinds.map((kind) => {
      const seconds = Math.round(this.#seconds.get(kind) ?? 0)
      return `${kind.padEnd(26)}${String(this.#seeds.get(kind) ?? 0).padStart(7)}${String(seconds).padStart(10)}`
    })
    const worlds = [...this.#worlds].map(([world, count]) => `  ${world}: ${count}`)
    return ['', `${'fault'.padEnd(26)}${'seeds'.padStart(7)}${'seconds'.padStart(10)}`, ...rows, '', 'seeds with', ...worlds]
  }

  #pairLines(): readonly string[] {
    const possible = (kinds.length * (kinds.length - 1)) / 2
    const missing = kinds.flatMap((kind, index) => {
      const others = kinds.slice(index + 1).filter((other) => !this.#pairs.has(pairOf(kind, other)))
      return others.length > 0 ? [shorten(`  never ${kind} with ${others.join(' ')}`)] : []
    })
    const reached = [...this.#pairs].filter((pair) => new Set(pair.split(' ')).size > 1).length
    return ['', `pairs of faults at once: ${reached} of ${possible}`, ...missing]
  }

  #changeLines(): readonly string[] {
    const rows = rowsOf(this.#changes)
    return [
      '',
      `changes of the source: ${rows.length}`,
      ...bounded(rows),
      '',
      'trades by source and reason',
      ...rowsOf(this.#trades),
      '',
      'trades of managers by source and reason',
      ...rowsOf(this.#managerTrades),
    ]
  }

  /** For each state that was reached, the evidence that never came in it. */
  #stepLines(): readonly string[] {
    const steps = [...this.#steps.keys()].map((step) => step.split(' '))
    const evidence = [...new Set(steps.map((step) => step.at(-1) ?? ''))].sort()
    const states = [...new Set(steps.map((step) => step.slice(0, -1).join(' ')))].sort()
    const rows = states.map((state) => {
      const missing = evidence.filter((name) => !this.#steps.has(`${state} ${name}`))
      return shorten(`  ${state}: ${missing.length > 0 ? `never ${missing.join(' ')}` : 'all'}`)
    })
    const pairs = `${this.#steps.size} of ${states.length * evidence.length}`
    return ['', `states of the source (link, trust, pending) with evidence: ${pairs}`, ...bounded(rows)]
  }

  #branchLines(): readonly string[] {
    const rows = [...this.#unreached].toSorted(([a], [b]) => a.localeCompare(b)).flatMap(([path, parts]) => branchRows(path, parts))
    const files = `${this.#unreached.size} files of src/relay/chain and src/relay/ingest that a simulation loads`
    return ['', `branches never reached, in ${files}: ${rows.length}`, ...bounded(rows)]
  }
}

function branchRows(path: string, parts: readonly Interval[]): readonly string[] {
  const source = readFileSync(new URL(`../../${path}`, import.meta.url), 'utf8')
  return parts.flatMap(([from, to]) => {
    const text = source.slice(from, to)
    // The end of a block behind a return is no branch.
    if (!/[^\s(){};,]/.test(text)) return []
    const line = source.slice(0, from + text.search(/\S/)).split('\n').length
    return [shorten(`  ${path}:${line} ${text.replaceAll(/\s+/g, ' ').trim()}`)]
  })
}

const rowsOf = (counts: ReadonlyMap<string, number>): readonly string[] =>
  [...counts].sort(([a], [b]) => a.localeCompare(b)).map(([name, count]) => `  ${name}: ${count}`)

const bounded = (rows: readonly string[]): readonly string[] =>
  rows.length > ROWS_BOUND ? [...rows.slice(0, ROWS_BOUND), `  … and ${rows.length - ROWS_BOUND} more`] : rows

const shorten = (line: string): string => (line.length > WIDTH ? `${line.slice(0, WIDTH - 1)}…` : line)

const addTo = <Name>(counts: Map<Name, number>, name: Name, count: number): Map<Name, number> =>
  counts.set(name, (counts.get(name) ?? 0) + count)

const pairOf = (a: FaultKind, b: FaultKind): string => [a, b].sort().join(' ')

const areAtOnce = (a: Fault, b: Fault): boolean =>
  a.at < b.at + Math.max(b.for, MOMENT_MS) && b.at < a.at + Math.max(a.for, MOMENT_MS)
