import { LIMIT_DEFAULT } from '../../protocol/history.ts'
import { formatPosition, type Place, resumeAfter } from '../../protocol/position.ts'
import type { Entry, Tape } from '../../tape/tape.ts'
import type { Turnstile } from '../limits/work-queue.ts'
import { EXPOSED } from '../live/http-stream.ts'
import { Frame, isAfter } from '../select/frame.ts'
import { hearing } from '../select/match.ts'
import { type Asked, justBefore } from './query.ts'

const KEPT_SINCE = 'x-kept-since'
/** What one part may look at: a message counts as one, and more where its keys have to be looked up. */
const LOOKS_BOUND = 6_000
/** What it is to look up a key of which little is known by heart: what takes it back or corrects it comes long after it. */
const LOOKS_OF_FOLLOWER = 8
/** What is looked at between two turns of the event loop. */
const SLICE_BOUND = 200
/** Messages read from the tape at once. */
const READ_BOUND = 100
/** Text of a page, and one message more: a `log` may be long. */
const TEXT_BOUND_CHARS = 4_194_304

/** Says with every answer after which position nothing is gone, so that who goes on from before it knows that there may be more. */
export const keptHeaders = (tape: Pick<Tape, 'epoch' | 'oldest'>): Record<string, string> => ({
  [KEPT_SINCE]: formatPosition(tape.epoch, tape.oldest()),
  'access-control-expose-headers': [...EXPOSED, KEPT_SINCE].join(', '),
})

/** What is read, whose turn it is, and whether nobody waits for it any more. */
export type Reading = {
  readonly tape: Pick<Tape, 'epoch' | 'reader' | 'about' | 'seals'>
  readonly turnstile: Turnstile
  readonly isGone: () => boolean
}

/** How much a part may hold, and one message more. */
type Bounds = { readonly messages: number; readonly chars: number }

/** The very texts that a stream gives, and where to go on; null where there is no more. */
type Part = { readonly texts: readonly string[]; readonly next: Place | null }

/** A part as a client is given it. */
export type Page = { readonly texts: readonly string[]; readonly next: string | null }

/** Reads a page. */
export async function readPage(reading: Reading, asked: Asked): Promise<Page> {
  const bounds = { messages: asked.limit ?? LIMIT_DEFAULT, chars: TEXT_BOUND_CHARS }
  const { texts, next } = await readPart(reading, asked, bounds)
  return { texts, next: next && formatPosition(reading.tape.epoch, next.seq, next.n) }
}

/**
 * Reads from one end of what was asked for. It is what a stream of the selection gives between the two places, asked of
 * the same tape with the same question, so parts one behind the other are that stream, whatever is appended in between.
 */
export async function readPart({ tape, turnstile, isGone }: Reading, asked: Asked, bounds: Bounds): Promise<Part> {
  const { selection, order } = asked
  const hear = hearing(selection)
  const types = new Set(selection.options.types)
  const read = tape.reader({ tokens: selection.tokens, types, followersOf: types })
  const part = new PartInMaking(bounds)
  let { after, before } = rowsOf(asked)
  let looks = 0
  let slice = 0
  while (!isGone()) {
    const { entries, reached } = await read({ after, before, order, limit: READ_BOUND })
    for (const entry of entries) {
      const heard = hear([new Frame(entry, tape)]).filter(
        (frame) => isAfter(frame, asked.after) && isBefore(frame, asked.before),
      )
      for (const frame of order === 'asc' ? heard : heard.toReversed()) {
        if (part.full) return part.until(part.last)
        part.take(frame)
      }
      const beside = order === 'asc' ? entry.seq + 1 === before : entry.seq - 1 === after
      const through = beside || (reached === null && entry === entries.at(-1))
      looks += looksAt(entry)
      if (!through && (part.full || looks >= LOOKS_BOUND)) return part.until(edgeOf(entry.seq, asked))
      slice += looksAt(entry)
      if (slice < SLICE_BOUND) continue
      slice = 0
      await turnstile.turn()
    }
    if (reached === null) return part.until(null)
    // Looking through the shelves is work too, also where they hold nothing of what is wanted.
    looks += READ_BOUND
    if (looks >= LOOKS_BOUND) return part.until(edgeOf(reached, asked))
    if (order === 'asc') after = reached
    else before = reached
    await turnstile.turn()
  }
  return part.until(null)
}

/** Between which numbers everything stands that may be given; in the sealed view a seal has others just before it. */
function rowsOf({ selection, after, before }: Asked): { after: number; before: number } {
  const stands = selection.options.stage === 'sealed' && before.n !== 1
  return { after: resumeAfter(after), before: stands ? before.seq + 1 : before.seq }
}

const isBefore = ({ seq, n }: Frame, place: Place): boolean =>
  seq < place.seq || (seq === place.seq && n !== null && (place.n === null || n < place.n))

/** Where to go on when a number is through, together with all that the view gives before it. */
const edgeOf = (seq: number, { selection, order }: Asked): Place =>
  order === 'desc' ? justBefore(seq, selection.options.stage) : { seq, n: null }

function looksAt({ update }: Entry): number {
  if (update.type === 'seal') return 1 + update.keys.length
  return update.type === 'retract' || update.type === 'amend' ? LOOKS_OF_FOLLOWER : 1
}

/** A part as it fills. */
class PartInMaking {
  readonly #bounds: Bounds
  readonly #texts: string[] = []
  #chars = 0
  /** The place of what was taken last. */
  last: Place | null = null

  constructor(bounds: Bounds) {
    this.#bounds = bounds
  }

  get full(): boolean {
    return this.#texts.length >= this.#bounds.messages || this.#chars > this.#bounds.chars
  }

  take({ seq, n, entry: { text } }: Frame): void {
    this.#texts.push(text)
    this.#chars += text.length
    this.last = { seq, n }
  }

  until(next: Place | null): Part {
    return { texts: this.#texts, next }
  }
}
