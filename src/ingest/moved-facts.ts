import type { FactLocation } from './fact.ts'

/** A fact that was published or that a sealed block contains. */
type LocatedContent = FactLocation & { readonly content: string }

export const byLogIndex = (a: Pick<FactLocation, 'logIndex'>, b: Pick<FactLocation, 'logIndex'>): number => a.logIndex - b.logIndex

const contentKey = ({ tx, content }: Pick<LocatedContent, 'tx' | 'content'>): string => `${tx} ${content}`

/** The keys of facts in log order, by transaction and content. */
export function keysByContent(facts: readonly LocatedContent[]): Map<string, string[]> {
  const keys = new Map<string, string[]>()
  for (const fact of [...facts].sort(byLogIndex)) {
    const matchingKeys = keys.get(contentKey(fact))
    if (matchingKeys) matchingKeys.push(fact.key)
    else keys.set(contentKey(fact), [fact.key])
  }
  return keys
}

/** Takes the next key with the same content. The last key is never used up. */
export function nextKey(keys: ReadonlyMap<string, string[]>, fact: LocatedContent): string | undefined {
  const matchingKeys = keys.get(contentKey(fact))
  return matchingKeys && matchingKeys.length > 1 ? matchingKeys.shift() : matchingKeys?.[0]
}

/**
 * Maps the key of each missing fact to the key under which its transaction contains the same content now. Each fact takes
 * a new key of its own while there are any; after that several facts share one.
 */
export function findMoves(
  missing: readonly LocatedContent[],
  unmatched: readonly LocatedContent[],
  facts: readonly LocatedContent[],
): ReadonlyMap<string, string> {
  const freeKeys = keysByContent(unmatched)
  const allKeys = keysByContent(facts)
  return new Map(
    missing.flatMap((fact) => {
      const newKey = freeKeys.get(contentKey(fact))?.shift() ?? allKeys.get(contentKey(fact))?.[0]
      return newKey === undefined ? [] : [[fact.key, newKey] as const]
    }),
  )
}
