import type { ContractAnswer } from '../chain/contracts/contract-poller.ts'
import type { LogMemory, PendingLog, ReceivedLogs } from '../chain/logs/log-memory.ts'
import type { PoolsRead } from '../chain/pools/pool-poller.ts'
import type { ChainEvent } from '../chain/source/source.ts'
import type { ListReading } from '../tokens/list/list-poller.ts'
import type { BatchTimes } from './batch-values.ts'
import type { DecodedBlock } from './facts/settle-block.ts'

/** The events of one turn of the event loop, and the time of the turn. */
export type Batch<Event> = BatchTimes & { readonly events: readonly Event[] }

export type IngestEvent = ChainEvent | ContractAnswer | PoolsRead | ({ readonly type: 'list' } & ListReading)

export type FoldedEvent =
  | Exclude<IngestEvent, { type: 'logs' | 'sealed' }>
  | { readonly type: 'pendingLogs'; readonly pendingLogs: readonly PendingLog[]; readonly repeated: number }
  | (Omit<Extract<ChainEvent, { type: 'sealed' }>, 'blocks'> & { readonly blocks: readonly DecodedBlock[] })

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
