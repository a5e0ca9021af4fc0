import { randomUUID } from 'node:crypto'
import { BlockList } from 'node:net'
import { performance } from 'node:perf_hooks'
import { asapScheduler, asyncScheduler, type Observable, type SchedulerLike, Subscription, tap } from 'rxjs'
import packageJson from '../package.json' with { type: 'json' }
import { link } from './chain/link/link.ts'
import { ChainIdentity } from './chain/rpc/chain-id.ts'
import { Rpc } from './chain/rpc/client.ts'
import type { SourceOptions } from './chain/source/source.ts'
import type { Config } from './config.ts'
import { openApp } from './edge/http/routes.ts'
import { listen } from './edge/http/server.ts'
import { createAuthorizer } from './edge/limits/auth.ts'
import { clientAddressOf } from './edge/limits/client-address.ts'
import type { StreamServices } from './edge/live/http-stream.ts'
import { Hub } from './edge/live/hub.ts'
import { View } from './edge/select/view.ts'
import { StatusService, UPTIME_SAVE_MS } from './edge/status/status-answer.ts'
import { openGateway } from './gateway/gateway.ts'
import { openIngest } from './ingest/ingest.ts'
import { type Logger, rateLimitedWarn } from './log.ts'
import type { Metrics } from './metrics.ts'
import { defineNote, type NoteReader, Notes } from './tape/notes.ts'
import { openSqliteTape } from './tape/sqlite.ts'
import { TapeError } from './tape/tape.ts'
import { fetchList, pollList } from './tokens/list-poller.ts'
import type { FeedSetting } from './tokens/price-feeds.ts'

/** Where the relay listens to the chain and reads the list. */
export type UpstreamEndpoints = {
  readonly rpcUrls: readonly string[]
  readonly wsUrls: readonly string[]
  readonly stocksUrl: string
  readonly feeds: readonly FeedSetting[]
  /** Whether it is the built-in chain. */
  readonly demo: boolean
}

type RelayOptions = {
  readonly config: Config
  readonly upstream: UpstreamEndpoints
  readonly log: Logger
  readonly metrics: Metrics
  readonly clock?: SchedulerLike
  readonly random?: () => number
  /** Opens the optional parts. */
  readonly openParts?: readonly (typeof openGateway)[]
  /** Called when the relay cannot go on. */
  readonly onFailure: (failure: unknown) => void
}

/** A relay at work. */
export type Relay = {
  readonly port: number
  /** Resolves when the first list is on the board, so that symbols can be named. */
  readonly whenListed: Promise<void>
  stop(): Promise<void>
}

/** How often it is looked whose heartbeat is due. */
const HEARTBEAT_CHECK_MS = 250
/** Whose word on where a client comes from is taken where no proxy is named. */
const noTrustedProxies = new BlockList()
/** Longer than a movement waits for what belongs to it, so that the last of a burst goes out with the others. */
const BATCH_DELAY_BOUND_MS = 30

/** Puts the parts together: the river up to the tape, the delta from it. */
export async function startRelay({
  config,
  upstream,
  log,
  metrics,
  onFailure,
  openParts = [openGateway],
  ...overrides
}: RelayOptions): Promise<Relay> {
  const clock = overrides.clock ?? asyncScheduler
  const random = overrides.random ?? Math.random
  const now = () => clock.now()
  const uptime = () => performance.now()
  const warn = rateLimitedWarn(log, now)
  const tape = openSqliteTape({
    dir: config.DATA_DIR,
    retentionMs: config.TAPE_RETENTION_MS,
    bound: config.TAPE_BOUND,
    now,
    random,
  })
  try {
    const chainIdentity = openChainIdentity(config, tape)
    const dependencies = { chain: chainIdentity, now, random, warn }
    const rpc = new Rpc({ urls: upstream.rpcUrls, ...dependencies })
    const openLink: SourceOptions['link'] =
      upstream.wsUrls.length === 0
        ? null
        : (linkOptions) => link({ ...linkOptions, urls: upstream.wsUrls, chain: chainIdentity, clock, random, warn })
    const settings = {
      pendingPollMs: config.PENDING_POLL_MS,
      silenceMs: config.SILENCE_MS,
      finalityPollMs: config.FINALITY_POLL_MS,
      backfillBoundMs: config.BACKFILL_BOUND_MS,
    }
    const view = new View(tape)
    const hub = new Hub({
      tape,
      view,
      now,
      uptime,
      random,
      backlogBoundBytes: config.BACKLOG_BOUND_BYTES,
      clientsBound: config.CLIENTS_BOUND,
      clientsPerAddressBound: config.CLIENTS_PER_ADDRESS_BOUND,
      selectionsBound: config.SELECTIONS_BOUND,
      batchDelayBoundMs: BATCH_DELAY_BOUND_MS,
      counters: {
        connected: (carrier) => metrics.listeners.inc({ carrier }),
        disconnected: (carrier) => metrics.listeners.dec({ carrier }),
        disconnectedAsSlow: () => metrics.disconnectedAsSlow.inc(),
      },
    })
    const streams: StreamServices = {
      edge: {
        hub,
        view,
        tape,
        now,
        uptime,
        chainId: () => chainIdentity.id,
        server: `stocktape/${packageJson.version}`,
        demo: upstream.demo,
        heartbeatMs: config.HEARTBEAT_MS,
        staleMs: config.NAV_STALE_MS,
        limits: {
          selections: config.SELECTIONS_BOUND,
          replay: config.REPLAY_BOUND,
          backlog: config.BACKLOG_BOUND_BYTES,
          retentionMs: config.TAPE_RETENTION_MS,
        },
      },
      random,
      createConnectionId: randomUUID,
      warn,
      authorize: createAuthorizer({ origins: config.ORIGINS, keys: config.API_KEYS }),
      clientAddressOf: (incoming) =>
        clientAddressOf(incoming, config.TRUSTED_PROXIES ?? noTrustedProxies, () =>
          warn('X-Forwarded-For from an address that is not in TRUSTED_PROXIES is not believed', {}),
        ),
    }
    const unreadyReasons = () => [
      ...(view.tokens.length === 0 ? ['no list has been read yet'] : []),
      ...(view.source === 'down' ? ['the upstream is down'] : []),
      ...(view.reason === 'stale_head' ? ["the chain's head does not move"] : []),
      ...(hub.isDraining ? ['stopping'] : []),
    ]
    const parts = openParts.map((openPart) =>
      openPart({
        config,
        upstream,
        view,
        link: openLink,
        sourceSettings: settings,
        connections: hub.connectionLimits,
        metrics,
        clock,
        uptime,
        addressOf: streams.clientAddressOf,
        ...dependencies,
      }),
    )
    const rpcClientCount = () => parts.reduce((sum, part) => sum + part.connectedCount(), 0)
    const status = await StatusService.open(streams.edge, rpcClientCount)
    const app = openApp({
      streams,
      nodeRoutes: parts.flatMap(({ routes }) => routes),
      listCacheControl: `${config.API_KEYS ? 'private' : 'public'}, max-age=${Math.ceil(config.STOCKS_REFRESH_MS / 1_000)}`,
      metrics: metrics.text,
      metricsToken: config.METRICS_TOKEN,
      unreadyReasons,
      status: () => status.read(),
    })
    const server = await listen(
      app,
      { streams, webSocketRoutes: parts.flatMap(({ webSocketRoutes }) => webSocketRoutes) },
      {
        host: config.HOST,
        port: config.PORT,
        clientsBound: config.CLIENTS_BOUND,
      },
    )
    const heartbeatTimer = setInterval(() => void hub.sendHeartbeats(), HEARTBEAT_CHECK_MS)
    const statusTimer = setInterval(() => void status.save().catch(onFailure), UPTIME_SAVE_MS)
    status.catchUp().catch(onFailure)
    const whenListed = new Promise<void>((resolve) => {
      const checkListed = () => {
        if (view.tokens.length === 0) return
        unfollow()
        resolve()
      }
      const unfollow = tape.follow(checkListed)
      checkListed()
    })
    const ingest = await openIngest({
      tape,
      request: rpc.request,
      link: openLink,
      onChainEvent: (event) => {
        for (const part of parts) part.onChainEvent(event)
      },
      lists: (known) =>
        pollList({
          fetch: fetchList(upstream.stocksUrl),
          refreshMs: config.STOCKS_REFRESH_MS,
          known,
          clock,
          random,
          warn,
          onUnreadable: (n) => metrics.upstreamUnreadable.inc(n),
        }),
      clock,
      tickScheduler: asapScheduler,
      settings: { ...settings, staleMs: config.NAV_STALE_MS, feeds: upstream.feeds },
      warn,
      count: {
        repeated: () => metrics.logsRepeated.inc(),
        unlisted: () => metrics.logsUnlisted.inc(),
        unreadable: (n) => {
          metrics.upstreamUnreadable.inc(n)
          warn('upstream logs or messages unreadable', { count: n })
        },
      },
    })
    const published = ingest.pipe(
      tap((entries) => {
        for (const { update } of entries) metrics.updates.inc({ type: update.type })
        if (chainIdentity.id !== null && tape.note(chainIdNote) !== chainIdentity.id) {
          tape.append([], new Notes().set(chainIdNote, chainIdentity.id)).catch(onFailure)
        }
      }),
    )
    const subscriptions = new Subscription()
    for (const activity of [published, ...parts.map((part) => part.activity)] as readonly Observable<unknown>[])
      subscriptions.add(activity.subscribe({ error: onFailure }))
    const stop = async () => {
      hub.drain()
      for (const part of parts) part.drain()
      subscriptions.unsubscribe()
      await server.close(config.DRAIN_MS)
      clearInterval(heartbeatTimer)
      for (const part of parts) part.close()
      clearInterval(statusTimer)
      hub.close()
      await status.close().finally(() => tape.close())
    }
    let stopping: Promise<void> | null = null
    return {
      port: server.port,
      whenListed,
      stop: () => {
        stopping ??= stop()
        return stopping
      },
    }
  } catch (failure) {
    await tape.close()
    throw failure
  }
}

const chainIdNote = defineNote<number>('chain')

/** Which chain this tape is of. One tape never holds two chains: their positions and keys would mean nothing. */
function openChainIdentity(config: Config, tape: NoteReader): ChainIdentity {
  const tapeChainId = tape.note(chainIdNote)
  if (tapeChainId === undefined) return new ChainIdentity(config.CHAIN_ID ?? null, 'CHAIN_ID')
  if (config.CHAIN_ID !== undefined && config.CHAIN_ID !== tapeChainId) {
    throw new TapeError(
      `DATA_DIR ${config.DATA_DIR} holds the tape of chain ${tapeChainId}, CHAIN_ID says ${config.CHAIN_ID}: name another folder`,
    )
  }
  return new ChainIdentity(tapeChainId, `the tape in DATA_DIR ${config.DATA_DIR}`)
}
