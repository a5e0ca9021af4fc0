import { resumeAfter } from '../../protocol/position.ts'
import type { SearchableTape } from '../../tape/tape.ts'
import { guardEviction } from './eviction-guard.ts'
import { type ReadContext, readChunk } from './history-page.ts'
import { type HistoryQuery, justBefore } from './query.ts'

/** What is read in one go, and so about all that is held for somebody who does not read. */
const CHUNK_BOUNDS = { messages: 100, chars: 131_072 }
/** What eviction would take next is read first, up to so much, where something spared by it has to be given before. */
const OLDEST_CHUNK_BOUNDS = { messages: 1_000, chars: 1_048_576 }

type ExportContext = ReadContext & { readonly tape: SearchableTape }

/**
 * Reads all of what was asked for, part after part, each in a turn of its own and when the one before was taken. Fails
 * where eviction is faster: nothing is ever skipped.
 */
export async function* readAll(context: ExportContext, query: HistoryQuery): AsyncGenerator<readonly string[]> {
  let remaining = query.limit ?? Number.POSITIVE_INFINITY
  for await (const texts of readKept(context, query)) {
    yield texts.slice(0, remaining)
    remaining -= texts.length
    if (remaining <= 0) return
  }
}

async function* readKept(
  { tape, workQueue, isGone }: ExportContext,
  query: HistoryQuery,
): AsyncGenerator<readonly string[]> {
  await workQueue.nextSlice()
  const oldest = tape.oldest()
  const context = { tape: await guardEviction(tape, query.selection.options.stage), workQueue, isGone }
  const hasSparedOlder = query.order === 'asc' && resumeAfter(query.after) < oldest && oldest + 1 < query.before.seq
  if (!hasSparedOlder) return yield* readChunks(context, query)
  const oldestChunk = await readChunk(context, { ...query, after: { seq: oldest, n: null } }, OLDEST_CHUNK_BOUNDS)
  yield* readChunks(context, { ...query, before: justBefore(oldest + 1, query.selection.options.stage) })
  yield oldestChunk.texts
  if (oldestChunk.next) yield* readChunks(context, { ...query, after: oldestChunk.next })
}

async function* readChunks(context: ReadContext, query: HistoryQuery): AsyncGenerator<readonly string[]> {
  for (let remaining: HistoryQuery | null = query; remaining !== null && !context.isGone(); ) {
    await context.workQueue.nextSlice()
    const { texts, next } = await readChunk(context, remaining, CHUNK_BOUNDS)
    yield texts
    remaining = next && { ...remaining, [remaining.order === 'asc' ? 'after' : 'before']: next }
  }
}
