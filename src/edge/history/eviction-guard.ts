import type { Stage } from '../../protocol/fields.ts'
import type { Entry, Found, Stretch, Tape } from '../../tape/tape.ts'
import type { Reading } from './history-page.ts'

/** Eviction took what had not been read yet. */
export class Overtaken extends Error {}

/** Before every time. */
const EVER = 0
/** Tellings that a reading has passed and may have to give yet: so many in each of two generations. */
const PASSED_BOUND = 65_536

/**
 * A tape for one long reading, which fails where something is gone that was kept when the reading began and that it had
 * still before it. What was gone already is nobody's loss, and so is what goes at the start of the tape while somebody
 * reads towards it who named no place, or none that was kept: that reading ends where the tape begins by then.
 */
export async function watched(tape: Tape, stage: Stage): Promise<Reading['tape']> {
  let [young, old] = [new Set<string>(), new Set<string>()]
  const pass = ({ update }: Entry) => {
    if (stage !== 'sealed' || !('stage' in update) || update.stage !== 'preconfirmed' || !update.key) return
    young.add(update.key)
    if (young.size >= PASSED_BOUND) [young, old] = [new Set(), young]
  }
  const passed = (key: string) => young.has(key) || old.has(key)
  const oldest = tape.oldest()
  const began = await evictedUpTo(tape)
  const isOpenEnded = ({ order, after }: Stretch) => order === 'desc' && (after === 0 || after < oldest)
  const isLoss = (stretch: Stretch, now: readonly number[]) =>
    !isOpenEnded(stretch) &&
    now.some((seq, index) => Math.max(began[index] ?? 0, stretch.after) < Math.min(seq, stretch.before - 1))
  return {
    epoch: tape.epoch,
    about: (key) => {
      const found = tape.about(key)
      // The sealed view gives a telling later than it stands, where its seal is: by then it must still be there.
      if (passed(key) && !found.some(isTelling)) throw new Overtaken('eviction took what was still to be given')
      return found
    },
    seals: (address, block) => tape.seals(address, block),
    reader: (wanted) => {
      const read = tape.reader(wanted)
      return async (stretch) => {
        const found = await read(stretch)
        const evicted = await evictedUpTo(tape)
        if (isLoss(stretch, evicted)) throw new Overtaken('eviction took what was still to be read')
        found.entries.forEach(pass)
        return isOpenEnded(stretch) && tape.oldest() > oldest ? endingAt(tape.oldest(), found) : found
      }
    },
  }
}

/** The last number that was evicted at all, and the one up to which nothing is left: the first may have spared some. */
const evictedUpTo = async (tape: Tape): Promise<readonly number[]> => [tape.oldest(), await tape.before(EVER)]

/** What was found, without what was spared where others are gone by now. */
const endingAt = (oldest: number, { entries, reached }: Found): Found => ({
  entries: entries.filter(({ seq }) => seq > oldest),
  reached: reached !== null && reached > oldest ? reached : null,
})

const isTelling = ({ update: { type } }: Entry): boolean => type !== 'amend' && type !== 'retract'
