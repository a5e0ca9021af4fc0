/** Where in the chain something was said. */
export type ChainPosition = { readonly block: number; readonly logIndex: number }

/** Something that was said at a place: under its key by a log, without one by whoever is no log. */
export type KeyedPosition = ChainPosition & { readonly key: string | null }

export const isBefore = (one: ChainPosition, other: ChainPosition): boolean =>
  one.block < other.block || (one.block === other.block && one.logIndex < other.logIndex)

/** With one more in its place; what stood under the same key is replaced. Of two at one place the later comer stands last. */
export function insertInOrder<T extends KeyedPosition>(items: readonly T[], item: T): readonly T[] {
  const others = item.key === null ? items : items.filter(({ key }) => key !== item.key)
  const index = others.findLastIndex((other) => !isBefore(item, other)) + 1
  return [...others.slice(0, index), item, ...others.slice(index)]
}

/** Without what logs of a block said that it does not hold. */
export const dropUnsealed = <T extends KeyedPosition>(
  items: readonly T[],
  block: number,
  sealedKeys: ReadonlySet<string>,
): readonly T[] => {
  const isUnsealed = (one: T) => one.block === block && one.key !== null && !sealedKeys.has(one.key)
  return items.some(isUnsealed) ? items.filter((one) => !isUnsealed(one)) : items
}
