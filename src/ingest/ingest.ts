import { type Observable, of, type SchedulerLike, Subject, tap } from 'rxjs'
import { asked } from '../chain/contracts/call-poller.ts'
import type { Ask } from '../chain/rpc/client.ts'
import { type Heard, type SourceOptions, source } from '../chain/source/source.ts'
import type { Hex } from '../protocol/fields.ts'
import type { Entry, Tape } from '../tape/tape.ts'
import { listedAddresses } from '../tokens/list-diff.ts'
import type { Reading } from '../tokens/list-poller.ts'
import type { FeedSetting } from '../tokens/price-feeds.ts'
import { river } from './pipeline.ts'
import { Teller } from './reducer.ts'

/** All that the ingest is handed: it has no clock, no dice and no sockets of its own. */
export type Ports = {
  readonly tape: Tape
  readonly ask: Ask
  readonly link: SourceOptions['link']
  /** Hears all that the chain says before it is told, and must not hold it up. */
  readonly overhear: (heard: Heard) => void
  /** The lists as they are read, beginning where these tokens are known. */
  readonly lists: (known: readonly Hex[]) => Observable<Reading | null>
  readonly clock: SchedulerLike
  /** Gathers what comes in one turn of the event loop. */
  readonly turn: SchedulerLike
  readonly settings: {
    readonly pendingPollMs: number
    readonly silenceMs: number
    readonly finalityPollMs: number
    readonly backfillBoundMs: number
    readonly staleMs: number
    /** Where what a token is worth is published on chain. */
    readonly feeds: readonly FeedSetting[]
  }
  readonly say: (kind: string, detail: unknown) => void
  readonly count: { repeated(): void; foreign(): void; unreadable(n: number): void }
}

/** Picks up where the tape ends; subscribed to, it writes what happens from then on. */
export async function openIngest(ports: Ports): Promise<Observable<readonly Entry[]>> {
  const { tape, ask, link, overhear, lists, clock, turn, settings, say, count } = ports
  const teller = await Teller.restore({
    tape,
    staleMs: settings.staleMs,
    feeds: settings.feeds,
    now: () => clock.now(),
    count,
  })
  const holes = new Subject<void>()
  return river({
    tape,
    teller,
    lists: lists(listedAddresses(teller.board)),
    answers: (tokens) =>
      asked({
        ask,
        tokens,
        feeds: of(settings.feeds.map(({ proxy }) => proxy)),
        // As of what is settled: above it a log may say the same that was not heard yet, and that may be taken back.
        head: () => teller.cursor && { number: teller.cursor.number, timestamp: null },
        // Whatever stood in it was not heard.
        again: holes,
        clock,
        say,
      }),
    clock,
    turn,
    source: (addresses) =>
      source({
        ...settings,
        ask,
        link,
        addresses,
        owed: teller.owed,
        cursor: teller.cursor,
        head: teller.head,
        clock,
        say,
      }).pipe(
        tap((heard) => {
          overhear(heard)
          if (heard.type === 'hole') holes.next()
        }),
      ),
  })
}
