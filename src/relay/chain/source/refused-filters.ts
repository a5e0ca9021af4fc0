import { getOrAdd } from '../../../lib/bounded-map.ts'
import type { Hex } from '../../../lib/hex.ts'
import type { ReadFilter } from '../logs/log-filter.ts'
import { FilterRefusedError } from '../rpc/upstream-error.ts'
import type { Lane, ReadAnswer } from '../sealed/settlement-types.ts'

/** A filter that the node refuses for this long is left out, and holds up no block any more. */
const REFUSED_MS = 10_000

/** `isAnswered`: the node answers the filter again. It stays left out until the blocks that need it are settled again. */
type LeftOut = { readonly filter: ReadFilter; readonly isAnswered: boolean }

/** The filters that the relay wants to read, and those of contracts that it leaves out because the node refuses them. */
export type RefusedFilters = {
  readonly wanted: readonly ReadFilter[]
  readonly leftOut: ReadonlyMap<Hex, LeftOut>
  /** When the refusals of a contract began that a kind of read has met since its last success. */
  readonly since: ReadonlyMap<Lane, ReadonlyMap<Hex, number>>
}

export const noRefusals = (leftOut: readonly ReadFilter[]): RefusedFilters => ({
  wanted: [],
  leftOut: new Map(leftOut.flatMap((filter) => entryOf(filter))),
  since: new Map(),
})

const entryOf = (filter: ReadFilter): readonly (readonly [Hex, LeftOut])[] =>
  filter.addresses.map((contract) => [contract, { filter, isAnswered: false }])

/** Whether nothing is read of a contract. */
export const isUnread = ({ leftOut }: RefusedFilters, contract: Hex): boolean => leftOut.get(contract)?.isAnswered === false

/** Shorter lists of filters by the list and the contracts that it lacks: few, because there are few managers. */
const shorterLists = new WeakMap<readonly ReadFilter[], Map<string, readonly ReadFilter[]>>()

/** Returns the wanted filters without those that are left out: one array for equal inputs, since a new one stands for a change. */
export function filtersWithoutRefused({ wanted, leftOut }: RefusedFilters): readonly ReadFilter[] {
  if (leftOut.size === 0) return wanted
  const ofList = getOrAdd(shorterLists, wanted, () => new Map<string, readonly ReadFilter[]>())
  return getOrAdd(ofList, [...leftOut.keys()].sort().join(), () =>
    wanted.filter(({ addresses, topics }) => !topics || !addresses.some((contract) => leftOut.has(contract))),
  )
}

/** Returns the refusal that an answer reports; null if it reports none. */
export function refusalIn(answer: ReadAnswer): FilterRefusedError | null {
  const failure = answer.type === 'failed' || answer.type === 'blocks' ? answer.failure : null
  return failure instanceof FilterRefusedError ? failure : null
}

/** Learns from a read whether to leave out filters. A recheck shows nothing, because it may fail. */
export function afterRead(refused: RefusedFilters, answer: ReadAnswer, at: number): RefusedFilters {
  const { lane } = answer.read
  const refusal = refusalIn(answer)
  const isAnswered = hasReadLogs(answer)
  const before = isAnswered ? undefined : refused.since.get(lane)
  if (lane === 'recheck' || (!refusal && !(isAnswered && refused.since.has(lane)))) return refused
  const filters = refusal?.filters ?? []
  // A filter that the node answered this time is not among them.
  const sinceOf = new Map(filters.flatMap(({ addresses }) => addresses.map((one) => [one, before?.get(one) ?? at] as const)))
  const since = new Map(refused.since).set(lane, sinceOf)
  const isLasting = ({ addresses }: ReadFilter) => addresses.some((contract) => at - (sinceOf.get(contract) ?? at) >= REFUSED_MS)
  const lasting = filters.filter(isLasting)
  if (lasting.length === 0) return { ...refused, since }
  return { ...refused, since: new Map(), leftOut: new Map([...refused.leftOut, ...lasting.flatMap(entryOf)]) }
}

/** Whether a read shows that the node answers the filters: one that failed, or that read headers alone, does not. */
const hasReadLogs = (answer: ReadAnswer): boolean =>
  (answer.type === 'page' && answer.blocks.length > 0) ||
  (answer.type === 'blocks' && answer.results.some((result) => !('holeReason' in result)))

/** The node answers the filter of a contract again. */
export function afterAnswer(refused: RefusedFilters, contract: Hex): RefusedFilters {
  const filter = refused.leftOut.get(contract)?.filter
  return filter ? { ...refused, leftOut: new Map(refused.leftOut).set(contract, { filter, isAnswered: true }) } : refused
}

/** All blocks that needed them are settled again, so the filters that the node answers are read again. */
export const withoutAnswered = (refused: RefusedFilters): RefusedFilters => ({
  ...refused,
  leftOut: new Map([...refused.leftOut].filter(([, { isAnswered }]) => !isAnswered)),
})
