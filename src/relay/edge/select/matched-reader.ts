import { nextTurn, runCounted, type Steps } from '../../../lib/turns.ts'
import type { Stage } from '../../../protocol/fields.ts'
import { resumeAfter, type TapePosition } from '../../../protocol/position.ts'
import type { Entry, HistoryFilter, Tape } from '../../tape/tape.ts'
import type { Selection } from './compiled-selection.ts'
import { evictedOf, type Frame, framesOf, isAfter, isBefore } from './frame.ts'
import { createMatcher } from './match.ts'

/** Limit of the updates of one page, before the selection. The tape also limits their text. */
export const PAGE_BOUND = 100
/** Work units of a retract or amend. The lookup of its key is slow, because an old publication is rarely in a cache. */
const FOLLOWER_WORK = 8
/** Number of keys that a page looks up before it pauses. */
const LOOKUPS_PER_TURN = 200

export type MatchedContext = {
  readonly tape: Pick<Tape, 'read' | 'find'>
  readonly isGone: () => boolean
  /** Resolves when the read may continue, in a later turn of the event loop. */
  readonly pause?: () => Promise<unknown>
  /** Whether a page ends before the first update that the sealed view lacks because of eviction. */
  readonly reportsEvicted?: boolean
}

/** `after` and `before` are positions in the view of a selection, and both are exclusive. */
export type MatchedRange = { readonly after: TapePosition; readonly before: TapePosition; readonly order: 'asc' | 'desc' }

type Matched = {
  /** The updates that a stream of the selection sends, in the order of the range. */
  readonly frames: readonly Frame[]
  /** Position of the last update that the sealed view lacks: one gap covers all of them, and everything between them. */
  readonly evicted: TapePosition | null
}

/** `next` is the position to continue from; null at the end of the range. `work` counts the updates read, and what was looked up. */
export type MatchedPage = Matched & { readonly next: TapePosition | null; readonly work: number }

/** Finds the updates of a selection, and all that may end or correct them. */
export function wantedBy({ tokens, options }: Selection): HistoryFilter {
  const types = new Set(options.types)
  return { tokens, types, followersOf: types }
}

/** Returns the exclusive end of a range that contains neither an update nor those that the view emits just before it. */
export const justBefore = (seq: number, stage: Stage): TapePosition => ({ seq, n: stage === 'sealed' ? 1 : null })

/** Reads the tape in the view of a selection: for a replay, for its length, for a page of history, and for an export. */
export function openMatchedReader(context: MatchedContext, selection: Selection) {
  const { tape, isGone, pause = nextTurn, reportsEvicted } = context
  const { stage } = selection.options
  const match = createMatcher(selection)
  const wanted = wantedBy(selection)

  /** Selects the updates of a range from entries in its order. In steps, because a seal may list thousands of keys. */
  function* select(entries: readonly Entry[], { after, before, order }: MatchedRange): Steps<Matched> {
    const frames = framesOf(order === 'asc' ? entries : entries.toReversed(), tape)
    const matched = (yield* match(frames)).filter((frame) => isAfter(frame, after) && isBefore(frame, before))
    const lacking = reportsEvicted ? evictedOf(frames, selection, after) : []
    const [first] = lacking
    const sent = first ? matched.filter((frame) => !isAfter(frame, first)) : matched
    return { frames: order === 'asc' ? sent : sent.toReversed(), evicted: lacking.at(-1) ?? null }
  }

  /** Reads a page at one end of a range, in several turns of the event loop if it needs many lookups. */
  async function readPage(range: MatchedRange): Promise<MatchedPage> {
    const { order } = range
    const { after, before } = seqRangeOf(range, stage)
    const { entries, reached } = tape.read(wanted, { after, before, order, limit: PAGE_BOUND })
    const matched = await runCounted(select(entries, range), LOOKUPS_PER_TURN, pause)
    // A scan of the index is work too, even if nothing matches.
    const work = entries.reduce((sum, entry) => sum + workOf(entry), PAGE_BOUND)
    const isAtEnd = reached === null || (order === 'asc' ? reached + 1 === before : reached - 1 === after)
    return { ...matched, work, next: isAtEnd ? null : order === 'asc' ? { seq: reached, n: null } : justBefore(reached, stage) }
  }

  return {
    select,
    readPage,
    /** Reads all pages of a range, each in a turn of its own, until the client is gone. */
    async *readPages(range: MatchedRange): AsyncGenerator<MatchedPage> {
      for (let left: MatchedRange | null = range; left && !isGone(); ) {
        const page = await readPage(left)
        yield page
        left = page.next && { ...range, [range.order === 'asc' ? 'after' : 'before']: page.next }
        await pause()
      }
    },
  }
}

/** Returns the sequence numbers to read, both exclusive. The sealed view may need the seal at `before` for what it emits. */
function seqRangeOf({ after, before }: MatchedRange, stage: Stage): { after: number; before: number } {
  const includesBefore = stage === 'sealed' && before.n !== 1
  return { after: resumeAfter(after), before: includesBefore ? before.seq + 1 : before.seq }
}

function workOf({ update }: Entry): number {
  if (update.type === 'seal') return 1 + update.keys.length
  return update.type === 'retract' || update.type === 'amend' ? FOLLOWER_WORK : 1
}
