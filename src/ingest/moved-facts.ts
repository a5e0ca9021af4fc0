import type { FactLocation } from './fact.ts'

/** What stands somewhere, and what it says: told before, or held by a sealed block. */
type LocatedContent = FactLocation & { readonly content: string }

export const byLogIndex = (a: Pick<FactLocation, 'logIndex'>, b: Pick<FactLocation, 'logIndex'>): number =>
  a.logIndex - b.logIndex

const contentKey = ({ tx, content }: Pick<LocatedContent, 'tx' | 'content'>): string => `${tx} ${content}`

/** The keys of facts, by what each transaction says in them, in log order. */
export function keysByContent(facts: readonly LocatedContent[]): Map<string, string[]> {
  const keys = new Map<string, string[]>()
  for (const fact of [...facts].sort(byLogIndex)) {
    const matchingKeys = keys.get(contentKey(fact))
    if (matchingKeys) matchingKeys.push(fact.key)
    else keys.set(contentKey(fact), [fact.key])
  }
  return keys
}

/** The next key that says the same; the last one again where there is no other. */
export function nextKey(keys: ReadonlyMap<string, string[]>, fact: LocatedContent): string | undefined {
  const matchingKeys = keys.get(contentKey(fact))
  return matchingKeys && matchingKeys.length > 1 ? matchingKeys.shift() : matchingKeys?.[0]
}

/**
 * Under which other index of its transaction each that is gone is found: old key to new. Each takes a place of its own
 * as long as there are any; of two that said the same, both are where the one is that is left.
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
