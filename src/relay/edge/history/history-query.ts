import { clockStepsMs } from '../../../lib/steady-clock.ts'
import type { Stage } from '../../../protocol/fields.ts'
import { type EventsQuery, readEventsQuery } from '../../../protocol/history.ts'
import { defaultSelectionOptions, patchOptions } from '../../../protocol/parameters/selection.ts'
import type { StartPoint } from '../../../protocol/parameters/start-point.ts'
import { formatPosition, type Position, resumeAfter, type TapePosition } from '../../../protocol/position.ts'
import type { Tape } from '../../tape/tape.ts'
import { otherEpoch } from '../limits/refusals.ts'
import type { EdgeContext } from '../live/edge-context.ts'
import { tapeTimeOf } from '../live/resume-point.ts'
import type { Selection } from '../select/compiled-selection.ts'
import { justBefore } from '../select/matched-reader.ts'
import { resolveKnownSymbols } from '../select/resolve-symbols.ts'

export type HistoryQuery = {
  readonly selection: Selection
  /** `after` and `before` are positions in the view of the selection, and both are exclusive. */
  readonly after: TapePosition
  readonly before: TapePosition
  readonly limit: number | null
  readonly order: 'asc' | 'desc'
  /** Whether the last line of an export says which messages it contains. */
  readonly hasReceipt: boolean
}

const START: TapePosition = { seq: 0, n: null }

export function readHistoryQuery(
  parameters: URLSearchParams,
  { tape, current, now, wallTime }: Pick<EdgeContext, 'tape' | 'current' | 'now' | 'wallTime'>,
): HistoryQuery {
  const query = readEventsQuery(parameters)
  const { tokens } = resolveKnownSymbols(current, query.symbols ?? ['*'])
  const options = patchOptions(defaultSelectionOptions, query)
  const context = {
    tape,
    now: now(),
    clockStepsMs: clockStepsMs(wallTime, now),
    stage: options.stage,
    end: justBefore(tape.end() + 1, options.stage),
  }
  const end = resolveEnd(query, context)
  return {
    selection: { tokens, options },
    after: resolveStart(query, context),
    // Updates that are appended during the read belong to the next page.
    before: end.seq < context.end.seq ? end : context.end,
    limit: query.limit ?? null,
    order: query.order,
    hasReceipt: query.receipt,
  }
}

type QueryContext = {
  readonly tape: Pick<Tape, 'epoch' | 'oldest' | 'seqBefore'>
  readonly now: number
  readonly clockStepsMs: number
  readonly stage: Stage
  readonly end: TapePosition
}

/** Returns the start of the range. It may be before the oldest position of the tape, because eviction spares some updates. */
function resolveStart({ after, since }: EventsQuery, context: QueryContext): TapePosition {
  if (after) return resolvePosition('after', after, context)
  if (!since || since.from === 'start') return START
  if (since.from === 'position') return since.position ? resolvePosition('since', since.position, context) : START
  return { seq: lastSeqBefore(since, context), n: null }
}

function resolveEnd({ before, through, until }: EventsQuery, context: QueryContext): TapePosition {
  if (before) return resolvePosition('before', before, context)
  if (through) return justAfter(resolvePosition('through', through, context), through, context)
  if (!until) return context.end
  if (until.from === 'start') return START
  if (until.from === 'position') return until.position ? resolvePosition('until', until.position, context) : context.end
  return justBefore(lastSeqBefore(until, context) + 1, context.stage)
}

const lastSeqBefore = (
  when: Extract<StartPoint, { from: 'now' | 'time' | 'duration' }>,
  { tape, end, ...times }: QueryContext,
): number => (when.from === 'now' ? end.seq - 1 : tape.seqBefore(tapeTimeOf(when, times)))

/** Returns the exclusive end of a range that includes a position. In the default view, `<p>.<n>` is just before update `<p>`. */
const justAfter = ({ seq, n }: TapePosition, { n: givenN }: TapePosition, { stage }: QueryContext): TapePosition => {
  if (n !== null) return { seq, n: n + 1 }
  return givenN === null ? justBefore(seq + 1, stage) : { seq, n }
}

/** Converts a given position to one of the view. In the default view, `<p>.<n>` is just before the update `<p>`. */
function resolvePosition(
  parameter: 'after' | 'since' | 'before' | 'through' | 'until',
  { epoch, seq, n }: Position,
  { tape, stage }: QueryContext,
): TapePosition {
  if (epoch !== tape.epoch) throw otherEpoch(parameter, tape.epoch, formatPosition(tape.epoch, tape.oldest()))
  if (stage === 'sealed') return { seq, n }
  return { seq: parameter === 'after' || parameter === 'since' ? resumeAfter({ seq, n }) : seq, n: null }
}
