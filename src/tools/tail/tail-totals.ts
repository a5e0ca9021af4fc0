import { BoundedMap } from '../../lib/bounded-map.ts'
import type { StreamItem } from '../../sdk/client/index.ts'

/** Limit of movements whose value is remembered, in case they are retracted. */
const REMEMBERED_BOUND = 10_000
/** Limit of the symbols whose totals are printed. */
const NAMED_SYMBOLS = 5

type MovementTotal = { movements: number; cents: bigint }

export class TailTotals {
  readonly #types = new Map<string, number>()
  readonly #symbols = new Map<string, MovementTotal>()
  readonly #values = new BoundedMap<string, bigint>(REMEMBERED_BOUND)
  readonly #retracted: MovementTotal = { movements: 0, cents: 0n }

  add(item: StreamItem): void {
    if (item.type === 'snapshot') return
    this.#types.set(item.type, (this.#types.get(item.type) ?? 0) + 1)
    const retracted = item.type === 'retract' ? this.#values.get(item.key) : undefined
    if (retracted !== undefined) addTo(this.#retracted, retracted)
    if (!('memo' in item)) return
    const cents = BigInt((item.reference_value ?? '0.00').replace('.', ''))
    this.#values.set(item.key, cents)
    const total = this.#symbols.get(item.symbol) ?? { movements: 0, cents: 0n }
    addTo(total, cents)
    this.#symbols.set(item.symbol, total)
  }

  lines(elapsedMs: number): readonly string[] {
    const byCount = [...this.#types].sort(([, a], [, b]) => b - a)
    const count = byCount.reduce((sum, [, each]) => sum + each, 0)
    const types = byCount.map(([type, each]) => `${each} ${type}`).join(', ')
    return [`${count} updates in ${Math.round(elapsedMs / 1_000)} s${types && `: ${types}`}`, ...this.#movementLines()]
  }

  #movementLines(): readonly string[] {
    const symbols = [...this.#symbols].sort(([, a], [, b]) => (a.cents < b.cents ? 1 : -1))
    if (symbols.length === 0) return []
    const movements = symbols.reduce((sum, [, total]) => sum + total.movements, 0)
    const cents = symbols.reduce((sum, [, total]) => sum + total.cents, 0n)
    const named = symbols.slice(0, NAMED_SYMBOLS).map(([symbol, total]) => `${symbol} ${total.movements} = ${dollars(total.cents)}`)
    const others = symbols.length - named.length
    const { movements: retracted, cents: retractedCents } = this.#retracted
    const taken = retracted === 0 ? '' : `; ${retracted} of them = ${dollars(retractedCents)} USD retracted`
    return [
      `${movements} movements = ${dollars(cents)} USD: ${named.join(', ')}${others > 0 ? ` and ${others} more symbols` : ''}${taken}`,
    ]
  }
}

function addTo(total: MovementTotal, cents: bigint): void {
  total.movements += 1
  total.cents += cents
}

const dollars = (cents: bigint): string => `${cents / 100n}.${String(cents % 100n).padStart(2, '0')}`
