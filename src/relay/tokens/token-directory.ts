import { getOrAdd } from '../../lib/bounded-map.ts'
import { addressIn, type Hex } from '../../lib/hex.ts'
import { editDistance } from '../../lib/nearest-name.ts'
import type { Token } from './token.ts'

/** One token, the addresses of several with one name, or no token and similar symbols. */
export type LookupResult =
  | { readonly kind: 'found'; readonly token: Token }
  | { readonly kind: 'ambiguous'; readonly suggest: readonly Hex[] }
  | { readonly kind: 'unknown'; readonly suggest: readonly string[] }

/** An address, and a name of its token as the list writes that name. */
type NamedAddress = { readonly name: string; readonly address: Hex }

type NamedToken = { readonly name: string; readonly token: Token }

/** Names, and the tokens that have one of them. Upper and lower case are equal. */
type MatchTier = { readonly names: readonly string[]; readonly matches: readonly NamedToken[] }

const ISIN = 'ISIN:'
const SUGGESTIONS_BOUND = 3
/** Limit of the addresses in the answer for an ambiguous name. */
const SAME_NAME_BOUND = 100
/** Limit of the edit distance between a name and a suggested symbol. */
const DISTANCE_BOUND = 2
/** Limit of a name for which symbols are suggested: a longer one is no typing error. */
const FUZZY_MATCH_BOUND_CHARS = 12
const FUZZY_MATCH_BOUND_NAMES = 1_000

/** Finds tokens by address, ISIN, symbol or former symbol, in any case and with or without the trailing `c`. */
export class TokenDirectory {
  readonly #byAddress = new Map<string, Token>()
  readonly #byIsin = new NameIndex()
  readonly #bySymbol = new NameIndex()
  readonly #byFormerSymbol = new NameIndex()

  constructor(tokens: Iterable<Token> = []) {
    for (const token of tokens) this.set(token)
  }

  set(token: Token): void {
    const before = this.#byAddress.get(token.address)
    this.#byAddress.set(token.address, token)
    const [isin, isinBefore] = [isinsOf(token), isinsOf(before)]
    if (isin.join() !== isinBefore.join()) this.#byIsin.replace(token.address, isinBefore, isin)
    if (before?.symbol !== token.symbol) this.#bySymbol.replace(token.address, before ? [before.symbol] : [], [token.symbol])
    if (before?.formerSymbols !== token.formerSymbols)
      this.#byFormerSymbol.replace(token.address, before?.formerSymbols ?? [], token.formerSymbols)
  }

  find(selector: string): LookupResult {
    const text = selector.trim()
    const tokens = this.#tokensOf(text)
    const [token, ...others] = tokens
    if (!token) return { kind: 'unknown', suggest: this.#suggest(normalizeName(text)) }
    if (others.length === 0) return { kind: 'found', token }
    return { kind: 'ambiguous', suggest: tokens.slice(0, SAME_NAME_BOUND).map(({ address }) => address) }
  }

  #tokensOf(text: string): readonly Token[] {
    if (text === '') return []
    // Addresses are tested before symbols, so that no token can use another's address as its symbol.
    const address = addressIn(text)
    if (address === null) return resolveTiers(this.#tiers(text))
    const token = this.#byAddress.get(address)
    return token ? [token] : []
  }

  /** Returns the best matches first: the exact name before one with or without a `c`, current symbols before former ones. */
  #tiers(text: string): readonly MatchTier[] {
    const name = normalizeName(text)
    if (name.startsWith(ISIN)) return [this.#tier(this.#byIsin, [name.slice(ISIN.length)])]
    const exactNames = [text]
    const variantNames = /c$/i.test(text) ? [`${text}c`, text.slice(0, -1)] : [`${text}c`]
    return [
      this.#tier(this.#bySymbol, exactNames),
      this.#tier(this.#byFormerSymbol, exactNames),
      this.#tier(this.#bySymbol, variantNames),
      this.#tier(this.#byFormerSymbol, variantNames),
    ]
  }

  #tier(index: NameIndex, names: readonly string[]): MatchTier {
    return { names, matches: names.flatMap((name) => this.#withTokens(index.find(name))) }
  }

  #withTokens(matches: readonly NamedAddress[]): readonly NamedToken[] {
    return matches.flatMap(({ name, address }) => {
      const token = this.#byAddress.get(address)
      return token ? [{ name, token }] : []
    })
  }

  #suggest(name: string): readonly string[] {
    if (name === '' || name.startsWith(ISIN) || name.length > FUZZY_MATCH_BOUND_CHARS) return []
    if (this.#bySymbol.size > FUZZY_MATCH_BOUND_NAMES) return []
    return [...this.#bySymbol]
      .flatMap(([symbol, addresses]) => {
        const matches = this.#withTokens(addresses)
        const edits = Math.min(
          editDistance(name, symbol, DISTANCE_BOUND),
          editDistance(name, symbol.replace(/C$/, ''), DISTANCE_BOUND),
        )
        const match = matches.find(isListed) ?? matches[0]
        return match && edits <= DISTANCE_BOUND ? [{ symbol: match.name, edits }] : []
      })
      .sort((a, b) => a.edits - b.edits || (a.symbol < b.symbol ? -1 : 1))
      .slice(0, SUGGESTIONS_BOUND)
      .map(({ symbol }) => symbol)
  }
}

/** Makes names comparable. Ends in upper case, since a lower-case letter may depend on neighbours; NFC unifies equal looks. */
const normalizeName = (text: string): string => text.trim().normalize('NFC').toLowerCase().toUpperCase()

const isinsOf = (token: Token | undefined): readonly string[] => (token?.isin ? [normalizeName(token.isin)] : [])

/** Finds tokens by name, in upper or lower case. */
class NameIndex extends Map<string, NamedAddress[]> {
  find(name: string): readonly NamedAddress[] {
    return this.get(normalizeName(name)) ?? []
  }

  replace(address: Hex, before: readonly string[], after: readonly string[]): void {
    for (const name of before) {
      const others = this.find(name).filter((match) => match.address !== address)
      if (others.length > 0) this.set(normalizeName(name), others)
      else this.delete(normalizeName(name))
    }
    for (const name of after) getOrAdd(this, normalizeName(name), () => []).push({ name: name.trim(), address })
  }
}

const isListed = ({ token }: NamedToken): boolean => token.state !== 'delisted'

/** Returns the best tokens: listed ones before delisted ones and, among several, those with the exact spelling. */
function resolveTiers(tiers: readonly MatchTier[]): readonly Token[] {
  const listedTiers = tiers.map(({ names, matches }) => ({ names, matches: matches.filter(isListed) }))
  const tier = [...listedTiers, ...tiers].find(({ matches }) => matches.length > 0)
  if (!tier) return []
  const exact = tier.matches.filter(({ name }) => tier.names.includes(name))
  return [...new Set((exact.length > 0 ? exact : tier.matches).map(({ token }) => token))]
}
