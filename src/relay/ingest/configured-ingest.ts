import { type Observable, type SchedulerLike, tap } from 'rxjs'
import { nextTurn } from '../../lib/turns.ts'
import type { ChainIdentity } from '../chain/rpc/chain-id.ts'
import type { Rpc } from '../chain/rpc/client.ts'
import type { ChainEvent } from '../chain/source/source.ts'
import type { SourceSettings } from '../chain/source/source-settings.ts'
import type { Config, UpstreamEndpoints } from '../config/config.ts'
import { openCalendar } from '../market/calendar.ts'
import type { Metrics } from '../metrics.ts'
import type { Peers } from '../tape/peers.ts'
import type { Entry } from '../tape/tape.ts'
import { fetchList, pollList } from '../tokens/list/list-poller.ts'
import { type IngestInputs, openIngest } from './ingest.ts'
import { appendWithChain } from './tape-chain.ts'

type ConfiguredInputs = {
  readonly config: Config
  readonly endpoints: Pick<UpstreamEndpoints, 'rpcUrls' | 'stocksUrl' | 'feeds' | 'pools' | 'oracleRegistry'>
  readonly sourceSettings: SourceSettings
  readonly rpc: Rpc
  readonly chain: ChainIdentity
  readonly tape: IngestInputs['tape']
  readonly onChainEvent: (event: ChainEvent) => void
  /** The ingesters that share the tape; null where this is the only one. */
  readonly peers: Peers | null
  readonly metrics: Metrics
  readonly clock: SchedulerLike
  readonly now: () => number
  readonly wallTime: () => number
  readonly random: () => number
  readonly warn: (kind: string, detail: unknown) => void
}

/** The ingest with the endpoints and settings of the process, counted in its metrics. */
export async function openConfiguredIngest(inputs: ConfiguredInputs): Promise<Observable<readonly Entry[]>> {
  const { config, endpoints, sourceSettings, rpc, chain, tape, metrics, clock, now, wallTime, random, warn } = inputs
  const { link, linkCount = 1, ...intervals } = sourceSettings
  const onUnreadable = (count: number) => metrics.upstreamUnreadable.inc(count)
  const calendar = openCalendar(config.CALENDAR)
  let oldestOpenAt: number | null = null
  metrics.oldestOpenKey.measureBy(() => (oldestOpenAt === null ? 0 : Math.max(0, now() - oldestOpenAt) / 1_000))
  const published = await openIngest({
    tape,
    append: appendWithChain(tape, chain),
    request: rpc.request,
    requestBatch: rpc.requestBatch,
    confirmChain: rpc.confirmChain,
    leaveEndpoint: rpc.leaveEndpoint,
    ...{ link, linkCount },
    onChainEvent: inputs.onChainEvent,
    ...(inputs.peers && { peerLogs: inputs.peers.logs }),
    lists: (known) =>
      pollList({
        fetch: fetchList(endpoints.stocksUrl),
        refreshMs: config.STOCKS_REFRESH_MS,
        ...{ known, clock, random, warn, onUnreadable },
        onRead: (outcome) => metrics.listReads.inc({ outcome }),
      }),
    clock,
    wallTime,
    // All sockets have been read then.
    tick: nextTurn,
    settings: {
      ...intervals,
      staleMs: config.NAV_STALE_MS,
      feeds: endpoints.feeds,
      refreshMs: config.STOCKS_REFRESH_MS,
      pools: endpoints.pools,
      poolMinDepth: config.POOL_MIN_DEPTH,
      oracleRegistry: endpoints.oracleRegistry,
      sessionAt: calendar && ((seconds) => calendar.sessionAt(seconds)),
    },
    warn,
    count: ({ repeated, unlisted, unreadable }, openAt) => {
      oldestOpenAt = openAt
      metrics.logsRepeated.inc(repeated)
      metrics.logsUnlisted.inc(unlisted)
      if (unreadable === 0) return
      onUnreadable(unreadable)
      warn('upstream logs or messages unreadable', { count: unreadable })
    },
  })
  return published.pipe(tap((entries) => countPublished(entries, metrics)))
}

function countPublished(entries: readonly Entry[], { updates, keys }: Metrics): void {
  for (const { update } of entries) {
    updates.inc({ type: update.type })
    if (update.type === 'seal') keys.inc({ event: 'sealed' }, update.keys.length)
    else if (update.type === 'retract') keys.inc({ event: 'retracted' })
    else if (update.type === 'amend') keys.inc({ event: 'amended' })
    else if ('late' in update) keys.inc({ event: update.late ? 'late' : (update.stage ?? 'preconfirmed') })
  }
}
