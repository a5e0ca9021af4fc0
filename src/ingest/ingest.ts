import { type Observable, of, type SchedulerLike, Subject, tap } from 'rxjs'
import { pollContracts } from '../chain/contracts/call-poller.ts'
import type { RequestFn } from '../chain/rpc/client.ts'
import { type ChainEvent, type SourceOptions, source } from '../chain/source/source.ts'
import type { Hex } from '../protocol/fields.ts'
import type { Entry } from '../tape/tape.ts'
import { listedAddresses } from '../tokens/list-diff.ts'
import type { PolledList } from '../tokens/list-poller.ts'
import type { FeedSetting } from '../tokens/price-feeds.ts'
import type { IngestOptions } from './context.ts'
import { buildPipeline } from './pipeline.ts'
import { Reducer } from './reducer.ts'

/** All that the ingest is handed: it has no clock, no dice and no sockets of its own. */
export type IngestInputs = {
  readonly tape: IngestOptions['tape']
  readonly request: RequestFn
  readonly link: SourceOptions['link']
  /** Hears all that the chain says before it is told, and must not hold it up. */
  readonly onChainEvent: (heard: ChainEvent) => void
  /** The lists as they are read, beginning where these tokens are known. */
  readonly lists: (known: readonly Hex[]) => Observable<PolledList | null>
  readonly clock: SchedulerLike
  /** Gathers what comes in one turn of the event loop. */
  readonly tickScheduler: SchedulerLike
  readonly settings: {
    readonly pendingPollMs: number
    readonly silenceMs: number
    readonly finalityPollMs: number
    readonly backfillBoundMs: number
    readonly staleMs: number
    /** Where what a token is worth is published on chain. */
    readonly feeds: readonly FeedSetting[]
  }
  readonly warn: (kind: string, detail: unknown) => void
  readonly count: { repeated(): void; unlisted(): void; unreadable(n: number): void }
}

/** Picks up where the tape ends; subscribed to, it writes what happens from then on. */
export async function openIngest(inputs: IngestInputs): Promise<Observable<readonly Entry[]>> {
  const { tape, request, link, onChainEvent, lists, clock, tickScheduler, settings, warn, count } = inputs
  const reducer = await Reducer.restore({
    tape,
    staleMs: settings.staleMs,
    feeds: settings.feeds,
    now: () => clock.now(),
    count,
  })
  const holes = new Subject<void>()
  return buildPipeline({
    tape,
    reducer,
    lists: lists(listedAddresses(reducer.tokens)),
    answers: (tokens) =>
      pollContracts({
        request,
        tokens,
        feeds: of(settings.feeds.map(({ proxy }) => proxy)),
        // As of what is settled: above it a log may say the same that was not heard yet, and that may be taken back.
        head: () => reducer.cursor && { number: reducer.cursor.number, timestamp: null },
        // Whatever stood in it was not heard.
        refresh: holes,
        clock,
        warn,
      }),
    clock,
    tickScheduler,
    source: (addresses) =>
      source({
        ...settings,
        request,
        link,
        addresses,
        openKeys: reducer.openKeys,
        cursor: reducer.cursor,
        head: reducer.head,
        clock,
        warn,
      }).pipe(
        tap((event) => {
          onChainEvent(event)
          if (event.type === 'hole') holes.next()
        }),
      ),
  })
}
