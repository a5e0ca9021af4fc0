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

/** Returns a filter as a node expects it. */
export const requestFilterOf = ({ addresses, topics }: ReadFilter) => ({
  address: addresses,
  ...(topics && { topics: topics.map((words) => [...words]) }),
})

const completeSets = new WeakMap<readonly ReadFilter[], ReadonlySet<Hex>>()

/** Returns the contracts, and the pools of pool managers, of which the filters match every log. */
export const completeFor = (filters: readonly ReadFilter[]): ReadonlySet<Hex> =>
  getOrAdd(completeSets, filters, () => {
    const [first, ...others] = filters.map(({ addresses, topics }) => (topics ? (topics[POOL_PLACE] ?? []) : addresses))
    if (!first || others.length === 0) return addressSetOf(first ?? NO_ADDRESSES)
    return new Set([first, ...others].flat())
  })

/** The place of the pool's id in the topics of a pool manager's log. */
const POOL_PLACE = 1
const NO_ADDRESSES: readonly Hex[] = []
