import {
  catchError,
  concat,
  defer,
  ignoreElements,
  merge,
  type Observable,
  of,
  retry,
  type SchedulerLike,
  tap,
  throwError,
  timer,
  using,
} from 'rxjs'
import type { Hex } from '../../protocol/fields.ts'
import type { ChainIdentity } from '../rpc/chain-id.ts'
import { hostOf } from '../rpc/client.ts'
import { LinkError, type LinkSignal, LinkSocket } from './socket.ts'

const BACKOFF_MIN_MS = 250
const BACKOFF_MAX_MS = 30_000
/** A link that lived this long starts its backoff anew. */
const STABLE_MS = 30_000

type Options = {
  readonly urls: readonly string[]
  /** The listed tokens, as they come and go; nothing is asked for before the first. */
  readonly addresses: Observable<readonly Hex[]>
  /** When to try again a subscription that was refused or found silent. */
  readonly probes: Observable<unknown>
  /** The chain that the node must be of. */
  readonly chain: ChainIdentity
  readonly clock: SchedulerLike
  readonly random: () => number
  readonly warn: (kind: string, detail: unknown) => void
}

/** One upstream socket as a stream of signals, for ever: after each loss the next address is tried, with backoff. */
export const link = (options: Options): Observable<LinkSignal> =>
  defer(() => {
    const { urls, addresses, probes, chain, clock, random, warn } = options
    let attempts = 0
    let failures = 0
    return defer(() => {
      const url = urls[attempts % urls.length] ?? ''
      attempts += 1
      const openedAt = clock.now()
      const connection = using(
        () => new LinkSocket(url, { chain, now: () => clock.now(), warn }),
        (socket) =>
          socket instanceof LinkSocket
            ? merge(
                socket.signals,
                addresses.pipe(
                  tap((list) => socket.setAddresses(list)),
                  ignoreElements(),
                ),
                probes.pipe(
                  tap(() => socket.retrySubscriptions()),
                  ignoreElements(),
                ),
              )
            : throwError(() => new LinkError('no socket')),
      )
      return connection.pipe(
        catchError((failure: unknown) => {
          if (clock.now() - openedAt > STABLE_MS) failures = 0
          const reason = failure instanceof Error ? failure.message : String(failure)
          warn('link down', { endpoint: hostOf(url), reason })
          return concat(
            of<LinkSignal>({ type: 'down', reason, isRefused: failure instanceof LinkError && failure.isRefused }),
            throwError(() => failure),
          )
        }),
      )
    }).pipe(
      retry({
        delay: () => {
          const backoffMs = Math.min(BACKOFF_MAX_MS, BACKOFF_MIN_MS * 2 ** Math.min(failures, 16))
          failures += 1
          return timer(backoffMs * (0.5 + random() / 2), clock)
        },
      }),
    )
  })
