import type { Hex } from '../protocol/fields.ts'
import type { Token } from './token.ts'

/** What a selector leads to: one token, several that share the name, or none, with names that are close. */
export type Finding =
  | { readonly kind: 'found'; readonly token: Token }
  | { readonly kind: 'ambiguous'; readonly suggest: readonly Hex[] }
  | { readonly kind: 'unknown'; readonly suggest: readonly string[] }

/** A token and one of its names as it is written. */
type Bearer = { readonly name: string; readonly token: Token }

/** Some names, and who bears one of them in any case. */
type Rank = { readonly names: readonly string[]; readonly bearers: readonly Bearer[] }

const ISIN = 'ISIN:'
const SUGGESTIONS_BOUND = 3
/** So many tokens of one name are told by their addresses; whoever meets more looks into the list. */
const NAMESAKES_BOUND = 100
/** A name that needs more changes than this is another name. */
const DISTANCE_BOUND = 2
/** A longer word is no slip of the fingers, and among more names than these nobody compares letter by letter. */
const LIKENESS_BOUND_CHARS = 12
const LIKENESS_BOUND_NAMES = 1_000

/** Finds tokens by any of their names: symbol in any case, with or without the trailing `c`, address, ISIN, former symbol. */
export class Directory {
  readonly #byAddress = new Map<string, Token>()
  readonly #byIsin = new Map<string, Bearer[]>()
  readonly #bySymbol = new Map<string, Bearer[]>()
  readonly #byFormer = new Map<string, Bearer[]>()

  constructor(tokens: Iterable<Token>) {
    for (const token of tokens) {
      this.#byAddress.set(token.address, token)
      // An ISIN has but one case.
      if (token.isin) add(this.#byIsin, anyCase(token.isin), token)
      add(this.#bySymbol, token.symbol, token)
      for (const symbol of token.former) add(this.#byFormer, symbol, token)
    }
  }

  find(selector: string): Finding {
    const text = selector.trim()
    if (text === '') return finding([], [])
    // Before any symbol: whatever a token calls itself, it does not take another's address.
    if (/^0x[0-9a-f]{40}$/i.test(text)) {
      const token = this.#byAddress.get(text.toLowerCase())
      return finding(token ? [token] : [], [])
    }
    const name = anyCase(text)
    if (name.startsWith(ISIN)) return finding(meant([rankOf(this.#byIsin, [anyCase(name.slice(ISIN.length))])]), [])
    const tokens = meant(this.#ranks(text))
    return finding(tokens, tokens.length > 0 ? [] : this.#closeTo(name))
  }

  /** Who bears the name, best first: to the letter, now rather than formerly, before whoever bears it but for a `c`. */
  #ranks(text: string): readonly Rank[] {
    const exactly = [text]
    const nearly = /c$/i.test(text) ? [`${text}c`, text.slice(0, -1)] : [`${text}c`]
    return [
      rankOf(this.#bySymbol, exactly),
      rankOf(this.#byFormer, exactly),
      rankOf(this.#bySymbol, nearly),
      rankOf(this.#byFormer, nearly),
    ]
  }

  #closeTo(name: string): readonly string[] {
    if (name.length > LIKENESS_BOUND_CHARS || this.#bySymbol.size > LIKENESS_BOUND_NAMES) return []
    return [...this.#bySymbol]
      .flatMap(([symbol, bearers]) => {
        const like = Math.min(distance(name, symbol), distance(name, symbol.replace(/C$/, '')))
        const bearer = bearers.find(isListed) ?? bearers[0]
        return bearer && like <= DISTANCE_BOUND ? [{ symbol: bearer.name, like }] : []
      })
      .sort((a, b) => a.like - b.like || (a.symbol < b.symbol ? -1 : 1))
      .slice(0, SUGGESTIONS_BOUND)
      .map((one) => one.symbol)
  }
}

/** Upper case last, since a lower-case letter may depend on its neighbours; one form for what looks the same. */
const anyCase = (text: string): string => text.trim().normalize('NFC').toLowerCase().toUpperCase()

function add(map: Map<string, Bearer[]>, name: string, token: Token): void {
  const key = anyCase(name)
  const bearers = map.get(key)
  const bearer = { name: name.trim(), token }
  if (bearers) bearers.push(bearer)
  else map.set(key, [bearer])
}

const rankOf = (map: ReadonlyMap<string, readonly Bearer[]>, names: readonly string[]): Rank => ({
  names,
  bearers: names.flatMap((name) => map.get(anyCase(name)) ?? []),
})

const isListed = ({ token }: Bearer): boolean => token.state !== 'delisted'

/** A token that was delisted gives its names up to any that is listed; of several, those who write it just so are meant. */
function meant(ranks: readonly Rank[]): readonly Token[] {
  const listed = ranks.map(({ names, bearers }) => ({ names, bearers: bearers.filter(isListed) }))
  const rank = [...listed, ...ranks].find(({ bearers }) => bearers.length > 0)
  if (!rank) return []
  const exact = rank.bearers.filter(({ name }) => rank.names.includes(name))
  return [...new Set((exact.length > 0 ? exact : rank.bearers).map(({ token }) => token))]
}

function finding(tokens: readonly Token[], suggest: readonly string[]): Finding {
  const [token, ...others] = tokens
  if (!token) return { kind: 'unknown', suggest }
  if (others.length === 0) return { kind: 'found', token }
  return { kind: 'ambiguous', suggest: tokens.slice(0, NAMESAKES_BOUND).map((one) => one.address) }
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
    if (Math.min(...row) > DISTANCE_BOUND) return DISTANCE_BOUND + 1
    beforeLast = last
    last = row
  }
  return last[b.length] ?? 0
}
