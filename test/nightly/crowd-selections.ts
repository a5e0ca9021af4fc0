import type { SeededRandom } from '../simulation/seeded-random.ts'

/** What they may ask for. */
export type SelectionChoices = {
  readonly symbols: readonly string[]
  /** Somebody who is an end of most movements. */
  readonly party: string
}

const typeChoices = [
  null,
  null,
  null,
  '*',
  'transfer',
  'transfer,seal',
  'seal,retract,amend',
  'nav,status,finality,transfer',
] as const
const filterChoices = ['min_value=1000', 'min_shares=3', 'party='] as const
/** Distinct selections of all that do not change theirs: the judge reads the tape once for each. */
const SELECTION_COUNT = 90
const MAX_SYMBOLS = 4
/** What is told fastest. */
export const EVERYTHING_QUERY = 'symbols=*&types=*'
/** Those who change their selections choose among so many symbols. */
export const CHANGING_SYMBOL_COUNT = 4

/** The selections that there are in one crowd. */
export function randomSelections(
  random: SeededRandom,
  { symbols, party }: SelectionChoices,
): readonly [string, ...string[]] {
  const one = (): string => {
    const query = new URLSearchParams()
    const named = Array.from({ length: random.int(1, MAX_SYMBOLS) }, () => pickFrom(random, symbols))
    query.set('symbols', random.chance(15) ? '*' : [...new Set(named)].toSorted().join(','))
    const types = random.pick(typeChoices)
    if (types !== null) query.set('types', types)
    if (random.chance(20)) query.set('stage', 'sealed')
    if (random.chance(20)) {
      const [name = '', value = ''] = random.pick(filterChoices).split('=')
      query.set(name, value || party)
    }
    return query.toString()
  }
  return [one(), ...Array.from({ length: SELECTION_COUNT - 1 }, one)]
}

export const pickFrom = (random: SeededRandom, items: readonly string[]): string =>
  items[random.int(0, items.length - 1)] ?? ''
