import {
  catchError,
  concat,
  defer,
  EMPTY,
  finalize,
  ignoreElements,
  merge,
  type Observable,
  of,
  tap,
  throwError,
  timer,
} from 'rxjs'
import { retryWithBackoff } from '../../../lib/backoff.ts'
import { hostOf } from '../../../lib/http-fetch.ts'
import type { Host } from '../../host.ts'
import type { ReadFilter } from '../logs/log-filter.ts'
import type { ChainIdentity } from '../rpc/chain-identity.ts'
import { UpstreamError } from '../rpc/upstream-error.ts'
import { type LinkSignal, SubscriptionSocket } from './subscription-socket.ts'

/** Time after which a link that uses a later URL of the list tries the first one again. */
const RETURN_AFTER_MS = 3_600_000
const BACKOFF = { minMs: 250, maxMs: 30_000, jitter: [0.5, 1], stableMs: 30_000 } as const

/** The link subscribes to the logs that match `filters`, retries its subscriptions at `probes`, and tries the next URL at `reconnects`. */
export type LinkInputs = {
  readonly filters: Observable<readonly ReadFilter[]>
  readonly probes: Observable<unknown>
  readonly reconnects: Observable<unknown>
}

type Options = LinkInputs &
  Pick<Host, 'clock' | 'random' | 'log'> & {
    readonly urls: readonly string[]
    readonly chain: ChainIdentity
    /** Called with the host of each socket that was lost or never opened. */
    readonly onLoss?: (endpoint: string) => void
  }

/** An upstream socket as an endless stream of signals. After each loss it tries the next URL, with backoff. */
export const reconnectingLink = (options: Options): Observable<LinkSignal> =>
  defer(() => {
    const { urls, filters, probes, reconnects, chain, clock, random, log, onLoss } = options
    let attempts = 0
    // A `Retry-After` of one URL must not delay the attempt at another one, so it counts only for a single URL.
    const leastMs = (failure: unknown) => (urls.length === 1 && failure instanceof UpstreamError ? (failure.retryAfterMs ?? 0) : 0)
    return defer(() => {
      const url = urls[attempts % urls.length] ?? ''
      const isFirst = attempts % urls.length === 0
      attempts += 1
      const connection = defer(() => {
        const socket = new SubscriptionSocket(url, { chain, now: () => clock.now(), log })
        const commands = merge(
          filters.pipe(tap((list) => socket.setFilters(list))),
          probes.pipe(tap(() => socket.retrySubscriptions())),
          chain.wrongFound.pipe(tap(() => socket.checkChainAgain())),
          reconnects.pipe(tap(() => socket.leave('node is not delivering logs'))),
          (isFirst ? EMPTY : timer(RETURN_AFTER_MS, clock)).pipe(
            tap(() => {
              attempts = 0
              socket.leave('the first URL is tried again')
            }),
          ),
        )
        return merge(socket.signals, commands.pipe(ignoreElements())).pipe(finalize(() => socket.unsubscribe()))
      })
      return connection.pipe(
        catchError((failure: unknown) => {
          const reason = failure instanceof Error ? failure.message : String(failure)
          onLoss?.(hostOf(url))
          log('link_down', { endpoint: hostOf(url), reason })
          return concat(
            of<LinkSignal>({ type: 'down', reason, isRefused: failure instanceof UpstreamError && failure.isRefused }),
            throwError(() => failure),
          )
        }),
      )
    }).pipe(retryWithBackoff({ ...BACKOFF, clock, random, leastMs }))
  })
