import { getOrAdd } from '../../../lib/bounded-map.ts'
import type { Hex } from '../../../lib/hex.ts'
import type { Log } from './log-parser.ts'

/** Matches the logs of these contracts. With `topics`, it matches only those with one of the listed words in each place. */
export type ReadFilter = { readonly addresses: readonly Hex[]; readonly topics?: readonly (readonly Hex[])[] }

/** The contract and the topics by which a filter matches a log. */
export type LogOrigin = Pick<Log, 'address'> & { readonly topics?: Log['topics'] }

const matches = ({ addresses, topics = [] }: ReadFilter, log: LogOrigin): boolean =>
  addressSetOf(addresses).has(log.address) && topics.every((words, place) => words.some((word) => word === log.topics?.[place]))

export const matchesAny = (filters: readonly ReadFilter[], log: LogOrigin): boolean =>
  filters.some((filter) => matches(filter, log))

const sets = new WeakMap<readonly Hex[], ReadonlySet<Hex>>()

/** Returns the set of a list, which is made only once: a list may be long, and every sealed block needs its set. */
export const addressSetOf = (addresses: readonly Hex[]): ReadonlySet<Hex> => getOrAdd(sets, addresses, () => new Set(addresses))

/** Returns the contracts of which the filters match every log. */
export function wholeContracts(filters: readonly ReadFilter[]): ReadonlySet<Hex> {
  const [first, ...others] = filters.filter(({ topics }) => topics === undefined)
  if (!first) return new Set()
  return others.length === 0 ? addressSetOf(first.addresses) : new Set([first, ...others].flatMap(({ addresses }) => addresses))
}
