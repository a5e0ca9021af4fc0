import type { StreamItem } from '../client/index.ts'

/** Symbols that the totals name one by one. */
const NAMED_SYMBOLS = 5

type SymbolTotal = { movements: number; cents: bigint }

/** What a run of `tail` received. */
export class TailTotals {
  readonly #types = new Map<string, number>()
  readonly #symbols = new Map<string, SymbolTotal>()

  add(item: StreamItem): void {
    if (item.type === 'snapshot') return
    this.#types.set(item.type, (this.#types.get(item.type) ?? 0) + 1)
    if (!('shares' in item)) return
    const total = this.#symbols.get(item.symbol) ?? { movements: 0, cents: 0n }
    total.movements += 1
    total.cents += BigInt((item.reference_value ?? '0.00').replace('.', ''))
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
    return [`${movements} movements = ${dollars(cents)} USD: ${named.join(', ')}${others > 0 ? ` and ${others} more symbols` : ''}`]
  }
}

const dollars = (cents: bigint): string => `${cents / 100n}.${String(cents % 100n).padStart(2, '0')}`
