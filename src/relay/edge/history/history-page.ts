import { LIMIT_DEFAULT } from '../../../protocol/history.ts'
import { formatPosition, type TapePosition } from '../../../protocol/position.ts'
import type { Tape } from '../../tape/tape.ts'
import type { Frame } from '../select/frame.ts'
import { type MatchedContext, type MatchedPage, openMatchedReader } from '../select/matched-reader.ts'
import { EXPOSED_HEADERS } from '../transport/shared-headers.ts'
import type { HistoryQuery } from './history-query.ts'

const [KEPT_SINCE, KEPT_SINCE_TIME] = ['x-kept-since', 'x-kept-since-time']
/** Limit of the text of a page. The last update may exceed it, because a `log` may be long. */
const TEXT_BOUND_CHARS = 4_194_304
/** Limit of the work units of a page. */
const WORK_BOUND = 6_000

/** Returns headers with the position after which the tape is complete, and the time of the first message after it. */
export function keptSinceHeaders(tape: Pick<Tape, 'epoch' | 'oldest' | 'oldestTime'>): Record<string, string> {
  const time = tape.oldestTime
  return {
    [KEPT_SINCE]: formatPosition(tape.epoch, tape.oldest()),
    ...(time !== null && { [KEPT_SINCE_TIME]: time }),
    'access-control-expose-headers': [...EXPOSED_HEADERS, KEPT_SINCE, KEPT_SINCE_TIME].join(', '),
  }
}

/** Reads a page at one end of the range. It contains exactly the updates that a stream of the selection would send. */
export async function readPage(context: MatchedContext, epoch: string, query: HistoryQuery) {
  const bounds = { messages: query.limit ?? LIMIT_DEFAULT, chars: TEXT_BOUND_CHARS }
  const { frames, next } = await collect(openMatchedReader(context, query.selection).readPages(query), bounds)
  return { texts: frames.map(({ entry }) => entry.text), next: next && formatPosition(epoch, next.seq, next.n) }
}

/** Joins pages up to some limits. `next` is the position to continue from; null at the end. */
export async function collect(
  pages: AsyncIterable<MatchedPage>,
  bounds: { readonly messages: number; readonly chars: number },
): Promise<{ readonly frames: readonly Frame[]; readonly next: TapePosition | null }> {
  const frames: Frame[] = []
  let [chars, work] = [0, 0]
  for await (const page of pages) {
    for (const [index, frame] of page.frames.entries()) {
      frames.push(frame)
      chars += frame.entry.text.length
      const isFull = frames.length >= bounds.messages || chars > bounds.chars
      if (isFull) return { frames, next: index + 1 < page.frames.length ? frame : page.next }
    }
    work += page.work
    if (work >= WORK_BOUND) return { frames, next: page.next }
  }
  return { frames, next: null }
}
