import type { Hex } from '../protocol/parts.ts'
import type { Token } from './board.ts'

/** What a selector leads to: one token, several that share the name, or none, with names that are close. */
export type Finding =
  | { readonly kind: 'found'; readonly token: Token }
  | { readonly kind: 'ambiguous'; readonly suggest: readonly Hex[] }
  | { readonly kind: 'unknown'; readonly suggest: readonly string[] }

const SUGGESTIONS_BOUND = 3
/** A name that needs more changes than this is another name. */
const DISTANCE_BOUND = 2

/** Finds tokens by any of their names: symbol in any case, with or without the trailing `c`, address, ISIN, former symbol. */
export class Directory {
  readonly #byAddress = new Map<string, Token>()
  readonly #byName = new Map<string, Token[]>()
  readonly #byFormer = new Map<string, Token[]>()
  readonly #byIsin = new Map<string, Token[]>()

  constructor(tokens: Iterable<Token>) {
    for (const token of tokens) {
      this.#byAddress.set(token.address, token)
      add(this.#byName, token.symbol.toLowerCase(), token)
      for (const symbol of token.former) add(this.#byFormer, symbol.toLowerCase(), token)
      if (token.isin) add(this.#byIsin, token.isin.toLowerCase(), token)
    }
  }

  find(selector: string): Finding {
    const name = selector.trim().toLowerCase()
    if (name.startsWith('0x')) return finding([this.#byAddress.get(name) ?? []].flat(), [])
    if (name.startsWith('isin:')) return finding(living(this.#byIsin.get(name.slice(5)) ?? []), [])
    const exact = this.#byName.get(name)?.filter((token) => token.symbol === selector.trim())
    const candidates = [
      exact,
      this.#byName.get(name),
      this.#byName.get(`${name}c`),
      name.endsWith('c') ? this.#byName.get(name.slice(0, -1)) : undefined,
      this.#byFormer.get(name),
    ]
    const found = candidates.find((tokens) => tokens && tokens.length > 0)
    return finding(living(found ?? []), found ? [] : this.#closeTo(name))
  }

  #closeTo(name: string): readonly string[] {
    return [...this.#byName]
      .map(([symbol, tokens]) => ({
        symbol: tokens[0]?.symbol ?? symbol,
        distance: Math.min(distance(name, symbol), distance(name, symbol.replace(/c$/, ''))),
      }))
      .filter((one) => one.distance <= DISTANCE_BOUND)
      .sort((a, b) => a.distance - b.distance || (a.symbol < b.symbol ? -1 : 1))
      .slice(0, SUGGESTIONS_BOUND)
      .map((one) => one.symbol)
  }
}

function add(map: Map<string, Token[]>, name: string, token: Token): void {
  const tokens = map.get(name)
  if (tokens) tokens.push(token)
  else map.set(name, [token])
}

/** A token that was delisted gives its name up to one that is listed. */
function living(tokens: readonly Token[]): readonly Token[] {
  const listed = tokens.filter((token) => token.state !== 'delisted')
  return listed.length > 0 ? listed : tokens
}

function finding(tokens: readonly Token[], suggest: readonly string[]): Finding {
  const [token, ...others] = tokens
  if (!token) return { kind: 'unknown', suggest }
  if (others.length === 0) return { kind: 'found', token }
  return { kind: 'ambiguous', suggest: [token, ...others].slice(0, 10).map((one) => one.address) }
}

/** How many letters must be added, dropped, changed or swapped with their neighbour; more than the bound is just more. */
function distance(a: string, b: string): number {
  if (Math.abs(a.length - b.length) > DISTANCE_BOUND) return DISTANCE_BOUND + 1
  let beforeLast: number[] = []
  let last = Array.from({ length: b.length + 1 }, (_, index) => index)
  for (let i = 1; i <= a.length; i += 1) {
    const row = [i]
    for (let j = 1; j <= b.length; j += 1) {
      const same = a[i - 1] === b[j - 1]
      let cost = Math.min((last[j] ?? 0) + 1, (row[j - 1] ?? 0) + 1, (last[j - 1] ?? 0) + (same ? 0 : 1))
      const swapped = i > 1 && j > 1 && a[i - 1] === b[j - 2] && a[i - 2] === b[j - 1]
      if (swapped) cost = Math.min(cost, (beforeLast[j - 2] ?? 0) + 1)
      row.push(cost)
    }
    beforeLast = last
    last = row
  }
  return last[b.length] ?? 0
}
