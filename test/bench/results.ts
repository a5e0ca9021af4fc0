import { median } from './percentiles.ts'

export const print = (line = ''): void => void process.stdout.write(`${line}\n`)

/** The figures of one server in one round, by their names. */
export type Figures = Readonly<Record<string, number>>
export type Report = (table: string, row: string, figures: Figures) => void

const ROW_CHARS = 34
const COLUMN_CHARS = 13
/** Figures that say what a server costs or how long it takes: these are compared. */
const comparedFigure = /µs|p50|p99|writes|KiB/i

/** A limit of a figure, or of its ratio to that of another row. Null: it is only printed. */
type Asked = readonly [table: string, figure: string, row: string, other: string | null, atMost: number | null]
const asked: readonly Asked[] = [
  ['ws', 'CPU µs', 'relay', 'C floor', 1.5],
  ['ws', 'p99 ms', 'relay', 'C floor', 2],
  ['ws', 'CPU µs', 'relay', 'naive ws', 1 / 15],
  ['sse', 'CPU µs', 'relay', 'C floor', 1.5],
  ['sse', 'p99 ms', 'relay', 'C floor', 2],
  ['sse', 'CPU µs', 'relay', 'bare Node', null],
  ['lone', 'CPU µs', 'relay', 'C floor', 1.33],
  ['lone', 'CPU µs', 'relay', 'naive ws', null],
  ['latency', 'p50 ms', 'relay', null, 1.5],
  ['memory', 'KiB each', 'ws, relay', null, 5],
  ['memory', 'KiB each', 'sse, relay', null, 5],
  ['ingest', 'CPU µs', '10000/s', null, 60],
  ['nats', 'p50 ms', '1000/s', null, 3],
  ['nats', 'p99 ms', '1000/s', null, 25],
  ['rpc', 'CPU µs', 'a balance', 'bare Node', null],
]

/** All measurements: a table for each part, with a row for each server or rate. */
export class Results {
  readonly #tables = new Map<string, Map<string, Figures[]>>()

  /** Records what one server achieved in one round, and prints it. */
  readonly add: Report = (table, row, figures) => {
    const rows = this.#tables.get(table) ?? new Map<string, Figures[]>()
    this.#tables.set(table, rows.set(row, [...(rows.get(row) ?? []), figures]))
    print(
      `${table}, ${row}: ${Object.entries(figures)
        .map(([name, value]) => `${name} ${formatNumber(value)}`)
        .join(', ')}`,
    )
  }

  /** Prints the medians of all rounds, and what is asked. */
  printMedians(): void {
    for (const [table, rows] of this.#tables) {
      const names = [...new Set([...rows.values()].flatMap(([first = {}]) => Object.keys(first)))]
      print()
      print(table.padEnd(ROW_CHARS) + names.map((name) => name.padStart(COLUMN_CHARS)).join(''))
      for (const [row, rounds] of rows) {
        const medians = names.map((name) => formatNumber(median(rounds.map((round) => round[name] ?? Number.NaN))))
        print(row.padEnd(ROW_CHARS) + medians.map((text) => text.padStart(COLUMN_CHARS)).join(''))
      }
    }
    print()
    for (const [table, figure, row, other, atMost] of asked) {
      const what = `${table}: ${figure}, ${row}${other === null ? '' : ` : ${other}`}`
      this.#printRatio(what, this.#ratios(table, figure, row, other), atMost)
    }
  }

  /** Prints every cost and every latency of this commit as a share of the other's, whose rows end in `suffix`. */
  printComparison(suffix: string): void {
    print()
    for (const [table, rows] of this.#tables) {
      for (const [row, [first = {}]] of rows) {
        for (const figure of Object.keys(first).filter((name) => comparedFigure.test(name)))
          this.#printRatio(`${table}, ${row}: ${figure}, this :${suffix}`, this.#ratios(table, figure, row, row + suffix), null)
      }
    }
  }

  /** The ratios within each round; the figures themselves without another row. */
  #ratios(table: string, figure: string, row: string, other: string | null): readonly number[] {
    const rows = this.#tables.get(table)
    return (rows?.get(row) ?? []).flatMap((one, round) => {
      const ratio = (one[figure] ?? Number.NaN) / (other === null ? 1 : (rows?.get(other)?.[round]?.[figure] ?? Number.NaN))
      return Number.isFinite(ratio) ? [ratio] : []
    })
  }

  #printRatio(what: string, ratios: readonly number[], atMost: number | null): void {
    if (ratios.length === 0) return
    const measured = median(ratios)
    const verdict = atMost === null ? '' : `  ≤ ${formatNumber(atMost)} ${measured <= atMost ? 'met' : 'NOT MET'}`
    const spread = `(${formatNumber(Math.min(...ratios))} to ${formatNumber(Math.max(...ratios))})`
    print(`${what.padEnd(ROW_CHARS + 2 * COLUMN_CHARS)}${formatNumber(measured).padStart(8)}  ${spread}${verdict}`)
  }
}

/** Three digits of small numbers, and all of large ones. */
const formatNumber = (value: number): string =>
  value.toLocaleString('en', value < 100 ? { maximumSignificantDigits: 3 } : { maximumFractionDigits: 0 })
