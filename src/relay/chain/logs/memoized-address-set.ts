import type { Hex } from '../../../lib/hex.ts'

const sets = new WeakMap<readonly Hex[], ReadonlySet<Hex>>()

/** The addresses of a list as a set. It is made once per list: a list may be long, and comes with every sealed block. */
export function addressSetOf(addresses: readonly Hex[]): ReadonlySet<Hex> {
  const known = sets.get(addresses)
  if (known) return known
  const set = new Set(addresses)
  sets.set(addresses, set)
  return set
}
