/** Where in the chain something was said. */
export type Place = { readonly block: number; readonly logIndex: number }

/** Something that was said at a place: under its key by a log, without one by whoever is no log. */
export type Placed = Place & { readonly key: string | null }

export const isBefore = (one: Place, other: Place): boolean =>
  one.block < other.block || (one.block === other.block && one.logIndex < other.logIndex)

/** With one more in its place; what stood under the same key is replaced. Of two at one place the later comer stands last. */
export function inserted<T extends Placed>(all: readonly T[], one: T): readonly T[] {
  const others = one.key === null ? all : all.filter(({ key }) => key !== one.key)
  const at = others.findLastIndex((other) => !isBefore(one, other)) + 1
  return [...others.slice(0, at), one, ...others.slice(at)]
}

/** Without what logs of a block said that it does not hold. */
export const keptIn = <T extends Placed>(all: readonly T[], block: number, keys: ReadonlySet<string>): readonly T[] => {
  const isGone = (one: T) => one.block === block && one.key !== null && !keys.has(one.key)
  return all.some(isGone) ? all.filter((one) => !isGone(one)) : all
}
