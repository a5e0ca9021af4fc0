import type { Stage } from '../../protocol/fields.ts'
import { type EventsQuery, readEventsQuery } from '../../protocol/history.ts'
import { formatPosition, type Position, resumeAfter, type TapePosition } from '../../protocol/position.ts'
import { Refusal } from '../../protocol/refusal.ts'
import { defaultSelectionOptions, patchOptions, type StartPoint } from '../../protocol/selection.ts'
import type { Tape, TapeHistory } from '../../tape/tape.ts'
import type { EdgeContext } from '../live/session.ts'
import type { Selection } from '../select/compiled-selection.ts'
import { resolveSymbols, unknownSymbol } from '../select/symbols.ts'

/** What was asked for, its symbols and positions already found. */
export type HistoryQuery = {
  readonly selection: Selection
  /** Places of the selection's view, both exclusive. */
  readonly after: TapePosition
  readonly before: TapePosition
  /** Null where nobody said how many. */
  readonly limit: number | null
  readonly order: 'asc' | 'desc'
}

const START: TapePosition = { seq: 0, n: null }

/** Reads the query string of a request for history; refuses what cannot be answered. */
export async function readHistoryQuery(
  parameters: URLSearchParams,
  { tape, view, now }: Pick<EdgeContext, 'tape' | 'view' | 'now'>,
): Promise<HistoryQuery> {
  const query = readEventsQuery(parameters)
  const choice = resolveSymbols(view, symbolsOf(query))
  if (choice.tokens?.size === 0) throw unknownSymbol(choice.rejected)
  const options = patchOptions(defaultSelectionOptions, query)
  const context = { tape, now: now(), stage: options.stage, end: justBefore(tape.end() + 1, options.stage) }
  return {
    selection: { tokens: choice.tokens, options },
    after: await resolveStart(query, context),
    before: earlier(await resolveEnd(query, context), context.end),
    limit: query.limit ?? null,
    order: query.order,
  }
}

function symbolsOf({ symbols = ['*'] }: EventsQuery): readonly string[] {
  if (symbols.length > 0) return symbols
  const message = 'symbols: name at least one symbol, or * for all.'
  throw new Refusal(400, 'bad_parameter', message, { parameter: 'symbols' })
}

/** When and in which view somebody asks; `end` is where the tape ended then. */
type QueryContext = {
  readonly tape: Pick<Tape, 'epoch' | 'oldest'> & Pick<TapeHistory, 'seqBefore'>
  readonly now: number
  readonly stage: Stage
  readonly end: TapePosition
}

/** After which place. Further back than what is kept as a whole there may be something that eviction spared. */
async function resolveStart({ after, since }: EventsQuery, context: QueryContext): Promise<TapePosition> {
  if (after) return resolvePosition('after', after, context)
  if (!since || since.from === 'start') return START
  if (since.from === 'position') return since.position ? resolvePosition('since', since.position, context) : START
  return { seq: await lastSeqBefore(since, context), n: null }
}

/** Before which place. */
async function resolveEnd({ before, until }: EventsQuery, context: QueryContext): Promise<TapePosition> {
  if (before) return resolvePosition('before', before, context)
  if (!until) return context.end
  if (until.from === 'start') return START
  if (until.from === 'position') return until.position ? resolvePosition('until', until.position, context) : context.end
  return justBefore((await lastSeqBefore(until, context)) + 1, context.stage)
}

/** The last number written before a time. */
const lastSeqBefore = (
  when: Extract<StartPoint, { from: 'now' | 'time' | 'duration' }>,
  { tape, now, end }: QueryContext,
): number | Promise<number> =>
  when.from === 'now' ? end.seq - 1 : tape.seqBefore(when.from === 'time' ? when.time : now - when.ms)

/** The place before a number and before all that the view gives in its stead; exclusive. */
export const justBefore = (seq: number, stage: Stage): TapePosition => ({ seq, n: stage === 'sealed' ? 1 : null })

/** Nothing stands beyond the end, so a place there is the end: what is appended meanwhile belongs to the next page. */
const earlier = (position: TapePosition, end: TapePosition): TapePosition => (position.seq < end.seq ? position : end)

/** A position's place in a view: outside the sealed view `<p>.<n>` means just before `<p>`. */
function resolvePosition(
  parameter: 'after' | 'since' | 'before' | 'until',
  { epoch, seq, n }: Position,
  { tape, stage }: QueryContext,
): TapePosition {
  if (epoch !== tape.epoch) {
    const message = `${parameter}: a position of another tape, which is gone; this one is called ${tape.epoch}.`
    throw new Refusal(410, 'epoch', message, { parameter, oldest: formatPosition(tape.epoch, tape.oldest()) })
  }
  if (stage === 'sealed') return { seq, n }
  return { seq: parameter === 'after' || parameter === 'since' ? resumeAfter({ seq, n }) : seq, n: null }
}
