import { LIMIT_DEFAULT } from '../../protocol/history.ts'
import { formatPosition, resumeAfter, type TapePosition } from '../../protocol/position.ts'
import type { Entry, Tape, TapeHistory } from '../../tape/tape.ts'
import type { WorkQueue } from '../limits/work-queue.ts'
import { Frame, isAfter } from '../select/frame.ts'
import { createMatcher } from '../select/match.ts'
import { EXPOSED_HEADERS } from '../transport/exposed-headers.ts'
import { type HistoryQuery, justBefore } from './query.ts'

const KEPT_SINCE_HEADER = 'x-kept-since'
/** What one part may look at: a message counts as one, and more where its keys have to be looked up. */
const WORK_BOUND = 6_000
/** What it is to look up a key of which little is known by heart: what takes it back or corrects it comes long after it. */
const FOLLOWER_WORK = 8
/** What is looked at between two turns of the event loop. */
const TICK_WORK_BOUND = 200
/** Messages read from the tape at once. */
const READ_BOUND = 100
/** Text of a page, and one message more: a `log` may be long. */
const TEXT_BOUND_CHARS = 4_194_304

/** Says with every answer after which position nothing is gone, so that who goes on from before it knows that there may be more. */
export const keptSinceHeaders = (tape: Pick<Tape, 'epoch' | 'oldest'>): Record<string, string> => ({
  [KEPT_SINCE_HEADER]: formatPosition(tape.epoch, tape.oldest()),
  'access-control-expose-headers': [...EXPOSED_HEADERS, KEPT_SINCE_HEADER].join(', '),
})

/** What is read, whose turn it is, and whether nobody waits for it any more. */
export type ReadContext = {
  readonly tape: Pick<Tape, 'epoch'> & Pick<TapeHistory, 'openReader' | 'readKey' | 'sealsOfToken'>
  readonly workQueue: WorkQueue
  readonly isGone: () => boolean
}

/** How much a part may hold, and one message more. */
type ChunkBounds = { readonly messages: number; readonly chars: number }

/** The very texts that a stream gives, and where to go on; null where there is no more. */
type HistoryChunk = { readonly texts: readonly string[]; readonly next: TapePosition | null }

/** A part as a client is given it. */
export type HistoryPage = { readonly texts: readonly string[]; readonly next: string | null }

/** Reads a page. */
export async function readPage(context: ReadContext, query: HistoryQuery): Promise<HistoryPage> {
  const bounds = { messages: query.limit ?? LIMIT_DEFAULT, chars: TEXT_BOUND_CHARS }
  const { texts, next } = await readChunk(context, query, bounds)
  return { texts, next: next && formatPosition(context.tape.epoch, next.seq, next.n) }
}

/**
 * Reads from one end of what was asked for. It is what a stream of the selection gives between the two places, asked of
 * the same tape with the same question, so parts one behind the other are that stream, whatever is appended in between.
 */
export async function readChunk(
  { tape, workQueue, isGone }: ReadContext,
  query: HistoryQuery,
  bounds: ChunkBounds,
): Promise<HistoryChunk> {
  const { selection, order } = query
  const match = createMatcher(selection)
  const types = new Set(selection.options.types)
  const read = tape.openReader({ tokens: selection.tokens, types, followersOf: types })
  const chunk = new ChunkBuilder(bounds)
  let { after, before } = seqRangeOf(query)
  let work = 0
  let tickWork = 0
  while (!isGone()) {
    const { entries, reached } = await read({ after, before, order, limit: READ_BOUND })
    for (const entry of entries) {
      const matched = match([new Frame(entry, tape)]).filter(
        (frame) => isAfter(frame, query.after) && isBefore(frame, query.before),
      )
      for (const frame of order === 'asc' ? matched : matched.toReversed()) {
        if (chunk.isFull) return chunk.finish(chunk.lastPosition)
        chunk.add(frame)
      }
      const isAdjacent = order === 'asc' ? entry.seq + 1 === before : entry.seq - 1 === after
      const isFinished = isAdjacent || (reached === null && entry === entries.at(-1))
      work += workOf(entry)
      if (!isFinished && (chunk.isFull || work >= WORK_BOUND)) return chunk.finish(resumePosition(entry.seq, query))
      tickWork += workOf(entry)
      if (tickWork < TICK_WORK_BOUND) continue
      tickWork = 0
      await workQueue.nextSlice()
    }
    if (reached === null) return chunk.finish(null)
    // Looking through the shelves is work too, also where they hold nothing of what is wanted.
    work += READ_BOUND
    if (work >= WORK_BOUND) return chunk.finish(resumePosition(reached, query))
    if (order === 'asc') after = reached
    else before = reached
    await workQueue.nextSlice()
  }
  return chunk.finish(null)
}

/** Between which numbers everything stands that may be given; in the sealed view a seal has others just before it. */
function seqRangeOf({ selection, after, before }: HistoryQuery): { after: number; before: number } {
  const includesBefore = selection.options.stage === 'sealed' && before.n !== 1
  return { after: resumeAfter(after), before: includesBefore ? before.seq + 1 : before.seq }
}

const isBefore = ({ seq, n }: Frame, position: TapePosition): boolean =>
  seq < position.seq || (seq === position.seq && n !== null && (position.n === null || n < position.n))

/** Where to go on when a number is through, together with all that the view gives before it. */
const resumePosition = (seq: number, { selection, order }: HistoryQuery): TapePosition =>
  order === 'desc' ? justBefore(seq, selection.options.stage) : { seq, n: null }

function workOf({ update }: Entry): number {
  if (update.type === 'seal') return 1 + update.keys.length
  return update.type === 'retract' || update.type === 'amend' ? FOLLOWER_WORK : 1
}

/** A part as it fills. */
class ChunkBuilder {
  readonly #bounds: ChunkBounds
  readonly #texts: string[] = []
  #chars = 0
  /** The place of what was taken last. */
  lastPosition: TapePosition | null = null

  constructor(bounds: ChunkBounds) {
    this.#bounds = bounds
  }

  get isFull(): boolean {
    return this.#texts.length >= this.#bounds.messages || this.#chars > this.#bounds.chars
  }

  add({ seq, n, entry: { text } }: Frame): void {
    this.#texts.push(text)
    this.#chars += text.length
    this.lastPosition = { seq, n }
  }

  finish(next: TapePosition | null): HistoryChunk {
    return { texts: this.#texts, next }
  }
}
