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
import type { Heard } from '../chain/source/source.ts'
import type { HeardLog } from './pending-logs.ts'
import type { Arrival } from './reducer.ts'

/** What comes down the river, logs one by one. */
export type Unsorted = Heard | Exclude<Arrival, { type: 'transaction' }>

/** A log that is pushed waits so long for what belongs to it, as the contract allows; a poll's answer has whole transactions. */
const PUSHED_WAIT_MS = 25
const POLLED_WAIT_MS = 0

/** What may pass a log that waits: none of it depends on what is told. */
const passing: ReadonlySet<Unsorted['type']> = new Set(['head', 'status', 'finality', 'unreadable'])

/**
 * Keeps the logs of one transaction together: they come one by one, and a memo or the end of an announcement says what the
 * log before it is. None waits longer than for a log of another transaction.
 */
export const together =
  (clock: SchedulerLike) =>
  (heard: Observable<Unsorted>): Observable<Arrival> =>
    defer(() => {
      let waiting: HeardLog[] = []
      /** Whoever is told waits no longer, so that there is one wait at a time. */
      const ended = new Subject<void>()
      const end = (logs: readonly HeardLog[]): Observable<Arrival> => {
        if (logs.length === 0 || logs !== waiting) return EMPTY
        waiting = []
        ended.next()
        return of({ type: 'transaction', logs })
      }
      const add = ({ type: _, ...one }: Extract<Heard, { type: 'log' }>): Observable<Arrival> => {
        const [first] = waiting
        if (first && sameTransaction(first, one)) {
          waiting.push(one)
          return EMPTY
        }
        const before = end(waiting)
        const logs = [one]
        waiting = logs
        const wait = timer(one.via === 'poll' ? POLLED_WAIT_MS : PUSHED_WAIT_MS, clock)
        return concat(
          before,
          wait.pipe(
            takeUntil(ended),
            mergeMap(() => end(logs)),
          ),
        )
      }
      return heard.pipe(
        mergeMap((one) => {
          if (one.type === 'log') return add(one)
          return passing.has(one.type) ? of(one) : concat(end(waiting), of(one))
        }),
      )
    })

const sameTransaction = ({ log: one }: HeardLog, { log: other }: HeardLog): boolean =>
  one.transactionHash === other.transactionHash && one.blockNumber === other.blockNumber
