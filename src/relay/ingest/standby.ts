import { catchError, EMPTY, from, mergeAll, Observable, switchMap, tap, throwError } from 'rxjs'
import type { ReadFilter } from '../chain/logs/log-filter.ts'
import type { EndpointPool } from '../chain/rpc/endpoint-pool.ts'
import type { SharedSourceOptions } from '../chain/source/shared-source-options.ts'
import { type ChainEvent, sourceFromNow } from '../chain/source/source.ts'
import type { Config } from '../config/config.ts'
import type { Host } from '../host.ts'
import { tokenNotes, venueNotes } from '../notes/published-notes.ts'
import { NotLeadingError, type Tape } from '../tape/tape.ts'
import { listedAddresses } from '../tokens/list/list-diff.ts'
import { filtersOf, isSameFilters, venuesFrom } from '../tokens/venue.ts'
import type { PeerLogs } from './peer-logs.ts'

type StandbyInputs = Pick<Host, 'clock' | 'log'> & {
  readonly config: { readonly chain: Pick<Config['chain'], 'upstreamRpcUrl'> }
  readonly sourceOptions: SharedSourceOptions
  readonly endpoints: EndpointPool
  readonly tape: Pick<Tape, 'follow' | 'notes'>
  readonly onChainEvent: (event: ChainEvent) => void
  /** The ingesters that share the tape; null if this process is none of them. */
  readonly peers: PeerLogs | null
}

/** Follows the chain while another process writes the tape. Reports its events in this process, and its logs to the leader. */
export function openStandby(inputs: StandbyInputs): Observable<ChainEvent> {
  const { config, sourceOptions, endpoints, tape, onChainEvent, peers, clock, log } = inputs
  if (config.chain.upstreamRpcUrl.length === 0) return EMPTY
  return sourceFromNow({ ...sourceOptions, endpoints, filters: receivedFilters(tape), clock, log }).pipe(
    tap((event) => {
      onChainEvent(event)
      peers?.share(event)
    }),
  )
}

export const whileLeading = <Published>(
  leadership: Observable<boolean>,
  openIngest: () => Promise<Observable<Published>>,
  standby: Observable<unknown>,
): Observable<unknown> =>
  leadership.pipe(switchMap((isLeading) => (isLeading ? from(openIngest()).pipe(mergeAll(), endWithoutLead) : standby)))

/** Ends without an error if this process no longer leads: the ingest may still be writing at that moment. */
const endWithoutLead = <Value>(values: Observable<Value>): Observable<Value> =>
  values.pipe(catchError((failure: unknown) => (failure instanceof NotLeadingError ? EMPTY : throwError(() => failure))))

/** The filters of the listed tokens and the pools whose logs the leader receives. */
const receivedFilters = (tape: StandbyInputs['tape']): Observable<readonly ReadFilter[]> =>
  new Observable((subscriber) => {
    let known: readonly ReadFilter[] = []
    const update = () => {
      const tokens = new Map([...tape.notes.notes(tokenNotes).values()].map((token) => [token.address, token]))
      const listed = [...listedAddresses(tokens)].sort()
      const venues = venuesFrom(tape.notes.notes(venueNotes).values())
      const now = filtersOf(listed, venues.values())
      if (listed.length === 0 || isSameFilters(known, now)) return
      known = now
      subscriber.next(now)
    }
    update()
    return tape.follow((_, notes) => {
      if (notes.notes(tokenNotes).size > 0 || notes.notes(venueNotes).size > 0) update()
    })
  })
