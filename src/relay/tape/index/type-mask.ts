import { type UpdateType, updateTypes } from '../../../protocol/updates.ts'

/** Bit for a key whose publication is evicted, so that it may have had any type. */
export const LOST = 1
const LOST_NAME = 'lost'
/** One bit for each type. The lowest bit is `LOST`. */
const bitByType: ReadonlyMap<string, number> = new Map([
  [LOST_NAME, LOST],
  ...updateTypes.map((type, index) => [type, 2 << index] as const),
])

export const bitOf = (type: UpdateType): number => bitByType.get(type) ?? LOST

/** Returns types as a bitmask. An unknown name sets the bit `LOST`, because it may mean any type. */
export function maskOf(names: Iterable<string>): number {
  let mask = 0
  for (const name of names) if (name !== '') mask |= bitByType.get(name) ?? LOST
  return mask
}

export const namesOf = (mask: number): readonly string[] =>
  [...bitByType].flatMap(([name, bit]) => ((mask & bit) !== 0 ? [name] : []))
