import { setImmediate as nextTurn } from 'node:timers/promises'
import type { NoticeOf } from '../protocol/connection.ts'
import { parsePosition, resumeAfter } from '../protocol/position.ts'
import type { Since } from '../protocol/selection.ts'
import type { Tape } from '../tape/tape.ts'
import { passing, type Selection } from './selection.ts'

/** Where a stream begins: after which number, and what has to be said about it. */
export type Beginning = {
  readonly after: number
  readonly resume: NoticeOf<'subscribed'>['resume']
  readonly gap: { readonly reason: NoticeOf<'gap'>['reason']; readonly from: string | null } | null
}

/** Updates looked at in one go when a replay is measured. */
const MEASURE_PAGE = 1_000

/** Finds where a stream that asks for `since` begins. What cannot be continued is a gap with its reason, never silence. */
export async function beginningOf(
  since: Since,
  selection: Selection,
  { tape, now, replayBound }: { readonly tape: Tape; readonly now: number; readonly replayBound: number },
): Promise<Beginning> {
  const found = await locate(since, tape, now)
  if (!(await isLongerThan(replayBound, found.after, selection, tape))) return found
  const from = since.from === 'position' && since.position ? since.text : null
  return { after: tape.end(), resume: 'gap', gap: { reason: 'long', from } }
}

async function locate(since: Since, tape: Tape, now: number): Promise<Beginning> {
  const oldest = tape.oldest()
  switch (since.from) {
    case 'now':
      return { after: tape.end(), resume: 'none', gap: null }
    case 'start':
      return { after: oldest, resume: 'none', gap: null }
    case 'time':
      return { after: Math.max(oldest, await tape.before(since.time)), resume: 'none', gap: null }
    case 'duration':
      return { after: Math.max(oldest, await tape.before(now - since.ms)), resume: 'none', gap: null }
    case 'position':
      return resumed(since.text, tape)
  }
}

function resumed(text: string, tape: Tape): Beginning {
  const position = parsePosition(text)
  const gap = (reason: NoticeOf<'gap'>['reason'], after: number): Beginning => ({
    after,
    resume: 'gap',
    gap: { reason, from: position && text },
  })
  if (!position || position.epoch !== tape.epoch) return gap('epoch', tape.oldest())
  if (position.seq > tape.end()) return gap('ahead', tape.end())
  const after = resumeAfter(position)
  return after < tape.oldest() ? gap('expired', tape.oldest()) : { after, resume: 'full', gap: null }
}

async function isLongerThan(bound: number, after: number, selection: Selection, tape: Tape): Promise<boolean> {
  if (tape.end() - after <= bound) return false
  const passes = passing(selection)
  let count = 0
  for (let seq = after; count <= bound; ) {
    const page = await tape.since(seq, MEASURE_PAGE)
    const last = page.at(-1)
    if (!last) return false
    count += page.filter((entry) => passes(entry.update)).length
    seq = last.seq
    await nextTurn()
  }
  return true
}
