import { type EventsQuery, readEventsQuery } from '../protocol/history.ts'
import type { Stage } from '../protocol/parts.ts'
import { formatPosition, type Place, type Position, resumeAfter } from '../protocol/position.ts'
import { Refusal } from '../protocol/refusal.ts'
import { defaultOptions, replaceOptions } from '../protocol/selection.ts'
import type { Entry, Tape } from '../tape/tape.ts'
import { choose, unknownSymbol } from './choose.ts'
import { Frame, isAfter } from './frame.ts'
import { hearing } from './hearing.ts'
import type { Selection } from './selection.ts'
import type { Turnstile } from './turnstile.ts'
import type { View } from './view.ts'

/** What one request may look at: a message counts as one, and so does every key of a seal, since each is looked up. */
const LOOKS_BOUND = 10_000
/** What is looked at between two turns of the event loop. */
const SLICE_BOUND = 200
/** Messages read from the tape at once. */
const READ_BOUND = 100
/** Text of a page, and one message more: a `log` may be long. */
const TEXT_BOUND_CHARS = 4_194_304
/** What is asked about whatever the types are: it follows a key, so it may come to whoever was told that key. */
const followers = ['seal', 'retract', 'amend'] as const

/** What was asked for, its symbols and positions already found. */
export type Asked = {
  readonly selection: Selection
  /** Places of the selection's view, both exclusive. */
  readonly after: Place
  readonly before: Place
  readonly limit: number
  readonly order: 'asc' | 'desc'
}

/** The very texts that a stream gives, and where to go on. */
export type Page = { readonly texts: readonly string[]; readonly next: string | null }

/** Reads the query string of a request for history; refuses what cannot be answered. */
export function askedOf(parameters: URLSearchParams, { tape, view }: { tape: Tape; view: View }): Asked {
  const query = readEventsQuery(parameters)
  const choice = choose(view, namedIn(query))
  if (choice.tokens?.size === 0) throw unknownSymbol(choice.rejected)
  const options = replaceOptions(defaultOptions, query)
  const { after, before, limit, order } = query
  const end: Place = { seq: tape.end() + 1, n: options.stage === 'sealed' ? 1 : null }
  return {
    selection: { tokens: choice.tokens, options },
    after: after ? placeOf('after', after, options.stage, tape) : { seq: 0, n: null },
    before: before ? earlier(placeOf('before', before, options.stage, tape), end) : end,
    limit,
    order,
  }
}

/** Nothing stands beyond the end, so a place there is the end: what is appended meanwhile belongs to the next page. */
const earlier = (place: Place, end: Place): Place => (place.seq < end.seq ? place : end)

function namedIn({ symbols = ['*'] }: EventsQuery): readonly string[] {
  if (symbols.length > 0) return symbols
  const message = 'symbols: name at least one symbol, or * for all.'
  throw new Refusal(400, 'bad_parameter', message, { parameter: 'symbols' })
}

/** A position's place in a view: outside the sealed view `<p>.<n>` means just before `<p>`. */
function placeOf(parameter: 'after' | 'before', { epoch, seq, n }: Position, stage: Stage, tape: Tape): Place {
  if (epoch !== tape.epoch) {
    const message = `${parameter}: a position of another tape, which is gone; this one is called ${tape.epoch}.`
    throw new Refusal(410, 'epoch', message, { parameter, oldest: formatPosition(tape.epoch, tape.oldest()) })
  }
  if (stage === 'sealed') return { seq, n }
  return { seq: parameter === 'after' ? resumeAfter({ seq, n }) : seq, n: null }
}

/**
 * Reads a page. It is what a stream of the selection gives between the two places, asked of the same tape with the same
 * question, so pages one behind the other are that stream, whatever is appended in between.
 */
export async function readPage(tape: Tape, asked: Asked, turnstile: Turnstile, isGone: () => boolean): Promise<Page> {
  const { selection, limit, order } = asked
  const hear = hearing(selection)
  const read = tape.reader({ tokens: selection.tokens, types: new Set([...selection.options.types, ...followers]) })
  const page = new PageInMaking(limit)
  let { after, before } = rowsOf(asked)
  let looks = 0
  let slice = 0
  while (!isGone()) {
    const { entries, reached } = await read({ after, before, order, limit: READ_BOUND })
    for (const entry of entries) {
      const heard = hear([new Frame(entry, tape)]).filter(
        (frame) => isAfter(frame, asked.after) && isBefore(frame, asked.before),
      )
      for (const { entry: given } of order === 'asc' ? heard : heard.toReversed()) {
        if (page.full) return page.until(page.last)
        page.take(given)
      }
      const beside = order === 'asc' ? entry.seq + 1 === before : entry.seq - 1 === after
      const through = beside || (reached === null && entry === entries.at(-1))
      looks += looksAt(entry)
      if (!through && (page.full || looks >= LOOKS_BOUND)) return page.until(edgeOf(entry.seq, asked, tape))
      slice += looksAt(entry)
      if (slice < SLICE_BOUND) continue
      slice = 0
      await turnstile.turn()
    }
    if (reached === null) return page.until(null)
    // Looking through the shelves is work too, also where they hold nothing of what is wanted.
    looks += READ_BOUND
    if (looks >= LOOKS_BOUND) return page.until(edgeOf(reached, asked, tape))
    if (order === 'asc') after = reached
    else before = reached
    await turnstile.turn()
  }
  return page.until(null)
}

/** Between which numbers everything stands that may be given; in the sealed view a seal has others just before it. */
function rowsOf({ selection, after, before }: Asked): { after: number; before: number } {
  const stands = selection.options.stage === 'sealed' && before.n !== 1
  return { after: resumeAfter(after), before: stands ? before.seq + 1 : before.seq }
}

const isBefore = ({ seq, n }: Frame, place: Place): boolean =>
  seq < place.seq || (seq === place.seq && n !== null && (place.n === null || n < place.n))

/** Where to go on when a number is through, together with all that the view gives before it. */
function edgeOf(seq: number, { selection, order }: Asked, { epoch }: Tape): string {
  return formatPosition(epoch, seq, order === 'desc' && selection.options.stage === 'sealed' ? 1 : null)
}

const looksAt = ({ update }: Entry): number => 1 + (update.type === 'seal' ? update.keys.length : 0)

/** A page as it fills. */
class PageInMaking {
  readonly #limit: number
  readonly #texts: string[] = []
  #chars = 0
  /** The position of what was taken last. */
  last: string | null = null

  constructor(limit: number) {
    this.#limit = limit
  }

  get full(): boolean {
    return this.#texts.length >= this.#limit || this.#chars > TEXT_BOUND_CHARS
  }

  take({ text, update }: Entry): void {
    this.#texts.push(text)
    this.#chars += text.length
    this.last = update.id
  }

  until(next: string | null): Page {
    return { texts: this.#texts, next }
  }
}
