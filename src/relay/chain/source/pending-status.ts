import type { ReadFilter } from '../logs/log-filter.ts'
import type { Header, SealedHeader } from '../rpc/block-header.ts'

/** Result of a poll of the pending block: a block being built, one far behind the head, a sealed block, or none. */
export type PendingStatus = 'preconfirmed' | 'behind' | 'latest' | 'null'

export const BEHIND_BLOCKS = 2

/** The memory of polls about the last pending block. */
export type PendingMemory = {
  readonly block: Header | null
  /** Whether the node returns sealed blocks as pending. */
  readonly repeatsSealed: boolean
  readonly status: PendingStatus
  /** Fingerprint of the pending block whose logs were read last, with `filters`. */
  readonly fingerprint: string
  readonly filters: readonly ReadFilter[] | null
}

export const noPendingMemory: PendingMemory = { block: null, repeatsSealed: false, status: 'null', fingerprint: '', filters: null }

/** Returns a text that changes with each transaction that the pending block gains. */
export const fingerprintOf = (pending: Header | null): string =>
  `${pending?.number} ${pending?.hash} ${pending?.transactions?.length} ${pending?.gasUsed}`

/** Judges a pending block by the latest one. `knownHead` is the head at the request: there may be newer blocks at the answer. */
export function judgePending(
  memory: PendingMemory,
  pending: Header | null,
  latest: SealedHeader,
  knownHead: number | null,
): PendingMemory {
  if (!pending) return { ...memory, status: 'null' }
  const repeatsSealed = pending.hash === latest.hash || (memory.repeatsSealed && !isBeingBuilt(pending, memory.block))
  const judged = (status: PendingStatus): PendingMemory => ({ ...memory, block: pending, repeatsSealed, status })
  const { number, hash, parentHash } = pending
  if (hash === latest.hash) return judged('latest')
  // A block that was sealed between the two reads was being built at the first one.
  if (number === null) return judged(parentHash === latest.hash || parentHash === latest.parentHash ? 'preconfirmed' : 'latest')
  if (number >= latest.number) return judged(repeatsSealed ? 'latest' : 'preconfirmed')
  return judged(number < (knownHead ?? latest.number) - BEHIND_BLOCKS ? 'behind' : 'latest')
}

/** True for a block without a hash, or with a changing one. Any other block may be sealed on a node that is ahead. */
const isBeingBuilt = ({ number, hash }: Header, previous: Header | null): boolean =>
  !hash || !/[^0x]/.test(hash) || (previous?.number === number && previous.hash !== hash)
