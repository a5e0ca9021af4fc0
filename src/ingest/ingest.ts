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

/** All that ingest depends on: it has no clock, random numbers or sockets of its own. */
export type IngestInputs = {
  readonly tape: IngestOptions['tape']
  readonly request: RequestFn
  readonly link: SourceOptions['link']
  /** Receives every chain event before it is published. Must not block. */
  readonly onChainEvent: (event: ChainEvent) => void
  /** The lists as they are polled. `known` are the tokens listed in the previous run. */
  readonly lists: (known: readonly Hex[]) => Observable<PolledList | null>
  readonly clock: SchedulerLike
  /** Ends a batch with each turn of the event loop. */
  readonly tickScheduler: SchedulerLike
  readonly settings: {
    readonly pendingPollMs: number
    readonly silenceMs: number
    readonly finalityPollMs: number
    readonly backfillBoundMs: number
    readonly staleMs: number
    /** The price feeds that publish NAVs on chain. */
    readonly feeds: readonly FeedSetting[]
  }
  readonly warn: (kind: string, detail: unknown) => void
  readonly count: { repeated(): void; unlisted(): void; unreadable(n: number): void }
}

/** Restores the state from the tape. The returned pipeline runs and writes while it is subscribed to. */
export async function openIngest(inputs: IngestInputs): Promise<Observable<readonly Entry[]>> {
  const { tape, request, link, onChainEvent, lists, clock, tickScheduler, settings, warn, count } = inputs
  const reducer = await Reducer.restore({ tape, staleMs: settings.staleMs, feeds: settings.feeds, now: () => clock.now(), count })
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
        // Read as of the settled block: above it a log may report the same change later, or be retracted.
        head: () => reducer.cursor && { number: reducer.cursor.number, timestamp: null },
        // A hole may contain changes that no log will report.
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
