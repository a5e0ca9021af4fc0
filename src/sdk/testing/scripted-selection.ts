import { followedKeys } from '../generated/key-life.ts'
import type { AmendMessage, SubscribedMessage, Update } from '../generated/messages.ts'
import { filterParameters, namedTypes, updateTypes } from '../generated/names.ts'
import type { ScriptedTape } from './scripted-tape.ts'

const defaultTypes = updateTypes.filter((type) => !namedTypes.includes(type))
const listOf = (text: string): readonly string[] => text.split(',').map((item) => item.trim())

/** Messages that a query selects, by the rules of the contract. */
export class ScriptedSelection {
  /** Null for all types. */
  readonly types: readonly string[] | null
  readonly #tape: () => ScriptedTape
  readonly #query: URLSearchParams

  constructor(query: URLSearchParams, tape: () => ScriptedTape) {
    const types = query.get('types')
    this.types = types === '*' ? null : types === null ? defaultTypes : listOf(types)
    this.#query = query
    this.#tape = tape
  }

  get hasValueFilter(): boolean {
    return filterParameters.some(([, name]) => this.#query.has(name))
  }

  /** Symbols of the tape, and what the tape does not have. */
  get symbols(): { readonly known: readonly string[]; readonly unknown: readonly string[] } {
    const tape = this.#tape()
    const given = listOf(this.#query.get('symbols') ?? '*')
    if (given.includes('*')) return { known: tape.symbols, unknown: [] }
    const found = given.map((name) => tape.symbols.find((symbol) => tape.namesOf(symbol).includes(name.toLowerCase())))
    return {
      known: [...new Set(found.filter((symbol) => symbol !== undefined))],
      unknown: given.filter((_, index) => found[index] === undefined),
    }
  }

  has(message: Update): boolean {
    if (message.symbol !== '*' && !this.symbols.known.includes(message.symbol)) return false
    if (message.type === 'amend' && this.#matches(message.update)) return true
    const facts = followedKeys(message).map((key) => this.#tape().factOf(key))
    if (facts.some((fact) => fact && this.#matches(fact))) return true
    const isOfOther = facts.length > 0 && message.type !== 'seal' && this.hasValueFilter
    return !isOfOther && this.#matches(message)
  }

  #matches(message: Update | AmendMessage['update']): boolean {
    if (this.types && !this.types.includes(message.type)) return false
    if (message.type === 'trade' || message.type === 'quote') if (!this.#isListed('pools', [message.venue.pool])) return false
    if (!('shares' in message && 'key' in message)) return true
    const [value, parties] =
      message.type === 'trade'
        ? [message.currency_amount, [message.sender, message.recipient]]
        : [message.reference_value, [message.from, message.to]]
    return (
      isAtLeast(value, this.#query.get('min_value')) &&
      isAtLeast(message.shares, this.#query.get('min_shares')) &&
      this.#isListed('account', parties)
    )
  }

  #isListed(name: 'account' | 'pools', words: readonly (string | null)[]): boolean {
    const given = this.#query.get(name)
    return given === null || listOf(given.toLowerCase()).some((word) => words.includes(word))
  }
}

/** Symbols that the relay does not know, as `subscribed` and an answer of snapshots name them. */
export const rejectedOf = (unknown: readonly string[]): SubscribedMessage['rejected'] =>
  unknown.map((symbol) => ({ symbol, reason: 'unknown_symbol', suggest: [] }))

const isAtLeast = (value: string | null, least: string | null): boolean =>
  least === null || (value !== null && Number(value) >= Number(least))
