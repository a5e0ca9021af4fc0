import { chunk } from '../../lib/turns.ts'
import type { Batch, FoldedEvent, IngestEvent } from './fold-batch.ts'

/** Limit of logs that one turn of the event loop decodes and folds. A log that explains a log of an earlier turn amends it. */
const FOLDED_PER_TURN = 2_500
/** Limit of logs that one turn of the event loop publishes and writes. For each log, that takes ten times as long as folding it. */
const PUBLISHED_PER_TURN = 500

/** Splits received logs between transactions. A transaction is split only if it alone exceeds the limit. */
export const splitReceived = (batch: Batch<IngestEvent>): readonly Batch<IngestEvent>[] =>
  split(batch, FOLDED_PER_TURN, (event) =>
    event.type === 'logs' ? chunkTransactions(event.logs).map((logs) => ({ ...event, logs })) : [event],
  )

/** Splits folded logs anywhere. A sealed block stays whole, because settling it takes several turns by itself. */
export const splitFolded = (batch: Batch<FoldedEvent>): readonly Batch<FoldedEvent>[] =>
  split(batch, PUBLISHED_PER_TURN, (event) =>
    event.type === 'pendingLogs'
      ? chunk(event.pendingLogs, PUBLISHED_PER_TURN).map((pendingLogs, index) => ({
          ...event,
          pendingLogs,
          repeated: index === 0 ? event.repeated : 0,
        }))
      : [event],
  )

/** Splits a batch into batches of at most `bound` logs, in order. An event that `partsOf` does not split stays whole. */
function split<Event extends IngestEvent | FoldedEvent>(
  batch: Batch<Event>,
  bound: number,
  partsOf: (event: Event) => readonly Event[],
): readonly Batch<Event>[] {
  if (batch.events.reduce((sum, event) => sum + logCount(event), 0) <= bound) return [batch]
  const parts: Event[][] = []
  let room = 0
  for (const part of batch.events.flatMap((event) => (logCount(event) > bound ? partsOf(event) : [event]))) {
    const count = logCount(part)
    if (count > room || parts.length === 0) {
      parts.push([])
      room = bound
    }
    parts.at(-1)?.push(part)
    room -= count
  }
  return parts.map((events) => ({ ...batch, events }))
}

function logCount(event: IngestEvent | FoldedEvent): number {
  if (event.type === 'logs') return event.logs.length
  if (event.type === 'pendingLogs') return event.pendingLogs.length
  let count = 0
  if (event.type === 'sealed')
    for (const block of event.blocks) count += 'logs' in block ? block.logs.length : block.decodedLogs.length
  return count
}

function chunkTransactions<Log extends { readonly transactionHash: string }>(logs: readonly Log[]): readonly (readonly Log[])[] {
  const chunks: Log[][] = []
  for (const log of logs) {
    const last = chunks.at(-1)
    if (last?.[0]?.transactionHash === log.transactionHash && last.length < FOLDED_PER_TURN) last.push(log)
    else chunks.push([log])
  }
  return chunks
}
