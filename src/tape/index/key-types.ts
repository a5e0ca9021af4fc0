import { type Update, type UpdateType, updateTypes } from '../../protocol/updates.ts'
import type { Entry } from '../tape.ts'

/** That a telling was not kept any more: then it may have been anything. */
export const LOST = 1
const LOST_NAME = 'lost'
/** A bit for each type, and the lowest for what is lost. */
const bitByType: ReadonlyMap<string, number> = new Map([
  [LOST_NAME, LOST],
  ...updateTypes.map((type, index) => [type, 2 << index] as const),
])

const bitOf = (type: UpdateType): number => bitByType.get(type) ?? LOST

/** Types as one number; a name that nobody knows may mean anything. */
export function maskOf(names: Iterable<string>): number {
  let mask = 0
  for (const name of names) if (name !== '') mask |= bitByType.get(name) ?? LOST
  return mask
}

/** The names of a number's types. */
export const namesOf = (mask: number): readonly string[] =>
  [...bitByType].flatMap(([name, bit]) => ((mask & bit) !== 0 ? [name] : []))

/** As what keys were told, and where the first of their tellings stands. */
export type KeyTypes = { readonly mask: number; readonly since: number }

/** What follows no key reaches back to nothing. */
const NO_SEQ = Number.MAX_SAFE_INTEGER
const noKeys: KeyTypes = { mask: 0, since: NO_SEQ }

/** Keys of which it is known by heart how they live: so many in each of two generations. */
const KEYS_PER_GENERATION = 8_192

type OpenKeyType = { mask: number; readonly since: number }

/**
 * Knows as what each key was told since nothing retracts it: that is asked when something follows the key, mostly soon
 * after it was told. What is no longer known by heart is looked up. A key is told once in its life.
 */
export class OpenKeyTypes {
  readonly #readKey: (key: string) => readonly Entry[]
  #newGeneration = new Map<string, OpenKeyType | null>()
  #oldGeneration: ReadonlyMap<string, OpenKeyType | null> = new Map()

  constructor(readKey: (key: string) => readonly Entry[]) {
    this.#readKey = readKey
  }

  /** As what the keys were told that a message follows; then the message is part of their lives. */
  add({ seq, update }: Entry): KeyTypes {
    switch (update.type) {
      case 'seal':
        return this.#addSeal(update, seq)
      case 'retract': {
        const keyTypes = keyTypesOf(this.#find(update.key, seq))
        this.#cache(update.key, null)
        return keyTypes
      }
      case 'amend': {
        const openKey = this.#find(update.key, seq)
        const { mask, since } = keyTypesOf(openKey)
        const bit = bitOf(update.update.type)
        if (openKey) openKey.mask |= bit
        return { mask: mask | bit, since }
      }
      default:
        if ('key' in update && update.key) this.#addFact(update.key, { mask: bitOf(update.type), since: seq })
        return noKeys
    }
  }

  /** What was followed did not happen. */
  clear(): void {
    this.#newGeneration = new Map()
    this.#oldGeneration = new Map()
  }

  #addSeal({ keys, types }: Extract<Update, { type: 'seal' }>, seq: number): KeyTypes {
    let [mask, first] = [0, NO_SEQ]
    for (const [index, key] of keys.entries()) {
      // What is folded into another has no telling of its own.
      if (types[index] === 'part') continue
      const keyTypes = keyTypesOf(this.#find(key, seq))
      mask |= keyTypes.mask
      first = Math.min(first, keyTypes.since)
    }
    return { mask: mask, since: first }
  }

  #addFact(key: string, openKey: OpenKeyType): void {
    const known = this.#cached(key)
    if (known) known.mask |= openKey.mask
    else this.#cache(key, openKey)
  }

  #find(key: string, before: number): OpenKeyType | null {
    let openKey = this.#cached(key)
    if (openKey === undefined) {
      openKey = keyTypeBefore(this.#readKey(key), before)
      this.#cache(key, openKey)
    }
    return openKey
  }

  #cached(key: string): OpenKeyType | null | undefined {
    const openKey = this.#newGeneration.get(key)
    return openKey === undefined ? this.#oldGeneration.get(key) : openKey
  }

  #cache(key: string, openKey: OpenKeyType | null): void {
    this.#newGeneration.set(key, openKey)
    if (this.#newGeneration.size < KEYS_PER_GENERATION) return
    this.#oldGeneration = this.#newGeneration
    this.#newGeneration = new Map()
  }
}

const keyTypesOf = (openKey: OpenKeyType | null): KeyTypes => openKey ?? { mask: LOST, since: NO_SEQ }

function keyTypeBefore(entries: readonly Entry[], before: number): OpenKeyType | null {
  let openKey: OpenKeyType | null = null
  for (const { seq, update } of entries) {
    if (seq >= before) break
    if (update.type === 'retract') openKey = null
    else if (update.type === 'amend') {
      if (openKey) openKey.mask |= bitOf(update.update.type)
    } else if (openKey) openKey.mask |= bitOf(update.type)
    else openKey = { mask: bitOf(update.type), since: seq }
  }
  return openKey
}
