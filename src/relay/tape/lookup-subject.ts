import type { Hex } from '../../lib/hex.ts'
import { blockOf } from '../../protocol/fields.ts'
import type { Update } from '../../protocol/updates.ts'
import type { TapeSubject } from './tape.ts'

// The tape finds an update by its subject: one integer that is made from its key, or from block and token of a seal. An index of
// whole keys would cost more than writing the update. Several keys may share a subject, so a reader also compares the keys.

/** Number of subjects for each block. The first half is for keys, by log index; the second half is for seals, by address. */
const SUBJECTS_PER_BLOCK = 2 ** 21
const HALF = SUBJECTS_PER_BLOCK / 2
/** Block numbers are taken modulo this limit, so that a double holds every subject exactly. */
const BLOCKS_BOUND = 2 ** 32
/** Number of hex digits of the token's address in the subject of a seal. They have 16 ** 5 values, which is `HALF`. */
const ADDRESS_DIGITS = 5

const firstSubjectOf = (block: number): number => (block % BLOCKS_BOUND) * SUBJECTS_PER_BLOCK

/** Returns null for a text that is no key. */
function subjectOfKey(key: string): number | null {
  const subject = firstSubjectOf(blockOf(key)) + (Number(key.slice(key.lastIndexOf('-') + 1)) % HALF)
  return Number.isSafeInteger(subject) ? subject : null
}

const subjectOfSeal = (address: Hex, block: number): number =>
  firstSubjectOf(block) + HALF + Number.parseInt(address.slice(-ADDRESS_DIGITS), 16)

export function subjectOf(update: Update): number | null {
  if (update.type === 'seal') return subjectOfSeal(update.address, update.block.number)
  return 'key' in update && update.key ? subjectOfKey(update.key) : null
}

type Lookup = {
  /** First and last subject to read. */
  readonly range: readonly [number | null, number | null]
  /** Whether an update with such a subject is one that was looked for. */
  readonly matches: (update: Update) => boolean
}

export function lookupOf(wanted: TapeSubject): Lookup {
  if ('key' in wanted) {
    const subject = subjectOfKey(wanted.key)
    return { range: [subject, subject], matches: (update) => 'key' in update && update.key === wanted.key }
  }
  const { sealsOf: block, address } = wanted
  const isOfBlock = (update: Update) => update.type === 'seal' && update.block.number === block
  const first = address ? subjectOfSeal(address, block) : firstSubjectOf(block) + HALF
  const range = [first, address ? first : first + HALF - 1] as const
  return { range, matches: (update) => isOfBlock(update) && (!address || update.address === address) }
}
