import type { Place } from './fact.ts'

/** What stands somewhere, and what it says: told before, or held by a sealed block. */
type Content = Place & { readonly content: string }

export const byIndex = (a: Pick<Place, 'logIndex'>, b: Pick<Place, 'logIndex'>): number => a.logIndex - b.logIndex

const sameness = ({ tx, content }: Pick<Content, 'tx' | 'content'>): string => `${tx} ${content}`

/** The keys of facts, by what each transaction says in them, in log order. */
export function keysBySameness(facts: readonly Content[]): Map<string, string[]> {
  const keys = new Map<string, string[]>()
  for (const fact of [...facts].sort(byIndex)) {
    const same = keys.get(sameness(fact))
    if (same) same.push(fact.key)
    else keys.set(sameness(fact), [fact.key])
  }
  return keys
}

/** The next key that says the same; the last one again where there is no other. */
export function next(keys: ReadonlyMap<string, string[]>, said: Content): string | undefined {
  const same = keys.get(sameness(said))
  return same && same.length > 1 ? same.shift() : same?.[0]
}

/**
 * Under which other index of its transaction each that is gone is found: old key to new. Each takes a place of its own
 * as long as there are any; of two that said the same, both are where the one is that is left.
 */
export function movesOf(
  gone: readonly Content[],
  fresh: readonly Content[],
  facts: readonly Content[],
): ReadonlyMap<string, string> {
  const free = keysBySameness(fresh)
  const all = keysBySameness(facts)
  return new Map(
    gone.flatMap((one) => {
      const found = free.get(sameness(one))?.shift() ?? all.get(sameness(one))?.[0]
      return found === undefined ? [] : [[one.key, found] as const]
    }),
  )
}
