import type { Dice } from '../simulation/seeded-random.ts'

/** What they may ask for. */
export type Offer = {
  readonly symbols: readonly string[]
  /** Somebody who is an end of most movements. */
  readonly party: string
}

const typesAsked = [
  null,
  null,
  null,
  '*',
  'transfer',
  'transfer,seal',
  'seal,retract,amend',
  'nav,status,finality,transfer',
] as const
const valuesAsked = ['min_value=1000', 'min_shares=3', 'party='] as const
/** Distinct selections of all that do not change theirs: the judge reads the tape once for each. */
const SELECTIONS = 90
const SYMBOLS_MOST = 4
/** What is told fastest. */
export const EVERYTHING = 'symbols=*&types=*'
/** Those who change their selections choose among so many symbols. */
export const CHANGING_SYMBOLS = 4

/** The selections that there are in one crowd. */
export function selectionsOf(dice: Dice, { symbols, party }: Offer): readonly [string, ...string[]] {
  const one = (): string => {
    const query = new URLSearchParams()
    const named = Array.from({ length: dice.int(1, SYMBOLS_MOST) }, () => pick(dice, symbols))
    query.set('symbols', dice.chance(15) ? '*' : [...new Set(named)].toSorted().join(','))
    const types = dice.pick(typesAsked)
    if (types !== null) query.set('types', types)
    if (dice.chance(20)) query.set('stage', 'sealed')
    if (dice.chance(20)) {
      const [name = '', value = ''] = dice.pick(valuesAsked).split('=')
      query.set(name, value || party)
    }
    return query.toString()
  }
  return [one(), ...Array.from({ length: SELECTIONS - 1 }, one)]
}

export const pick = (dice: Dice, from: readonly string[]): string => from[dice.int(0, from.length - 1)] ?? ''
