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
import { nameOf } from '../rpc/client.ts'
import { LinkError, LinkSocket, type Signal } from './socket.ts'

const BACKOFF_LEAST_MS = 250
const BACKOFF_MOST_MS = 30_000
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
  readonly dice: () => number
  readonly say: (kind: string, detail: unknown) => void
}

/** One upstream socket as a stream of signals, for ever: after each loss the next address is tried, with backoff. */
export const link = (options: Options): Observable<Signal> =>
  defer(() => {
    const { urls, addresses, probes, chain, clock, dice, say } = options
    let attempts = 0
    let failures = 0
    return defer(() => {
      const url = urls[attempts % urls.length] ?? ''
      attempts += 1
      const openedAt = clock.now()
      const life = using(
        () => new LinkSocket(url, { chain, now: () => clock.now(), say }),
        (socket) =>
          socket instanceof LinkSocket
            ? merge(
                socket.signals,
                addresses.pipe(
                  tap((list) => socket.hear(list)),
                  ignoreElements(),
                ),
                probes.pipe(
                  tap(() => socket.probe()),
                  ignoreElements(),
                ),
              )
            : throwError(() => new LinkError('no socket')),
      )
      return life.pipe(
        catchError((failure: unknown) => {
          if (clock.now() - openedAt > STABLE_MS) failures = 0
          const reason = failure instanceof Error ? failure.message : String(failure)
          say('link down', { endpoint: nameOf(url), reason })
          return concat(
            of<Signal>({ type: 'down', reason, refused: failure instanceof LinkError && failure.refused }),
            throwError(() => failure),
          )
        }),
      )
    }).pipe(
      retry({
        delay: () => {
          const backoff = Math.min(BACKOFF_MOST_MS, BACKOFF_LEAST_MS * 2 ** Math.min(failures, 16))
          failures += 1
          return timer(backoff * (0.5 + dice() / 2), clock)
        },
      }),
    )
  })
