import { type Update, type UpdateType, updateTypes } from '../../protocol/updates.ts'
import type { Entry } from '../tape.ts'

/** That a telling was not kept any more: then it may have been anything. */
export const LOST = 1
const LOST_NAME = 'lost'
/** A bit for each type, and the lowest for what is lost. */
const bits: ReadonlyMap<string, number> = new Map([
  [LOST_NAME, LOST],
  ...updateTypes.map((type, index) => [type, 2 << index] as const),
])

const bitOf = (type: UpdateType): number => bits.get(type) ?? LOST

/** Types as one number; a name that nobody knows may mean anything. */
export function maskOf(names: Iterable<string>): number {
  let mask = 0
  for (const name of names) if (name !== '') mask |= bits.get(name) ?? LOST
  return mask
}

/** The names of a number's types. */
export const namesOf = (mask: number): readonly string[] =>
  [...bits].flatMap(([name, bit]) => ((mask & bit) !== 0 ? [name] : []))

/** As what keys were told, and where the first of their tellings stands. */
export type Told = { readonly types: number; readonly since: number }

/** What follows no key reaches back to nothing. */
const NEVER = Number.MAX_SAFE_INTEGER
const nothing: Told = { types: 0, since: NEVER }

/** Keys of which it is known by heart how they live: so many in each of two generations. */
const LIVES_BOUND = 8_192

type Life = { types: number; readonly since: number }

/**
 * Knows as what each key was told since nothing retracts it: that is asked when something follows the key, mostly soon
 * after it was told. What is no longer known by heart is looked up. A key is told once in its life.
 */
export class Lives {
  readonly #about: (key: string) => readonly Entry[]
  #young = new Map<string, Life | null>()
  #old: ReadonlyMap<string, Life | null> = new Map()

  constructor(about: (key: string) => readonly Entry[]) {
    this.#about = about
  }

  /** As what the keys were told that a message follows; then the message is part of their lives. */
  follow({ seq, update }: Entry): Told {
    switch (update.type) {
      case 'seal':
        return this.#all(update, seq)
      case 'retract': {
        const told = toldIn(this.#lifeOf(update.key, seq))
        this.#keep(update.key, null)
        return told
      }
      case 'amend': {
        const life = this.#lifeOf(update.key, seq)
        const { types, since } = toldIn(life)
        const bit = bitOf(update.update.type)
        if (life) life.types |= bit
        return { types: types | bit, since }
      }
      default:
        if ('key' in update && update.key) this.#tell(update.key, { types: bitOf(update.type), since: seq })
        return nothing
    }
  }

  /** What was followed did not happen. */
  forget(): void {
    this.#young = new Map()
    this.#old = new Map()
  }

  #all({ keys, types }: Extract<Update, { type: 'seal' }>, seq: number): Told {
    let [all, first] = [0, NEVER]
    for (const [index, key] of keys.entries()) {
      // What is folded into another has no telling of its own.
      if (types[index] === 'part') continue
      const told = toldIn(this.#lifeOf(key, seq))
      all |= told.types
      first = Math.min(first, told.since)
    }
    return { types: all, since: first }
  }

  #tell(key: string, telling: Life): void {
    const life = this.#known(key)
    if (life) life.types |= telling.types
    else this.#keep(key, telling)
  }

  #lifeOf(key: string, before: number): Life | null {
    let life = this.#known(key)
    if (life === undefined) {
      life = livedBefore(this.#about(key), before)
      this.#keep(key, life)
    }
    return life
  }

  #known(key: string): Life | null | undefined {
    const life = this.#young.get(key)
    return life === undefined ? this.#old.get(key) : life
  }

  #keep(key: string, life: Life | null): void {
    this.#young.set(key, life)
    if (this.#young.size < LIVES_BOUND) return
    this.#old = this.#young
    this.#young = new Map()
  }
}

const toldIn = (life: Life | null): Told => life ?? { types: LOST, since: NEVER }

function livedBefore(entries: readonly Entry[], before: number): Life | null {
  let life: Life | null = null
  for (const { seq, update } of entries) {
    if (seq >= before) break
    if (update.type === 'retract') life = null
    else if (update.type === 'amend') {
      if (life) life.types |= bitOf(update.update.type)
    } else if (life) life.types |= bitOf(update.type)
    else life = { types: bitOf(update.type), since: seq }
  }
  return life
}
