import { runInTurns } from '../../../lib/turns.ts'
import { LIMIT_DEFAULT } from '../../../protocol/history.ts'
import { formatPosition, resumeAfter, type TapePosition } from '../../../protocol/position.ts'
import type { Entry, Tape } from '../../tape/tape.ts'
import type { LongWorkQueue } from '../limits/long-work-queue.ts'
import { type Frame, framesOf, isAfter } from '../select/frame.ts'
import { createMatcher } from '../select/match.ts'
import { EXPOSED_HEADERS } from '../transport/shared-headers.ts'
import { type HistoryQuery, justBefore } from './history-query.ts'

const [KEPT_SINCE, KEPT_SINCE_TIME] = ['x-kept-since', 'x-kept-since-time']
/** Limit of the work units of a chunk: one for each update, and more for an update whose keys must be looked up. */
const WORK_BOUND = 6_000
/** Work units of a retract or amend. The lookup of its key is slow, because an old publication is rarely in a cache. */
const FOLLOWER_WORK = 8
const TICK_WORK_BOUND = 200
const READ_BOUND = 100
/** Limit of the text of a page. The last update may exceed it, because a `log` may be long. */
const TEXT_BOUND_CHARS = 4_194_304

/** Returns headers with the position after which the tape is complete, and the time of the first message after it. */
export function keptSinceHeaders(tape: Pick<Tape, 'epoch' | 'oldest' | 'oldestTime'>): Record<string, string> {
  const time = tape.oldestTime
  return {
    [KEPT_SINCE]: formatPosition(tape.epoch, tape.oldest()),
    ...(time !== null && { [KEPT_SINCE_TIME]: time }),
    'access-control-expose-headers': [...EXPOSED_HEADERS, KEPT_SINCE, KEPT_SINCE_TIME].join(', '),
  }
}

export type ReadContext = {
  readonly tape: Pick<Tape, 'epoch' | 'read' | 'find'>
  readonly workQueue: LongWorkQueue
  readonly isGone: () => boolean
}

/** Limits of a chunk. Its last update may exceed `chars`. */
type ChunkBounds = { readonly messages: number; readonly chars: number }

/** The updates that a stream would send, and the position to continue from; null at the end. */
type HistoryChunk = { readonly frames: readonly Frame[]; readonly next: TapePosition | null }

export async function readPage(context: ReadContext, query: HistoryQuery) {
  const bounds = { messages: query.limit ?? LIMIT_DEFAULT, chars: TEXT_BOUND_CHARS }
  const { frames, next } = await readChunk(context, query, bounds)
  return { texts: frames.map(({ entry }) => entry.text), next: next && formatPosition(context.tape.epoch, next.seq, next.n) }
}

/** Reads a chunk at one end of the range. It contains exactly the updates that a stream of the selection would send. */
export async function readChunk(context: ReadContext, query: HistoryQuery, bounds: ChunkBounds): Promise<HistoryChunk> {
  const { tape, workQueue, isGone } = context
  const { selection, order } = query
  const match = createMatcher(selection)
  const types = new Set(selection.options.types)
  const wanted = { tokens: selection.tokens, types, followersOf: types }
  const frames: Frame[] = []
  let chars = 0
  let lastPosition: TapePosition | null = null
  const isFull = () => frames.length >= bounds.messages || chars > bounds.chars
  let { after, before } = seqRangeOf(query)
  let work = 0
  let tickWork = 0
  while (!isGone()) {
    const { entries, reached } = tape.read(wanted, { after, before, order, limit: READ_BOUND })
    for (const frame of framesOf(entries, tape)) {
      const { entry } = frame
      const all = await runInTurns(match([frame]), () => workQueue.nextSlice())
      const matched = all.filter((frame) => isAfter(frame, query.after) && isBefore(frame, query.before))
      for (const found of order === 'asc' ? matched : matched.toReversed()) {
        if (isFull()) return { frames, next: lastPosition }
        frames.push(found)
        chars += found.entry.text.length
        lastPosition = found
      }
      const isAdjacent = order === 'asc' ? entry.seq + 1 === before : entry.seq - 1 === after
      const isFinished = isAdjacent || (reached === null && entry === entries.at(-1))
      work += workOf(entry)
      if (!isFinished && (isFull() || work >= WORK_BOUND)) return { frames, next: resumePosition(entry.seq, query) }
      tickWork += workOf(entry)
      if (tickWork < TICK_WORK_BOUND) continue
      tickWork = 0
      await workQueue.nextSlice()
    }
    if (reached === null) break
    // A scan of the index is work too, even if nothing matches.
    work += READ_BOUND
    if (work >= WORK_BOUND) return { frames, next: resumePosition(reached, query) }
    if (order === 'asc') after = reached
    else before = reached
    await workQueue.nextSlice()
  }
  return { frames, next: null }
}

/** Returns the sequence numbers to read, both exclusive. The sealed view may need the seal at `before` for what it emits. */
function seqRangeOf({ selection, after, before }: HistoryQuery): { after: number; before: number } {
  const includesBefore = selection.options.stage === 'sealed' && before.n !== 1
  return { after: resumeAfter(after), before: includesBefore ? before.seq + 1 : before.seq }
}

const isBefore = ({ seq, n }: Frame, position: TapePosition): boolean =>
  seq < position.seq || (seq === position.seq && n !== null && (position.n === null || n < position.n))

/** Returns the position from which to continue after an update was read with all updates that the view emits before it. */
const resumePosition = (seq: number, { selection, order }: HistoryQuery): TapePosition =>
  order === 'desc' ? justBefore(seq, selection.options.stage) : { seq, n: null }

function workOf({ update }: Entry): number {
  if (update.type === 'seal') return 1 + update.keys.length
  return update.type === 'retract' || update.type === 'amend' ? FOLLOWER_WORK : 1
}
