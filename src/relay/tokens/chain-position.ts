export type ChainPosition = { readonly block: number; readonly logIndex: number }

/** Position of values that the list reports before the relay knows the head. It is later than every other position. */
export const UNKNOWN_POSITION: ChainPosition = { block: Number.MAX_SAFE_INTEGER, logIndex: Number.MAX_SAFE_INTEGER }

/** A change with its chain position. Only a change from a log has a key. */
export type KeyedPosition = ChainPosition & { readonly key: string | null }

export const isBefore = (a: ChainPosition, b: ChainPosition): boolean =>
  a.block < b.block || (a.block === b.block && a.logIndex < b.logIndex)

/** Inserts an item by its position, and removes an item with the same key. Among equal positions, the new item is last. */
export function insertInOrder<T extends KeyedPosition>(items: readonly T[], item: T): readonly T[] {
  const others = item.key === null ? items : items.filter(({ key }) => key !== item.key)
  const index = others.findLastIndex((other) => !isBefore(item, other)) + 1
  return [...others.slice(0, index), item, ...others.slice(index)]
}

/** Moves the changes that `isMoved` selects to the end of a block, in their order, and sets `fields` in them. */
export function moveToEndOf<T extends KeyedPosition>(
  changes: readonly T[],
  block: number,
  isMoved: (change: T) => boolean,
  fields: Partial<T> = {},
): readonly T[] {
  const moved = changes.filter(isMoved)
  if (moved.length === 0) return changes
  const others: readonly T[] = changes.filter((change) => !isMoved(change))
  return moved
    .map((change) => ({ ...change, ...fields, block, logIndex: Number.MAX_SAFE_INTEGER }))
    .reduce(insertInOrder<T>, others)
}

/** Returns a history with these changes: the same object if they are unchanged, which is quick to compare. */
export const withChanges = <History extends { readonly changes: readonly KeyedPosition[] }>(
  history: History,
  changes: History['changes'],
): History => (changes === history.changes ? history : { ...history, changes })

/** Drops the changes of a block that logs reported, if the sealed block does not contain their keys. */
export function dropUnsealed<T extends KeyedPosition>(items: readonly T[], block: number, sealedKeys: ReadonlySet<string>) {
  const isUnsealed = (item: T) => item.block === block && item.key !== null && !sealedKeys.has(item.key)
  return items.some(isUnsealed) ? items.filter((item) => !isUnsealed(item)) : items
}
