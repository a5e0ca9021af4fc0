import type { IncomingMessage, ServerResponse } from 'node:http'
import { resumeAfter } from '../../../protocol/position.ts'
import { contentTypeOf } from '../../../protocol/transports.ts'
import type { Tape } from '../../tape/tape.ts'
import type { LongWorkQueue } from '../limits/long-work-queue.ts'
import type { EdgeContext } from '../live/edge-context.ts'
import { lineHeaders, openLineExport } from '../live/line-export.ts'
import type { Frame } from '../select/frame.ts'
import { justBefore, type MatchedContext, type MatchedRange, openMatchedReader } from '../select/matched-reader.ts'
import { EvictedError, guardEviction } from './eviction-guard.ts'
import { ExportReceipt } from './export-receipt.ts'
import { collect, keptSinceHeaders } from './history-page.ts'
import type { HistoryQuery } from './history-query.ts'

/** Limits of the lines that are written at once. A client that does not read has no more of them in the buffers of its connection. */
const PART_BOUNDS = { messages: 100, chars: 131_072 }
/** Limits of the part at the oldest position. It is large and read first, because eviction removes its updates next. */
const OLDEST_PART_BOUNDS = { messages: 1_000, chars: 1_048_576 }

export const exportHeaders = (tape: Pick<Tape, 'epoch' | 'oldest' | 'oldestTime'>, isGzipped: boolean): Record<string, string> => ({
  ...lineHeaders(contentTypeOf('ndjson'), isGzipped),
  ...keptSinceHeaders(tape),
})

/** Sends the range as NDJSON, at the reader's pace. */
export function openExport(
  edge: EdgeContext,
  workQueue: LongWorkQueue,
  { incoming, outgoing, query }: { incoming: IncomingMessage; outgoing: ServerResponse; query: HistoryQuery },
): void {
  const { tape, log } = edge
  const receipt = query.hasReceipt ? new ExportReceipt(tape.epoch, query) : null
  const lines = async function* (isGone: () => boolean) {
    for await (const frames of readAll({ tape, pause: workQueue.nextSlice, isGone }, query)) {
      receipt?.add(frames)
      yield frames.map(({ entry }) => entry.text)
    }
    if (receipt) yield [receipt.line()]
  }
  const onFailure = (failure: unknown) => {
    if (!(failure instanceof EvictedError)) log('history_unreadable', { reason: String(failure) })
  }
  openLineExport(edge, { incoming, outgoing, headersOf: (isGzipped) => exportHeaders(tape, isGzipped), lines, onFailure })
}

type ExportContext = MatchedContext & { readonly tape: Tape; readonly pause: () => Promise<unknown> }

/** Reads each part after the reader has taken the previous one. Throws an EvictedError if eviction is faster than the reader. */
export async function* readAll(context: ExportContext, query: HistoryQuery): AsyncGenerator<readonly Frame[]> {
  let remaining = query.limit ?? Number.POSITIVE_INFINITY
  for await (const frames of readKept(context, query)) {
    yield* partsOf(frames.slice(0, remaining))
    remaining -= frames.length
    if (remaining <= 0) return
  }
}

function* partsOf(frames: readonly Frame[]): Generator<readonly Frame[]> {
  let [part, chars] = [[] as Frame[], 0]
  for (const frame of frames) {
    part.push(frame)
    chars += frame.entry.text.length
    if (part.length < PART_BOUNDS.messages && chars <= PART_BOUNDS.chars) continue
    yield part
    ;[part, chars] = [[], 0]
  }
  if (part.length > 0) yield part
}

async function* readKept({ tape, ...context }: ExportContext, query: HistoryQuery): AsyncGenerator<readonly Frame[]> {
  const { selection, after, before, order } = query
  const { stage } = selection.options
  await context.pause()
  const oldest = tape.oldest()
  const reader = openMatchedReader({ ...context, tape: guardEviction(tape, stage) }, selection)
  const read = async function* (range: Partial<MatchedRange>) {
    for await (const { frames } of reader.readPages({ after, before, order, ...range })) yield frames
  }
  const hasSparedOlder = order === 'asc' && resumeAfter(after) < oldest && oldest + 1 < before.seq
  if (!hasSparedOlder) return yield* read({})
  const oldestPart = await collect(reader.readPages({ after: { seq: oldest, n: null }, before, order }), OLDEST_PART_BOUNDS)
  yield* read({ before: justBefore(oldest + 1, stage) })
  yield oldestPart.frames
  if (oldestPart.next) yield* read({ after: oldestPart.next })
}
