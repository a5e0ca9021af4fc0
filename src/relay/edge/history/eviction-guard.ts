import type { Stage } from '../../../protocol/fields.ts'
import type { Entry, FoundEntries, SeqRange, Tape } from '../../tape/tape.ts'
import type { MatchedContext } from '../select/matched-reader.ts'

/** Thrown by a long read if eviction has removed updates that the read has not returned yet. */
export class EvictedError extends Error {}

/** Limit of each of the two sets in which the guard remembers the keys that the sealed view may emit later. */
const READ_KEYS_BOUND = 65_536

/**
 * Returns the tape for one long read. A read throws an EvictedError if eviction has removed updates that were not returned yet. A
 * read from newest to oldest whose lower end is open, or was evicted before, ends at the oldest kept update without an error.
 */
export function guardEviction(tape: Tape, stage: Stage): MatchedContext['tape'] {
  let [newKeys, oldKeys] = [new Set<string>(), new Set<string>()]
  const remember = ({ update }: Entry) => {
    if (stage !== 'sealed' || !('stage' in update) || update.stage !== 'preconfirmed' || !update.key) return
    newKeys.add(update.key)
    if (newKeys.size >= READ_KEYS_BOUND) [newKeys, oldKeys] = [new Set(), newKeys]
  }
  const wasRead = (key: string) => newKeys.has(key) || oldKeys.has(key)
  const oldest = tape.oldest()
  const evictedAtStart = readEvicted(tape)
  const isOpenEnded = ({ order, after }: SeqRange) => order === 'desc' && (after === 0 || after < oldest)
  const isLoss = (range: SeqRange, evictedNow: readonly number[]) =>
    !isOpenEnded(range) &&
    evictedNow.some((seq, index) => Math.max(evictedAtStart[index] ?? 0, range.after) < Math.min(seq, range.before - 1))
  return {
    find: (subject) => {
      const found = tape.find(subject)
      if (!('key' in subject)) return found
      // The sealed view emits a publication at its seal, so the tape must keep the publication until the seal is read.
      const isPublished = found.some(({ update: { type } }) => type !== 'amend' && type !== 'retract')
      if (wasRead(subject.key) && !isPublished) throw new EvictedError('eviction removed unsent updates')
      return found
    },
    read: (wanted, range) => {
      const found = tape.read(wanted, range)
      if (isLoss(range, readEvicted(tape))) throw new EvictedError('eviction removed unread updates')
      found.entries.forEach(remember)
      return isOpenEnded(range) && tape.oldest() > oldest ? dropEvicted(tape.oldest(), found) : found
    },
  }
}

/** Returns the highest evicted sequence number, and the one up to which no update is left. Some between them may be left. */
const readEvicted = (tape: Tape): readonly number[] => [tape.oldest(), tape.seqBefore(0)]

const dropEvicted = (oldest: number, { entries, reached }: FoundEntries): FoundEntries => ({
  entries: entries.filter(({ seq }) => seq > oldest),
  reached: reached !== null && reached > oldest ? reached : null,
})
