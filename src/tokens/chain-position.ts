/** A place in the chain. */
export type ChainPosition = { readonly block: number; readonly logIndex: number }

/** A change at a place in the chain; only a change from a log has a key. */
export type KeyedPosition = ChainPosition & { readonly key: string | null }

export const isBefore = (a: ChainPosition, b: ChainPosition): boolean =>
  a.block < b.block || (a.block === b.block && a.logIndex < b.logIndex)

/** Inserts an item by position and replaces one with the same key. Of two at one position, the newer is last. */
export function insertInOrder<T extends KeyedPosition>(items: readonly T[], item: T): readonly T[] {
  const others = item.key === null ? items : items.filter(({ key }) => key !== item.key)
  const index = others.findLastIndex((other) => !isBefore(item, other)) + 1
  return [...others.slice(0, index), item, ...others.slice(index)]
}

/**
 * Moves what was reported without a log at this block or a later one to the end of the block before. Another chain has replaced
 * those blocks, and its logs are newer.
 */
export function moveReportsBefore<T extends KeyedPosition>(
  changes: readonly T[],
  block: number,
  isReport: (change: T) => boolean,
): readonly T[] {
  const isReplaced = (change: T) => change.block >= block && isReport(change)
  const reports = changes.filter(isReplaced)
  if (reports.length === 0) return changes
  const others: readonly T[] = changes.filter((change) => !isReplaced(change))
  const moved = reports.map((report) => ({ ...report, block: block - 1, logIndex: Number.MAX_SAFE_INTEGER }))
  return moved.reduce(insertInOrder<T>, others)
}

/** Drops the log changes of a block whose keys the sealed block does not contain. */
export const dropUnsealed = <T extends KeyedPosition>(
  items: readonly T[],
  block: number,
  sealedKeys: ReadonlySet<string>,
): readonly T[] => {
  const isUnsealed = (item: T) => item.block === block && item.key !== null && !sealedKeys.has(item.key)
  return items.some(isUnsealed) ? items.filter((item) => !isUnsealed(item)) : items
}
