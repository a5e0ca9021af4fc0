import { setImmediate as nextTurn } from 'node:timers/promises'
import type { Stage } from '../../protocol/fields.ts'
import type { NoticeOf } from '../../protocol/notices.ts'
import { formatPosition, type Place, parsePosition, resumeAfter } from '../../protocol/position.ts'
import type { Options, Since } from '../../protocol/selection.ts'
import type { UpdateType } from '../../protocol/updates.ts'
import type { Tape, Wanted } from '../../tape/tape.ts'
import { hasValueFilter, type Selection } from '../select/compiled-selection.ts'
import { Frame, isAfter } from '../select/frame.ts'
import { hearing } from '../select/match.ts'

/** What is left out before a stream goes on, and where it does. */
export type Gap = {
  readonly reason: NoticeOf<'gap'>['reason']
  readonly from: string | null
  readonly to: Place
  /** After which place that begins which can be read all the same; null where it cannot. */
  readonly leftOut: Place | null
}

/** Where a stream begins: after which place, and what has to be said about it. */
export type Beginning = {
  readonly after: Place
  readonly resume: NoticeOf<'subscribed'>['resume']
  readonly gaps: readonly Gap[]
}

/** What comes where it stands, in either view and whatever the value filters are. */
const certain: ReadonlySet<UpdateType> = new Set(['seal', 'nav', 'hole', 'finality', 'status'])
/** Before all numbers. */
const START = 0
/** Updates looked at in one go when a replay is measured. */
const MEASURE_PAGE = 100

type Circumstances = {
  readonly tape: Tape
  readonly now: number
  readonly replayBound: number
  /** Whether nobody is left who wants to know. */
  readonly isGone: () => boolean
}

/** Finds where a stream that asks for `since` begins. What cannot be continued is a gap with its reason, never silence. */
export async function beginningOf(
  since: Since,
  selection: Selection,
  circumstances: Circumstances,
): Promise<Beginning> {
  const { tape, now } = circumstances
  const found = await locate(since, selection.options.stage, tape, now)
  if (!(await isTooLong(found.after, selection, circumstances))) return found
  const { seq, n } = found.after
  // Whoever lost something before is told so first: a long gap loses nothing.
  const from = found.gaps.length > 0 ? formatPosition(tape.epoch, seq, n) : textOf(since)
  const long: Gap = { reason: 'long', from, to: at(tape.end()), leftOut: found.after }
  return { after: long.to, resume: 'gap', gaps: [...found.gaps, long] }
}

const textOf = (since: Since): string | null => (since.from === 'position' && since.position ? since.text : null)

const at = (seq: number): Place => ({ seq, n: null })

async function locate(since: Since, stage: Stage, tape: Tape, now: number): Promise<Beginning> {
  const oldest = tape.oldest()
  switch (since.from) {
    case 'now':
      return { after: at(tape.end()), resume: 'none', gaps: [] }
    case 'start':
      return { after: at(oldest), resume: 'none', gaps: [] }
    case 'time':
      return { after: at(Math.max(oldest, await tape.before(since.time))), resume: 'none', gaps: [] }
    case 'duration':
      return { after: at(Math.max(oldest, await tape.before(now - since.ms))), resume: 'none', gaps: [] }
    case 'position':
      return resumed(since.text, stage, tape)
  }
}

function resumed(text: string, stage: Stage, tape: Tape): Beginning {
  const position = parsePosition(text)
  const gap = (reason: NoticeOf<'gap'>['reason'], after: number): Beginning => ({
    after: at(after),
    resume: 'gap',
    gaps: [{ reason, from: position && text, to: at(after), leftOut: null }],
  })
  if (!position || position.epoch !== tape.epoch) return gap('epoch', tape.oldest())
  if (position.seq > tape.end()) return gap('ahead', tape.end())
  const after = resumeAfter(position)
  if (after < tape.oldest()) return gap('expired', tape.oldest())
  const { seq, n } = position
  return { after: stage === 'sealed' ? { seq, n } : at(after), resume: 'full', gaps: [] }
}

async function isTooLong(
  after: Place,
  selection: Selection,
  { tape, replayBound, isGone }: Circumstances,
): Promise<boolean> {
  const { tokens, options } = selection
  const from = resumeAfter(after)
  // The sealed view may give what stands before the place; but nothing twice, and only what is kept.
  const isSealed = options.stage === 'sealed'
  if (from === tape.end() || tape.end() - (isSealed ? START : after.seq) <= replayBound) return false
  const extent = async (wanted: Wanted, seq: number) => {
    await nextTurn()
    return tape.extent(wanted, seq, replayBound)
  }
  if ((await extent({ tokens, types: certainOf(options) }, from)).least > replayBound) return true
  const types = new Set(options.types)
  const wanted = { tokens, types, followersOf: types }
  const { most } = await extent(wanted, isSealed ? START : from)
  if (most <= replayBound) return false
  const hear = hearing(selection)
  const read = tape.reader(wanted)
  let count = 0
  for (let seq: number | null = from; count <= replayBound && !isGone(); ) {
    const { entries, reached } = await read({ after: seq, before: tape.end() + 1, order: 'asc', limit: MEASURE_PAGE })
    count += hear(entries.map((entry) => new Frame(entry, tape))).filter((frame) => isAfter(frame, after)).length
    if (reached === null) return count > replayBound
    seq = reached
    await nextTurn()
  }
  return true
}

/** Which types come for certain, each of them. */
const certainOf = (options: Options): ReadonlySet<UpdateType> =>
  new Set(options.types.filter((type) => isPlain(options) || certain.has(type)))

const isPlain = (options: Options): boolean => options.stage === 'preconfirmed' && !hasValueFilter(options)
