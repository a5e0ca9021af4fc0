import type { ContractAnswer } from '../chain/contracts/contract-poller.ts'
import type { LogMemory, PendingLog, ReceivedLogs } from '../chain/logs/log-memory.ts'
import type { Log } from '../chain/logs/log-parser.ts'
import type { PoolsRead } from '../chain/pools/pool-poller.ts'
import type { ChainEvent } from '../chain/source/source.ts'
import type { PolledList } from '../tokens/list/list-poller.ts'
import type { BatchTimes } from './batch-values.ts'
import type { DecodedBlock } from './facts/settle-block.ts'

/** The events of one turn of the event loop, and the time of the turn. */
export type Batch<Event> = BatchTimes & { readonly events: readonly Event[] }

/** `list` is a list or a part of one, or null if the list could not be read. */
type ListEvent = { readonly type: 'list'; readonly list: PolledList | null }

export type IngestEvent = ChainEvent | ContractAnswer | PoolsRead | ListEvent

export type FoldedEvent =
  | Exclude<IngestEvent, { type: 'logs' | 'sealed' }>
  | { readonly type: 'pendingLogs'; readonly pendingLogs: readonly PendingLog[]; readonly repeated: number }
  | (Omit<Extract<ChainEvent, { type: 'sealed' }>, 'blocks'> & { readonly blocks: readonly DecodedBlock[] })

/** Limit of logs that one turn of the event loop decodes and folds. A log that explains a log of an earlier turn amends it. */
const FOLDED_PER_TURN = 2_500

/** Splits the events of a turn between transactions if they have too many logs. A sealed block stays whole. */
export function splitReceived(batch: Batch<IngestEvent>): readonly Batch<IngestEvent>[] {
  if (batch.events.reduce((sum, event) => sum + logCount(event), 0) <= FOLDED_PER_TURN) return [batch]
  const parts: IngestEvent[][] = []
  let room = 0
  for (const event of batch.events.flatMap(partsOfEvent)) {
    const count = logCount(event)
    if (count > room || parts.length === 0) {
      parts.push([])
      room = FOLDED_PER_TURN
    }
    parts.at(-1)?.push(event)
    room -= count
  }
  return parts.map((events) => ({ ...batch, events }))
}

/** Splits logs between transactions. A transaction is split only if it alone exceeds the limit. */
function partsOfEvent(event: IngestEvent): readonly IngestEvent[] {
  if (event.type !== 'logs' || event.logs.length <= FOLDED_PER_TURN) return [event]
  const transactions: Log[][] = []
  for (const log of event.logs) {
    const last = transactions.at(-1)
    if (last?.[0]?.transactionHash === log.transactionHash && last.length < FOLDED_PER_TURN) last.push(log)
    else transactions.push([log])
  }
  return transactions.map((logs) => ({ ...event, logs }))
}

function logCount(event: IngestEvent): number {
  if (event.type === 'logs') return event.logs.length
  return event.type === 'sealed' ? event.blocks.reduce((sum, { logs }) => sum + logs.length, 0) : 0
}

/** Types of events that may overtake logs, because they do not depend on published facts. */
const passThroughTypes: ReadonlySet<IngestEvent['type']> = new Set(['head', 'status', 'finality'])

export function foldBatch({ events, ...times }: Batch<IngestEvent>, memory: LogMemory): Batch<FoldedEvent> {
  const folded: FoldedEvent[] = []
  let received: ReceivedLogs[] = []
  const foldReceived = () => {
    if (received.length > 0) folded.push({ type: 'pendingLogs', ...memory.fold(received) })
    received = []
  }
  for (const event of events) {
    if (event.type === 'logs') {
      received.push(event)
      continue
    }
    if (!passThroughTypes.has(event.type)) foldReceived()
    folded.push(foldEvent(memory, event))
  }
  foldReceived()
  return { ...times, events: folded }
}

function foldEvent(memory: LogMemory, event: Exclude<IngestEvent, { type: 'logs' }>): FoldedEvent {
  if (event.type === 'reorg') memory.reopenFrom(event.from)
  if (event.type !== 'sealed') return event
  const blocks = event.blocks.map(({ logs, ...block }): DecodedBlock => ({ ...block, ...memory.foldBlock({ ...block, logs }) }))
  memory.forgetSettled(event.newest)
  return { ...event, blocks }
}
