import { nextTurn } from '../../../lib/turns.ts'
import type { Stage } from '../../../protocol/fields.ts'
import type { NoticeOf } from '../../../protocol/notices.ts'
import type { OnGap, SelectionOptions } from '../../../protocol/parameters/selection.ts'
import type { StartPoint } from '../../../protocol/parameters/start-point.ts'
import { hasValueFilter } from '../../../protocol/parameters/value-filters.ts'
import { formatPosition, parsePosition, resumeAfter, type TapePosition } from '../../../protocol/position.ts'
import { typesOfKind, type UpdateType } from '../../../protocol/updates.ts'
import { lostAfter } from '../../tape/runs.ts'
import type { HistoryFilter, Tape } from '../../tape/tape.ts'
import type { Selection } from '../select/compiled-selection.ts'
import { justBefore, openMatchedReader, wantedBy } from '../select/matched-reader.ts'
import type { EdgeContext } from './edge-context.ts'

export type ResumeGap = {
  readonly reason: NoticeOf<'gap'>['reason']
  readonly from: string | null
  readonly to: TapePosition
  /** The position after which the skipped part can be read as history; null if it cannot. */
  readonly skippedAfter: TapePosition | null
}

export type ResumePoint = {
  readonly after: TapePosition
  readonly resume: NoticeOf<'subscribed'>['resume']
  readonly gaps: readonly ResumeGap[]
}

/** Both views emit every update of these types at its own position, and no value filter omits them. */
const unconditionalTypes: ReadonlySet<UpdateType> = new Set([...typesOfKind('state', 'reading'), 'seal'])

type ResumeContext = {
  readonly tape: Tape
  readonly now: number
  /** How much the wall clock is ahead of `now`, because somebody has set it. */
  readonly clockStepsMs: number
  readonly onGap: OnGap
  readonly maxReplay: number
  readonly isGone: () => boolean
}

/** Returns a number that another process may have given a client, and that this one does not have yet; null if it has all. */
export function numberAhead(since: StartPoint, { tape, shared }: Pick<EdgeContext, 'tape' | 'shared'>): number | null {
  const position = since.from === 'position' ? since.position : null
  const isAhead = position?.epoch === tape.epoch && position.seq > tape.end() && lostAfter(tape.runs, position.seq) === null
  return isAhead && shared ? position.seq : null
}

/** Waits for a number that another process gave. False if this process may still receive it. */
export const reach = ({ shared }: Pick<EdgeContext, 'shared'>, seq: number): Promise<boolean> =>
  shared?.reach(seq).catch(() => false) ?? Promise.resolve(true)

/** Finds the position at which a stream with this `since` starts. A part that cannot be sent becomes a gap with its reason. */
export async function findResumePoint(since: StartPoint, selection: Selection, context: ResumeContext): Promise<ResumePoint> {
  const { tape } = context
  const position = since.from === 'position' ? since.position : null
  const found = await locate(since, selection.options.stage, context)
  if (!(await isTooLong(found.after, selection, context))) return found
  const { seq, n } = found.after
  // A gap that was found before is reported first, and separately: only the skipped part of the long gap can be read as history.
  const from =
    found.gaps.length > 0 ? formatPosition(tape.epoch, seq, n) : since.from === 'position' && position ? since.text : null
  const longGap: ResumeGap = { reason: 'long', from, to: positionAt(tape.end()), skippedAfter: found.after }
  return { after: longGap.to, resume: 'gap', gaps: [...found.gaps, longGap] }
}

const positionAt = (seq: number): TapePosition => ({ seq, n: null })

async function locate(since: StartPoint, stage: Stage, { tape, onGap, ...times }: ResumeContext): Promise<ResumePoint> {
  const oldest = tape.oldest()
  switch (since.from) {
    case 'now':
      return { after: positionAt(tape.end()), resume: 'none', gaps: [] }
    case 'start':
      return { after: positionAt(oldest), resume: 'none', gaps: [] }
    case 'time':
    case 'duration': {
      const seq = given(tape.seqBefore(tapeTimeOf(since, times)), tape)
      return { after: positionAt(Math.max(oldest, seq)), resume: 'none', gaps: [] }
    }
    case 'position':
      return resumeFrom(since.text, stage, tape, onGap)
  }
}

/** Returns the sequence number, or the last one before it that is not lost: a resume from a lost number would be a gap. */
const given = (seq: number, { runs }: Pick<Tape, 'runs'>): number => lostAfter(runs, seq) ?? seq

/** Converts a start to the tape's time, which has no steps of the wall clock. */
export const tapeTimeOf = (
  since: Extract<StartPoint, { from: 'time' | 'duration' }>,
  { now, clockStepsMs }: Pick<ResumeContext, 'now' | 'clockStepsMs'>,
): number => (since.from === 'time' ? since.time - clockStepsMs : now - since.ms)

function resumeFrom(text: string, stage: Stage, tape: Tape, onGap: OnGap): ResumePoint {
  const position = parsePosition(text)
  const gapAfter = (reason: NoticeOf<'gap'>['reason'], after: number): ResumePoint => {
    const isSkipped = onGap === 'skip' && reason !== 'ahead'
    const to = positionAt(isSkipped ? tape.end() : after)
    const gap = { reason, from: position && text, to, skippedAfter: isSkipped ? positionAt(after) : null }
    return { after: to, resume: 'gap', gaps: [gap] }
  }
  if (!position || position.epoch !== tape.epoch) return gapAfter('epoch', tape.oldest())
  const endBefore = lostAfter(tape.runs, position.seq)
  if (endBefore !== null) {
    const kept = Math.max(endBefore, tape.oldest())
    return onGap === 'skip' ? gapAfter('expired', kept) : thenEvicted(gapAfter('expired', endBefore), kept, tape)
  }
  if (position.seq > tape.end()) return gapAfter('ahead', tape.end())
  const after = position.n === null ? position.seq : given(resumeAfter(position), tape)
  if (after < tape.oldest()) return gapAfter('expired', tape.oldest())
  const { seq, n } = position
  return { after: stage === 'sealed' ? { seq, n } : positionAt(after), resume: 'full', gaps: [] }
}

/** Adds a second gap if eviction has removed updates after those that the first gap reports as lost. */
function thenEvicted(loss: ResumePoint, kept: number, { epoch }: Tape): ResumePoint {
  const { seq, n } = loss.after
  if (seq === kept) return loss
  const evicted: ResumeGap = { reason: 'expired', from: formatPosition(epoch, seq, n), to: positionAt(kept), skippedAfter: null }
  return { after: evicted.to, resume: 'gap', gaps: [...loss.gaps, evicted] }
}

async function isTooLong(after: TapePosition, selection: Selection, { tape, maxReplay, isGone }: ResumeContext): Promise<boolean> {
  const { tokens, options } = selection
  const from = resumeAfter(after)
  // The sealed view may also emit updates that were published before the position, if the tape keeps them; each only once.
  const isSealed = options.stage === 'sealed'
  if (from === tape.end() || tape.end() - (isSealed ? 0 : after.seq) <= maxReplay) return false
  const extent = async (wanted: HistoryFilter, seq: number) => {
    await nextTurn()
    return tape.count(wanted, seq, maxReplay)
  }
  if ((await extent({ tokens, types: unconditionalTypesOf(options) }, from)).least > maxReplay) return true
  const { most } = await extent(wantedBy(selection), isSealed ? 0 : from)
  if (most <= maxReplay) return false
  const range = { after, before: justBefore(tape.end() + 1, options.stage), order: 'asc' } as const
  let count = 0
  for await (const { frames } of openMatchedReader({ tape, isGone }, selection).readPages(range)) {
    count += frames.length
    if (count > maxReplay) break
  }
  return count > maxReplay
}

const unconditionalTypesOf = (options: SelectionOptions): ReadonlySet<UpdateType> => {
  const isUnfiltered = options.stage === 'preconfirmed' && !hasValueFilter(options)
  return new Set(options.types.filter((type) => isUnfiltered || unconditionalTypes.has(type)))
}
