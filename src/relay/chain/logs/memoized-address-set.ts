import type { Hex } from '../../../lib/hex.ts'

const sets = new WeakMap<readonly Hex[], ReadonlySet<Hex>>()

/** Returns the set of a list, which is made only once: a list may be long, and every sealed block needs its set. */
export function addressSetOf(addresses: readonly Hex[]): ReadonlySet<Hex> {
  const known = sets.get(addresses)
  if (known) return known
  const set = new Set(addresses)
  sets.set(addresses, set)
  return set
}
