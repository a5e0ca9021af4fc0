import { performance } from 'node:perf_hooks'
import { merge, type Observable, Subscription, tap } from 'rxjs'
import { openSteadyClock, schedulerOn } from '../lib/steady-clock.ts'
import { nextTurn } from '../lib/turns.ts'
import type { Update } from '../protocol/updates.ts'
import { EndpointPool } from './chain/rpc/endpoint-pool.ts'
import { turnsInOrder } from './chain/rpc/limited-requests.ts'
import { sharedSourceOptions } from './chain/source/shared-source-options.ts'
import type { ChainEvent } from './chain/source/source.ts'
import type { Config } from './config/config.ts'
import type { LoadDocuments } from './edge/http/document-handlers.ts'
import { openHttpEdge } from './edge/http/http-app.ts'
import type { SharedUsage } from './edge/limits/shared-usage.ts'
import { openLiveEdge } from './edge/live/live-edge.ts'
import { measureState } from './edge/status/gauges.ts'
import { StatusService } from './edge/status/status-service.ts'
import { openGateway } from './gateway/open-gateway.ts'
import type { Host } from './host.ts'
import { openIngest } from './ingest/open-ingest.ts'
import { PeerLogs } from './ingest/peer-logs.ts'
import { saveTimePerSource } from './ingest/save-time-per-source.ts'
import { openStandby, whileLeading } from './ingest/standby.ts'
import { openTapeChainId, writerWithChainId } from './ingest/tape-chain-id.ts'
import type { WriteLine } from './log-lines.ts'
import { openCalendar } from './market/market-calendar.ts'
import type { Metrics } from './metrics.ts'
import { type OpenedTape, openTape } from './tape/open-tape.ts'
import type { TapeWriter } from './tape/tape.ts'
import { fetchList, pollList } from './tokens/list/list-poller.ts'

/**
 * Opens the parts of a relay, each after those that it needs, and closes them in reverse:
 * 1. the tape, in a file or in a stream of NATS;
 * 2. the readers that serve clients: hub, gateway, status, and the port;
 * 3. the writer: the ingest, or a standby while another process writes.
 * Then it subscribes to everything that runs. No other file of the relay subscribes.
 */

export type RelayOptions = Pick<Host, 'log'> & {
  readonly config: Config
  readonly metrics: Metrics
  readonly loadDocuments: LoadDocuments
  readonly openParts?: readonly (typeof openGateway)[]
  readonly onFailure: (failure: unknown) => void
}

/** `reopen` closes the tape and every part that uses it, and opens them again. */
type Reopening = { readonly reopen: (why: string) => void }

/** A relay that runs. `whenListed` resolves once a token is known, from the tape or from the first token list. */
export type Relay = {
  readonly port: number
  readonly whenListed: Promise<void>
  /** Number of clients that receive a stream now, in all processes of this relay. */
  clientCount(): number
  /** Returns the metrics of all processes that serve the port. */
  readonly metricsText: () => Promise<string>
  /** Makes `/readyz` report unready. The relay continues to serve. */
  announceStop(): void
  stop(): Promise<void>
}

const uptime = () => performance.now()
const now = openSteadyClock(Date.now, uptime)
const ports: Omit<Host, 'log'> = { clock: schedulerOn(now), now, wallTime: Date.now, uptime, random: Math.random }
export const tapePorts = { now, wallTime: ports.wallTime, random: ports.random }

/** Starts a relay. If the tape must be opened again, the relay closes, opens again on the same port, and clients reconnect. */
export async function startRelay(options: RelayOptions): Promise<Relay> {
  let isStopped = false
  let reopening: Promise<unknown> = Promise.resolve()
  const open = (port: number): Promise<Relay> =>
    openRelay({
      ...options,
      config: { ...options.config, process: { ...options.config.process, port } },
      reopen: (why) => {
        reopening = reopening.then(() => reopen(why)).catch(options.onFailure)
      },
    })
  const reopen = async (reason: string): Promise<void> => {
    if (isStopped) return
    options.log('tape_reopened', { reason })
    await relay.stop()
    relay = await open(relay.port)
    // If `stop` was called during the reopening, it stopped only the closed relay.
    if (isStopped) await relay.stop()
  }
  let relay = await open(options.config.process.port)
  const { port, whenListed } = relay
  return {
    ...{ port, whenListed },
    metricsText: options.metrics.text,
    announceStop: () => relay.announceStop(),
    clientCount: () => relay.clientCount(),
    stop: async () => {
      isStopped = true
      await relay.stop()
      await reopening
    },
  }
}

async function openRelay(options: RelayOptions & Reopening): Promise<Relay> {
  const opened = await openTapeOf(options)
  return orCloseTape(opened, async () => {
    const context = contextOf(options, opened)
    const serving = await openServing(context)
    const writing = await openWriting(context, serving.onChainEvent)
    return serving.run([writing])
  })
}

/** Opens a relay that only writes the tape. Other processes of this machine serve it. */
export async function openWriter(options: RelayOptions & Reopening & { readonly onChainEvent: (event: ChainEvent) => void }) {
  const opened = await openTapeOf(options)
  return orCloseTape(opened, async () => {
    const writing = await openWriting(contextOf(options, opened), options.onChainEvent)
    const subscription = run([writing], options)
    const stop = async () => {
      subscription.unsubscribe()
      await opened.close()
    }
    return { ...opened, stop: once(stop) }
  })
}

/** Opens a relay that only serves a tape. Another process writes it. */
export async function openServer(
  options: RelayOptions & { readonly sharedUsage: SharedUsage },
  opened: OpenedTape,
  chainEvents: Observable<ChainEvent>,
): Promise<Relay> {
  const serving = await openServing(contextOf(options, opened))
  return serving.run([chainEvents.pipe(tap(serving.onChainEvent))])
}

const openTapeOf = (options: RelayOptions & Reopening): Promise<OpenedTape> =>
  openTape({ ...options, ...ports, onReset: options.reopen })

function contextOf<Options extends RelayOptions>(options: Options, opened: OpenedTape) {
  const context = { ...options, ...ports, ...opened, chain: openTapeChainId(opened.tape, options) }
  const onLoss = (endpoint: string) => options.metrics.upstreamSocketLosses.inc({ endpoint })
  return { ...context, sourceOptions: sharedSourceOptions({ ...context, config: options.config.chain, onLoss }) }
}

type RelayContext = ReturnType<typeof contextOf<RelayOptions>>

async function openServing({ openParts = [openGateway], ...context }: RelayContext) {
  const live = openLiveEdge(context)
  const parts = openParts.map((open) => open({ ...context, ...live }))
  measureState(context.metrics, live.context)
  const status = await StatusService.open(live.context, context.onFailure)
  const server = await openHttpEdge({ ...context, ...live, parts, status: () => status.read() })
  const close = async () => {
    await server.close(context.config.process.drainMs)
    live.close()
    status.close()
  }
  return {
    onChainEvent: (event: ChainEvent) => {
      for (const part of parts) part.onChainEvent(event)
    },
    run: (activities: readonly Observable<unknown>[]): Relay => {
      const subscription = run(activities, context)
      const stop = async () => {
        live.drain()
        subscription.unsubscribe()
        await close().finally(() => context.close())
      }
      const { whenListed, announceStop, clientCount } = live
      const metricsText = context.metrics.text
      return { port: server.port, whenListed, metricsText, announceStop, clientCount, stop: once(stop) }
    },
  }
}

/** If other processes may write the tape, the ingest runs only while this process leads; without a writer, it never runs. */
async function openWriting(context: RelayContext, onChainEvent: (event: ChainEvent) => void): Promise<Observable<unknown>> {
  const { config, chain, metrics, log, writer, clock } = context
  // The ingest and the standby share the pool, because it keeps a socket open, and its knowledge of the endpoints.
  const endpoints = new EndpointPool({
    urls: config.chain.upstreamRpcUrl,
    chain,
    log,
    ...ports,
    untilItsTurn: turnsInOrder(ports.clock),
    onAnswer: (endpoint, seconds, error) => {
      metrics.countUpstreamRequest(endpoint, seconds, error)
      if (error !== null) log('upstream_request_failed', { endpoint, error, seconds })
    },
  })
  const peers = context.peers && new PeerLogs(context.peers, clock)
  const standby = () => openStandby({ ...context, endpoints, onChainEvent, peers })
  if (!writer) return standby()
  const openWriterOf = () => openCountedIngest({ ...context, writer, endpoints, onChainEvent, peers })
  return context.peers ? whileLeading(context.peers.leadership, openWriterOf, standby()) : openWriterOf()
}

type WritingContext = Omit<RelayContext, 'writer' | 'peers'> & {
  readonly writer: TapeWriter
  readonly endpoints: EndpointPool
  readonly peers: PeerLogs | null
  readonly onChainEvent: (event: ChainEvent) => void
}

async function openCountedIngest(context: WritingContext) {
  const { config, sourceOptions, endpoints, chain, tape, writer, metrics, clock, wallTime, random, log, peers } = context
  const { request, requestBatch, confirmChain, leaveEndpoint } = endpoints
  const { link, linkCount = 1, ...intervals } = sourceOptions
  const onUnreadable = (count: number) => metrics.upstreamUnreadable.inc(count)
  const calendar = openCalendar(config.tokens.calendar)
  let oldestOpenAt: number | null = null
  let isListRead = false
  metrics.oldestOpenKey.measureBy(() => (oldestOpenAt === null ? 0 : Math.max(0, now() - oldestOpenAt) / 1_000))
  const published = await openIngest({
    ...{
      tape,
      writer: writerWithChainId(tape, writer, { chain, isBuiltIn: config.chain.isBuiltIn }),
      clock,
      wallTime,
      log,
      onChainEvent: context.onChainEvent,
    },
    ...{ request, requestBatch, confirmChain, leaveEndpoint },
    ...{ link, linkCount, ...(peers && { peerLogs: peers.logs }) },
    lists: (known) =>
      pollList({
        fetch: fetchList(config.tokens.stocksApiUrl),
        stocksRefreshMs: config.tokens.stocksRefreshMs,
        ...{ known, clock, random, log, onUnreadable },
        onRead: (outcome, tokens) => {
          metrics.listReads.inc({ outcome })
          if (outcome === 'ok' && !isListRead) context.log('list_read', { tokens })
          isListRead ||= outcome === 'ok'
        },
      }),
    // A batch ends at the next turn of the event loop, because Node has then read all sockets.
    tick: nextTurn,
    settings: {
      ...config.tokens,
      ...intervals,
      backfillFirstMs: config.chain.backfillFirstMs,
      sessionAt: calendar && ((seconds) => calendar.sessionAt(seconds)),
    },
    count: ({ repeated, unlisted, unreadable }, openAt) => {
      oldestOpenAt = openAt
      metrics.logsRepeated.inc(repeated)
      metrics.logsUnlisted.inc(unlisted)
      if (unreadable === 0) return
      onUnreadable(unreadable)
      log('swaps_unreadable', { count: unreadable })
    },
    onUnreadable: (count) => {
      onUnreadable(count)
      log('logs_unreadable', { count })
    },
  })
  const counted = published.pipe(tap(metrics.countPublished), tap(openStory(context.log)))
  return merge(counted, saveTimePerSource({ tape, writer, clock, wallTime }))
}

/** Returns a function that logs each change of the source and each hole among the updates that this process publishes. */
function openStory(log: WriteLine): (entries: readonly { readonly update: Update }[]) => void {
  let before: string | null = null
  let wasBehind = false
  return (entries) => {
    for (const { update } of entries) {
      if (update.type === 'hole') log('hole', { blocks: update.blocks, reason: update.reason })
      if (update.type !== 'status') continue
      const { source, reason } = update
      const isBehind = reason === 'behind'
      const back = before === 'down' ? 'source_back' : wasBehind ? 'caught_up' : 'source_changed'
      log(source === 'down' ? 'source_down' : isBehind ? 'behind' : back, { source, reason, before })
      wasBehind = isBehind
      before = source
    }
  }
}

function run(activities: readonly Observable<unknown>[], { onFailure }: Pick<RelayOptions, 'onFailure'>): Subscription {
  const subscription = new Subscription()
  for (const activity of activities) subscription.add(activity.subscribe({ error: onFailure }))
  return subscription
}

async function orCloseTape<Opened>({ close }: OpenedTape, open: () => Promise<Opened>): Promise<Opened> {
  try {
    return await open()
  } catch (failure) {
    await close()
    throw failure
  }
}

const once = (stop: () => Promise<void>): (() => Promise<void>) => {
  let stopping: Promise<void> | undefined
  return () => (stopping ??= stop())
}
