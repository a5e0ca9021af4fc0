import { audit, buffer, concatMap, connect, filter, map, merge, type Observable, type SchedulerLike, tap } from 'rxjs'
import { inTurns, stepsInTurns } from '../../lib/turns.ts'
import type { LogMemory } from '../chain/logs/log-memory.ts'
import type { Host } from '../host.ts'
import type { Entry, TapeWriter } from '../tape/tape.ts'
import { type Batch, foldBatch, type IngestEvent, splitReceived } from './fold-batch.ts'
import type { IngestState } from './ingest-state.ts'
import { type LogCounts, reduce } from './reduce.ts'

export type PipelineInputs = Pick<Host, 'clock' | 'wallTime'> & {
  readonly tokenLists: Observable<IngestEvent>
  readonly contractReads: Observable<IngestEvent>
  readonly poolReads: Observable<IngestEvent>
  readonly chainEvents: Observable<IngestEvent>
  readonly memory: LogMemory
  readonly state: IngestState
  readonly writer: Pick<TapeWriter, 'append'>
  /** Resolves at the end of the turn of the event loop. */
  readonly tick: () => Promise<unknown>
  readonly count: (counts: LogCounts, oldestOpenAt: number | null) => void
  /** Called after each part of a reduction, which may have changed the state. */
  readonly onReduced: () => void
}

/** Everything that happens to a token, in order of arrival, on the tape. */
export const pipeline = (inputs: PipelineInputs): Observable<readonly Entry[]> => {
  const { tokenLists, contractReads, poolReads, chainEvents, memory, state, writer, clock, wallTime, tick, count, onReduced } =
    inputs
  return merge(tokenLists, contractReads, poolReads, chainEvents).pipe(
    batchPerTick(tick, clock, wallTime), // the events of one turn of the event loop: one reduction, one write
    inTurns(splitReceived), // thousands of logs at once take several turns
    map((batch) => foldBatch(batch, memory)), // decodes each log once; attaches each Memo and Seized to its transfer
    stepsInTurns((batch) => reduce(state, batch)), // no clock, no I/O; it changes `state`; a large batch in parts
    tap(({ counts, oldestOpenAt }) => count(counts, oldestOpenAt)),
    tap(onReduced), // names the addresses whose logs are received
    filter(({ updates, notes, bars }) => updates.length > 0 || notes.size > 0 || bars.length > 0),
    concatMap((batch) => writer.append(batch)),
  )
}

const batchPerTick =
  <Event>(tick: PipelineInputs['tick'], clock: SchedulerLike, wallTime: () => number) =>
  (events: Observable<Event>): Observable<Batch<Event>> =>
    events.pipe(
      connect((sharedEvents) => sharedEvents.pipe(buffer(sharedEvents.pipe(audit(tick))))),
      map((batch) => ({ at: clock.now(), wallTime: wallTime(), events: batch })),
    )
