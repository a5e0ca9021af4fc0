import { randomUUID } from 'node:crypto'
import { BlockList } from 'node:net'
import { performance } from 'node:perf_hooks'
import { asapScheduler, asyncScheduler, type SchedulerLike } from 'rxjs'
import packageJson from '../package.json' with { type: 'json' }
import { link } from './chain/link/link.ts'
import { ChainIdentity } from './chain/rpc/chain-id.ts'
import { Rpc } from './chain/rpc/client.ts'
import { type SourceOptions, source } from './chain/source/source.ts'
import type { Config } from './config.ts'
import { openApp } from './edge/http/routes.ts'
import { listen } from './edge/http/server.ts'
import { admission } from './edge/limits/auth.ts'
import { addressOf } from './edge/limits/client-address.ts'
import type { Streams } from './edge/live/http-stream.ts'
import { Hub } from './edge/live/hub.ts'
import { View } from './edge/select/view.ts'
import { Status, WATCH_EVERY_MS } from './edge/status/status-answer.ts'
import { openAsking } from './gateway/gateway.ts'
import { openIngest } from './ingest/ingest.ts'
import { type Log, seldom } from './log.ts'
import type { Metrics } from './metrics.ts'
import { openSqliteTape } from './tape/sqlite.ts'
import { noteNames, type Tape, TapeError } from './tape/tape.ts'
import { fetchList, lists } from './tokens/list-poller.ts'
import type { FeedSetting } from './tokens/price-feeds.ts'

/** Where the relay listens to the chain and reads the list. */
export type Upstream = {
  readonly rpcUrls: readonly string[]
  readonly wsUrls: readonly string[]
  readonly stocksUrl: string
  readonly feeds: readonly FeedSetting[]
  /** Whether it is the built-in chain. */
  readonly demo: boolean
}

type Parts = {
  readonly config: Config
  readonly upstream: Upstream
  readonly log: Log
  readonly metrics: Metrics
  readonly clock?: SchedulerLike
  readonly dice?: () => number
  /** Called when the relay cannot go on. */
  readonly failed: (failure: unknown) => void
}

/** A relay at work. */
export type Relay = {
  readonly port: number
  /** Resolves when the first list is on the board, so that symbols can be named. */
  readonly listed: Promise<void>
  stop(): Promise<void>
}

/** How often it is looked whose heartbeat is due. */
const BEAT_EVERY_MS = 250
/** Whose word on where a client comes from is taken where no proxy is named. */
const nobody = new BlockList()
/** Longer than a movement waits for what belongs to it, so that the last of a burst goes out with the others. */
const PATIENCE_BOUND_MS = 30

/** Puts the parts together: the river up to the tape, the delta from it. */
export async function startRelay({ config, upstream, log, metrics, failed, ...given }: Parts): Promise<Relay> {
  const clock = given.clock ?? asyncScheduler
  const dice = given.dice ?? Math.random
  const now = () => clock.now()
  const uptime = () => performance.now()
  const say = seldom(log, now)
  const tape = openSqliteTape({
    dir: config.DATA_DIR,
    retentionMs: config.TAPE_RETENTION_MS,
    bound: config.TAPE_BOUND,
    now,
    dice,
  })
  try {
    const chain = identify(config, tape)
    const ports = { chain, now, dice, say }
    const rpc = new Rpc({ urls: upstream.rpcUrls, ...ports })
    const openLink: SourceOptions['link'] =
      upstream.wsUrls.length === 0
        ? null
        : (asked) => link({ ...asked, urls: upstream.wsUrls, chain, clock, dice, say })
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
      dice,
      backlogBoundBytes: config.BACKLOG_BOUND_BYTES,
      clientsBound: config.CLIENTS_BOUND,
      clientsPerAddressBound: config.CLIENTS_PER_ADDRESS_BOUND,
      selectionsBound: config.SELECTIONS_BOUND,
      patienceBoundMs: PATIENCE_BOUND_MS,
      count: {
        came: (carrier) => metrics.listeners.inc({ carrier }),
        went: (carrier) => metrics.listeners.dec({ carrier }),
        shownOut: () => metrics.shownOut.inc(),
      },
    })
    const streams: Streams = {
      house: {
        hub,
        view,
        tape,
        now,
        uptime,
        chainId: () => chain.id,
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
      dice,
      connectionId: randomUUID,
      say,
      admit: admission({ origins: config.ORIGINS, keys: config.API_KEYS }),
      addressOf: (incoming) =>
        addressOf(incoming, config.TRUSTED_PROXIES ?? nobody, () =>
          say('X-Forwarded-For from an address that is not in TRUSTED_PROXIES is not believed', {}),
        ),
    }
    const unready = () => [
      ...(view.tokens.length === 0 ? ['no list has been read yet'] : []),
      ...(view.source === 'down' ? ['the upstream is down'] : []),
      ...(view.reason === 'stale_head' ? ["the chain's head does not move"] : []),
      ...(hub.draining ? ['stopping'] : []),
    ]
    const asking = openAsking({ config, upstream, view, hub, metrics, uptime, addressOf: streams.addressOf, ...ports })
    const status = await Status.open(streams.house, asking.lines)
    const app = openApp({
      streams,
      posts: asking.posts,
      listCaching: `${config.API_KEYS ? 'private' : 'public'}, max-age=${Math.ceil(config.STOCKS_REFRESH_MS / 1_000)}`,
      metrics: metrics.text,
      metricsToken: config.METRICS_TOKEN,
      unready,
      status: () => status.read(),
    })
    const server = await listen(
      app,
      { streams, lines: asking.lines },
      {
        host: config.HOST,
        port: config.PORT,
        clientsBound: config.CLIENTS_BOUND,
      },
    )
    const beats = setInterval(() => void asking.lines.beat(), config.HEARTBEAT_MS)
    const hearts = setInterval(() => void hub.beat(), BEAT_EVERY_MS)
    const watches = setInterval(() => void status.keep().catch(failed), WATCH_EVERY_MS)
    status.begin().catch(failed)
    const listed = new Promise<void>((resolve) => {
      const look = () => {
        if (view.tokens.length === 0) return
        unfollow()
        resolve()
      }
      const unfollow = tape.follow(look)
      look()
    })
    const ingest = await openIngest({
      tape,
      ask: rpc.ask,
      link: openLink,
      overhear: asking.hear,
      lists: (known) =>
        lists({
          fetch: fetchList(upstream.stocksUrl),
          refreshMs: config.STOCKS_REFRESH_MS,
          known,
          clock,
          dice,
          say,
          unreadable: (n) => metrics.upstreamUnreadable.inc(n),
        }),
      clock,
      turn: asapScheduler,
      settings: { ...settings, staleMs: config.NAV_STALE_MS, feeds: upstream.feeds },
      say,
      count: {
        repeated: () => metrics.logsRepeated.inc(),
        foreign: () => metrics.logsForeign.inc(),
        unreadable: (n) => {
          metrics.upstreamUnreadable.inc(n)
          say('upstream logs or messages unreadable', { count: n })
        },
      },
    })
    const flow = ingest.subscribe({
      next: (entries) => {
        for (const { update } of entries) metrics.updates.inc({ type: update.type })
        if (chain.id !== null && tape.note(noteNames.chain) !== chain.id) {
          tape.append([], new Map([[noteNames.chain, chain.id]])).catch(failed)
        }
      },
      error: failed,
    })
    // What is no business of ours must not rest an endpoint that answers what is.
    const foreignRpc = new Rpc({ urls: upstream.rpcUrls, ...ports, blames: ({ kind }) => kind === 'wrong_chain' })
    flow.add(
      asking.foreign
        ?.heard((addresses, owed) =>
          source({ ...settings, ask: foreignRpc.ask, link: openLink, addresses, owed, ...anew, clock, say }),
        )
        .subscribe({ next: (heard) => asking.foreign?.wire.hear(heard), error: failed }),
    )
    const stop = async () => {
      hub.drain()
      asking.lines.drain()
      flow.unsubscribe()
      await server.close(config.DRAIN_MS)
      clearInterval(hearts)
      clearInterval(beats)
      clearInterval(watches)
      hub.close()
      await status.close().finally(() => tape.close())
    }
    let stopping: Promise<void> | null = null
    return {
      port: server.port,
      listed,
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

/** What was heard of the chain before nobody remembers. */
const anew = { cursor: null, head: { pending: null, sealed: null, safe: null, finalized: null } }

/** Which chain this tape is of. One tape never holds two chains: their positions and keys would mean nothing. */
function identify(config: Config, tape: Tape): ChainIdentity {
  const taped = tape.note(noteNames.chain)
  if (typeof taped !== 'number') return new ChainIdentity(config.CHAIN_ID ?? null, 'CHAIN_ID')
  if (config.CHAIN_ID !== undefined && config.CHAIN_ID !== taped) {
    throw new TapeError(
      `DATA_DIR ${config.DATA_DIR} holds the tape of chain ${taped}, CHAIN_ID says ${config.CHAIN_ID}: name another folder`,
    )
  }
  return new ChainIdentity(taped, `the tape in DATA_DIR ${config.DATA_DIR}`)
}
