import type { SeededRandom } from '../simulation/seeded-random.ts'

/** What clients may select. */
export type SelectionChoices = {
  readonly symbols: readonly string[]
  /** An address that takes part in most movements. */
  readonly account: string
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
const filterChoices = ['min_value=1000', 'min_shares=3', 'account='] as const
/** Distinct selections of the clients that keep theirs. The comparison reads the tape once for each. */
const SELECTION_COUNT = 90
const MAX_SYMBOLS = 4
/** The fastest stream. */
export const EVERYTHING_QUERY = 'symbols=*&types=*'
/** Clients that change their selections choose among this many symbols. */
export const CHANGING_SYMBOL_COUNT = 4

/** The selections of one crowd. */
export function randomSelections(random: SeededRandom, { symbols, account }: SelectionChoices): readonly [string, ...string[]] {
  const randomQuery = (): string => {
    const query = new URLSearchParams()
    const chosen = Array.from({ length: random.int(1, MAX_SYMBOLS) }, () => pickFrom(random, symbols))
    query.set('symbols', random.chance(15) ? '*' : [...new Set(chosen)].toSorted().join(','))
    const types = random.pick(typeChoices)
    if (types !== null) query.set('types', types)
    if (random.chance(20)) query.set('stage', 'sealed')
    if (random.chance(20)) {
      const [name = '', value = ''] = random.pick(filterChoices).split('=')
      query.set(name, value || account)
    }
    return query.toString()
  }
  return [randomQuery(), ...Array.from({ length: SELECTION_COUNT - 1 }, randomQuery)]
}

export const pickFrom = (random: SeededRandom, items: readonly string[]): string => items[random.int(0, items.length - 1)] ?? ''
