import { concat, defer, EMPTY, from, mergeMap, type Observable, of, type SchedulerLike, Subject, takeUntil, timer } from 'rxjs'
import type { ChainEvent } from '../chain/source/source.ts'
import type { ReceivedLog } from './pending-logs.ts'
import type { IngestEvent } from './reducer.ts'

/** An event of the pipeline before logs are grouped. */
export type UngroupedEvent = ChainEvent | Exclude<IngestEvent, { type: 'transaction' }>

/** How long the first pushed log waits for the rest of its transaction; the contract allows it. A poll returns whole ones. */
const PUSHED_WAIT_MS = 25
const POLLED_WAIT_MS = 0

/** Events that may overtake a waiting log, because they do not depend on published facts. */
const passThroughTypes: ReadonlySet<UngroupedEvent['type']> = new Set(['head', 'status', 'finality', 'unreadable'])

/**
 * Groups the logs of one transaction. Logs arrive one by one, and a memo or the end of an announcement explains the log
 * before it. A log of another transaction ends the wait.
 */
export const groupTransactions =
  (clock: SchedulerLike) =>
  (events: Observable<UngroupedEvent>): Observable<IngestEvent> =>
    defer(() => {
      let group: ReceivedLog[] = []
      /** Cancels the timeout of a flushed group, so that only one runs at a time. */
      const flushed = new Subject<void>()
      const flush = (logs: readonly ReceivedLog[]): Observable<IngestEvent> => {
        if (logs.length === 0 || logs !== group) return EMPTY
        group = []
        flushed.next()
        return of({ type: 'transaction', logs })
      }
      const addLog = (received: ReceivedLog): Observable<IngestEvent> => {
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
          if (event.type === 'logs') {
            const { logs, via, receivedAt } = event
            return from(logs).pipe(mergeMap((log) => addLog({ log, via, receivedAt })))
          }
          return passThroughTypes.has(event.type) ? of(event) : concat(flush(group), of(event))
        }),
      )
    })

const isSameTransaction = ({ log: a }: ReceivedLog, { log: b }: ReceivedLog): boolean =>
  a.transactionHash === b.transactionHash && a.blockNumber === b.blockNumber
