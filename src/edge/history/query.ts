import type { Stage } from '../../protocol/fields.ts'
import { type EventsQuery, readEventsQuery } from '../../protocol/history.ts'
import { formatPosition, type Place, type Position, resumeAfter } from '../../protocol/position.ts'
import { Refusal } from '../../protocol/refusal.ts'
import { defaultOptions, replaceOptions, type Since } from '../../protocol/selection.ts'
import type { Tape } from '../../tape/tape.ts'
import type { House } from '../live/session.ts'
import type { Selection } from '../select/compiled-selection.ts'
import { choose, unknownSymbol } from '../select/symbols.ts'

/** What was asked for, its symbols and positions already found. */
export type Asked = {
  readonly selection: Selection
  /** Places of the selection's view, both exclusive. */
  readonly after: Place
  readonly before: Place
  /** Null where nobody said how many. */
  readonly limit: number | null
  readonly order: 'asc' | 'desc'
}

const START: Place = { seq: 0, n: null }

/** Reads the query string of a request for history; refuses what cannot be answered. */
export async function askedOf(
  parameters: URLSearchParams,
  { tape, view, now }: Pick<House, 'tape' | 'view' | 'now'>,
): Promise<Asked> {
  const query = readEventsQuery(parameters)
  const choice = choose(view, namedIn(query))
  if (choice.tokens?.size === 0) throw unknownSymbol(choice.rejected)
  const options = replaceOptions(defaultOptions, query)
  const moment = { tape, now: now(), stage: options.stage, end: justBefore(tape.end() + 1, options.stage) }
  return {
    selection: { tokens: choice.tokens, options },
    after: await beginningOf(query, moment),
    before: earlier(await endingOf(query, moment), moment.end),
    limit: query.limit ?? null,
    order: query.order,
  }
}

function namedIn({ symbols = ['*'] }: EventsQuery): readonly string[] {
  if (symbols.length > 0) return symbols
  const message = 'symbols: name at least one symbol, or * for all.'
  throw new Refusal(400, 'bad_parameter', message, { parameter: 'symbols' })
}

/** When and in which view somebody asks; `end` is where the tape ended then. */
type Moment = { readonly tape: Tape; readonly now: number; readonly stage: Stage; readonly end: Place }

/** After which place. Further back than what is kept as a whole there may be something that eviction spared. */
async function beginningOf({ after, since }: EventsQuery, moment: Moment): Promise<Place> {
  if (after) return placeOf('after', after, moment)
  if (!since || since.from === 'start') return START
  if (since.from === 'position') return since.position ? placeOf('since', since.position, moment) : START
  return { seq: await writtenBefore(since, moment), n: null }
}

/** Before which place. */
async function endingOf({ before, until }: EventsQuery, moment: Moment): Promise<Place> {
  if (before) return placeOf('before', before, moment)
  if (!until) return moment.end
  if (until.from === 'start') return START
  if (until.from === 'position') return until.position ? placeOf('until', until.position, moment) : moment.end
  return justBefore((await writtenBefore(until, moment)) + 1, moment.stage)
}

/** The last number written before a time. */
const writtenBefore = (
  when: Extract<Since, { from: 'now' | 'time' | 'duration' }>,
  { tape, now, end }: Moment,
): number | Promise<number> =>
  when.from === 'now' ? end.seq - 1 : tape.before(when.from === 'time' ? when.time : now - when.ms)

/** The place before a number and before all that the view gives in its stead; exclusive. */
export const justBefore = (seq: number, stage: Stage): Place => ({ seq, n: stage === 'sealed' ? 1 : null })

/** Nothing stands beyond the end, so a place there is the end: what is appended meanwhile belongs to the next page. */
const earlier = (place: Place, end: Place): Place => (place.seq < end.seq ? place : end)

/** A position's place in a view: outside the sealed view `<p>.<n>` means just before `<p>`. */
function placeOf(
  parameter: 'after' | 'since' | 'before' | 'until',
  { epoch, seq, n }: Position,
  { tape, stage }: Moment,
): Place {
  if (epoch !== tape.epoch) {
    const message = `${parameter}: a position of another tape, which is gone; this one is called ${tape.epoch}.`
    throw new Refusal(410, 'epoch', message, { parameter, oldest: formatPosition(tape.epoch, tape.oldest()) })
  }
  if (stage === 'sealed') return { seq, n }
  return { seq: parameter === 'after' || parameter === 'since' ? resumeAfter({ seq, n }) : seq, n: null }
}
