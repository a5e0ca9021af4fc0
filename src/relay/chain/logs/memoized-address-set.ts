import type { Hex } from '../../../lib/hex.ts'

const sets = new WeakMap<readonly Hex[], ReadonlySet<Hex>>()

/** Makes one set for each list: a list may be long, and a set of it is needed for each sealed block. */
export function addressSetOf(addresses: readonly Hex[]): ReadonlySet<Hex> {
  const known = sets.get(addresses)
  if (known) return known
  const set = new Set(addresses)
  sets.set(addresses, set)
  return set
}
