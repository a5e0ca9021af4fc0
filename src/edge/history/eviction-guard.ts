import type { Stage } from '../../protocol/fields.ts'
import type { Entry, FoundEntries, SearchableTape, SeqRange, Tape, TapeHistory } from '../../tape/tape.ts'
import type { ReadContext } from './history-page.ts'

/** Eviction took what had not been read yet. */
export class EvictedError extends Error {}

/** Before every time. */
const BEFORE_ALL_TIME_MS = 0
/** Tellings that a reading has passed and may have to give yet: so many in each of two generations. */
const READ_KEYS_BOUND = 65_536

/**
 * A tape for one long reading, which fails where something is gone that was kept when the reading began and that it had
 * still before it. What was gone already is nobody's loss, and so is what goes at the start of the tape while somebody
 * reads towards it who named no place, or none that was kept: that reading ends where the tape begins by then.
 */
export async function guardEviction(tape: SearchableTape, stage: Stage): Promise<ReadContext['tape']> {
  let [newKeys, oldKeys] = [new Set<string>(), new Set<string>()]
  const remember = ({ update }: Entry) => {
    if (stage !== 'sealed' || !('stage' in update) || update.stage !== 'preconfirmed' || !update.key) return
    newKeys.add(update.key)
    if (newKeys.size >= READ_KEYS_BOUND) [newKeys, oldKeys] = [new Set(), newKeys]
  }
  const wasRead = (key: string) => newKeys.has(key) || oldKeys.has(key)
  const oldest = tape.oldest()
  const evictedAtStart = await readEvicted(tape)
  const isOpenEnded = ({ order, after }: SeqRange) => order === 'desc' && (after === 0 || after < oldest)
  const isLoss = (range: SeqRange, evictedNow: readonly number[]) =>
    !isOpenEnded(range) &&
    evictedNow.some((seq, index) => Math.max(evictedAtStart[index] ?? 0, range.after) < Math.min(seq, range.before - 1))
  return {
    epoch: tape.epoch,
    readKey: (key) => {
      const found = tape.readKey(key)
      // The sealed view gives a telling later than it stands, where its seal is: by then it must still be there.
      if (wasRead(key) && !found.some(isPublication)) throw new EvictedError('eviction took what was still to be given')
      return found
    },
    sealsOfToken: (address, block) => tape.sealsOfToken(address, block),
    openReader: (wanted) => {
      const read = tape.openReader(wanted)
      return async (range) => {
        const found = await read(range)
        const evicted = await readEvicted(tape)
        if (isLoss(range, evicted)) throw new EvictedError('eviction took what was still to be read')
        found.entries.forEach(remember)
        return isOpenEnded(range) && tape.oldest() > oldest ? dropEvicted(tape.oldest(), found) : found
      }
    },
  }
}

/** The last number that was evicted at all, and the one up to which nothing is left: the first may have spared some. */
const readEvicted = async (tape: Pick<Tape, 'oldest'> & Pick<TapeHistory, 'seqBefore'>): Promise<readonly number[]> => [
  tape.oldest(),
  await tape.seqBefore(BEFORE_ALL_TIME_MS),
]

/** What was found, without what was spared where others are gone by now. */
const dropEvicted = (oldest: number, { entries, reached }: FoundEntries): FoundEntries => ({
  entries: entries.filter(({ seq }) => seq > oldest),
  reached: reached !== null && reached > oldest ? reached : null,
})

const isPublication = ({ update: { type } }: Entry): boolean => type !== 'amend' && type !== 'retract'
