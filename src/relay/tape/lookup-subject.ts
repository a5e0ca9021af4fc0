import type { Hex } from '../../lib/hex.ts'
import { blockOf } from '../../protocol/fields.ts'
import type { Update } from '../../protocol/updates.ts'

// The tape finds an update by its subject: one integer for its on-chain key, or for the block and token of a seal. An index of
// whole keys would cost more than writing the update. Several keys may share a subject, so a reader compares keys.

/** Subjects per block: the first half for keys by log index, the second half for seals by address. */
const SUBJECTS_PER_BLOCK = 2 ** 21
const HALF = SUBJECTS_PER_BLOCK / 2
/** Block numbers wrap at this limit, so that every subject is a safe integer. */
const BLOCKS_BOUND = 2 ** 32
/** A seal's subject uses so many hex digits of the token's address: 16 ** 5 is `HALF`, so the number fits into its half. */
const ADDRESS_DIGITS = 5

const firstSubjectOf = (block: number): number => (block % BLOCKS_BOUND) * SUBJECTS_PER_BLOCK

/** Null for a text that is no key. */
export function subjectOfKey(key: string): number | null {
  const subject = firstSubjectOf(blockOf(key)) + (Number(key.slice(key.lastIndexOf('-') + 1)) % HALF)
  return Number.isSafeInteger(subject) ? subject : null
}

export const subjectOfSeal = (address: Hex, block: number): number =>
  firstSubjectOf(block) + HALF + Number.parseInt(address.slice(-ADDRESS_DIGITS), 16)

export const sealSubjectsOf = (block: number): readonly [number, number] => {
  const first = firstSubjectOf(block) + HALF
  return [first, first + HALF - 1]
}

export function subjectOf(update: Update): number | null {
  if (update.type === 'seal') return subjectOfSeal(update.address, update.block.number)
  return 'key' in update && update.key ? subjectOfKey(update.key) : null
}
