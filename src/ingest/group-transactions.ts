import {
  concat,
  defer,
  EMPTY,
  mergeMap,
  type Observable,
  of,
  type SchedulerLike,
  Subject,
  takeUntil,
  timer,
} from 'rxjs'
import type { ChainEvent } from '../chain/source/source.ts'
import type { ReceivedLog } from './pending-logs.ts'
import type { IngestEvent } from './reducer.ts'

/** What comes down the river, logs one by one. */
export type UngroupedEvent = ChainEvent | Exclude<IngestEvent, { type: 'transaction' }>

/** A log that is pushed waits so long for what belongs to it, as the contract allows; a poll's answer has whole transactions. */
const PUSHED_WAIT_MS = 25
const POLLED_WAIT_MS = 0

/** What may pass a log that waits: none of it depends on what is told. */
const passThroughTypes: ReadonlySet<UngroupedEvent['type']> = new Set(['head', 'status', 'finality', 'unreadable'])

/**
 * Keeps the logs of one transaction together: they come one by one, and a memo or the end of an announcement says what the
 * log before it is. None waits longer than for a log of another transaction.
 */
export const groupTransactions =
  (clock: SchedulerLike) =>
  (events: Observable<UngroupedEvent>): Observable<IngestEvent> =>
    defer(() => {
      let group: ReceivedLog[] = []
      /** Whoever is told waits no longer, so that there is one wait at a time. */
      const flushed = new Subject<void>()
      const flush = (logs: readonly ReceivedLog[]): Observable<IngestEvent> => {
        if (logs.length === 0 || logs !== group) return EMPTY
        group = []
        flushed.next()
        return of({ type: 'transaction', logs })
      }
      const addLog = ({ type: _, ...received }: Extract<ChainEvent, { type: 'log' }>): Observable<IngestEvent> => {
        const [first] = group
        if (first && isSameTransaction(first, received)) {
          group.push(received)
          return EMPTY
        }
        const previousGroup = flush(group)
        const logs = [received]
        group = logs
        const timeout = timer(received.via === 'poll' ? POLLED_WAIT_MS : PUSHED_WAIT_MS, clock)
        return concat(
          previousGroup,
          timeout.pipe(
            takeUntil(flushed),
            mergeMap(() => flush(logs)),
          ),
        )
      }
      return events.pipe(
        mergeMap((event) => {
          if (event.type === 'log') return addLog(event)
          return passThroughTypes.has(event.type) ? of(event) : concat(flush(group), of(event))
        }),
      )
    })

const isSameTransaction = ({ log: one }: ReceivedLog, { log: other }: ReceivedLog): boolean =>
  one.transactionHash === other.transactionHash && one.blockNumber === other.blockNumber
