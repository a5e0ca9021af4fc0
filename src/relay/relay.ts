import { performance } from 'node:perf_hooks'
import { type Observable, Subscription, tap } from 'rxjs'
import { openSteadyClock, schedulerOn } from '../lib/steady-clock.ts'
import { nextTurn } from '../lib/turns.ts'
import { EndpointPool } from './chain/rpc/endpoint-pool.ts'
import type { ChainEvent } from './chain/source/source.ts'
import { sourceSettingsOf } from './chain/source/source-settings.ts'
import type { Config } from './config/config.ts'
import type { LoadDocuments } from './edge/http/documents-handler.ts'
import { openHttpEdge } from './edge/http/http-app.ts'
import type { SharedUsage } from './edge/limits/shared-usage.ts'
import { openLiveEdge } from './edge/live/live-edge.ts'
import { measureState } from './edge/status/gauges.ts'
import { openStatus } from './edge/status/status-service.ts'
import { openGateway } from './gateway/gateway.ts'
import { openIngest } from './ingest/ingest.ts'
import { openStandby, whileLeading } from './ingest/standby.ts'
import { appendWithChain, openTapeChain } from './ingest/tape-chain.ts'
import { type Logger, rateLimitedWarn } from './logger.ts'
import { openCalendar } from './market/calendar.ts'
import type { Metrics } from './metrics.ts'
import { openTape, type RelayTape } from './tape/open-tape.ts'
import { fetchList, pollList } from './tokens/list/list-poller.ts'

/**
 * Opens the parts of a relay, each after those that it needs, and closes them the other way round:
 * 1. the tape, in a file or in a stream of NATS;
 * 2. what reads the tape for clients: hub, gateway, status, and the port;
 * 3. what writes it: the ingest, or a standby where another process writes.
 * Then it subscribes to all that runs. This is the only place that does.
 */

export type RelayOptions = {
  readonly config: Config
  readonly log: Logger
  readonly metrics: Metrics
  readonly loadDocuments: LoadDocuments
  /** Opens the parts that a relay can do without. */
  readonly openParts?: readonly (typeof openGateway)[]
  /** Called when the relay cannot go on. */
  readonly onFailure: (failure: unknown) => void
}

/** Called where the tape has to be opened anew, and with it all that uses it. */
type Reopening = { readonly reopen: (why: string) => void }

/** A running relay. `whenListed` resolves when the first list has been read, so that symbols can be named. */
export type Relay = {
  readonly port: number
  readonly whenListed: Promise<void>
  /** From now on it is unready, and goes on. */
  announceStop(): void
  stop(): Promise<void>
}

const uptime = () => performance.now()
const now = openSteadyClock(Date.now, uptime)
/** `wallTime` is for what shows a time; everything that measures one asks `now` or `clock`. */
const ports = { clock: schedulerOn(now), now, wallTime: Date.now, uptime, random: Math.random }
/** The clocks of a tape that is opened without a relay. */
export const tapePorts = { now, wallTime: ports.wallTime, random: ports.random }

/** Starts a relay. If its tape must be opened again, the relay closes and opens on the same port, and clients reconnect. */
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
  const reopen = async (why: string): Promise<void> => {
    if (isStopped) return
    options.log.warn({ why }, 'the tape does not continue: the relay opens it anew')
    await relay.stop()
    relay = await open(relay.port)
    // A stop that came meanwhile has stopped the relay before.
    if (isStopped) await relay.stop()
  }
  let relay = await open(options.config.process.port)
  const { port, whenListed } = relay
  return {
    ...{ port, whenListed },
    announceStop: () => relay.announceStop(),
    stop: async () => {
      isStopped = true
      await relay.stop()
      await reopening
    },
  }
}

/** One process does all: the ingest writes the tape, everything else reads it. */
async function openRelay(options: RelayOptions & Reopening): Promise<Relay> {
  const opened = await openTapeOf(options)
  return orCloseTape(opened, async () => {
    const context = contextOf(options, opened)
    const serving = await openServing(context)
    const writing = await openWriting(context, serving.onChainEvent)
    return serving.run([writing])
  })
}

/** Only writes the tape, for other processes of this machine that serve it. */
export async function openWriter(options: RelayOptions & Reopening & { readonly onChainEvent: (event: ChainEvent) => void }) {
  const opened = await openTapeOf(options)
  return orCloseTape(opened, async () => {
    const writing = await openWriting(contextOf(options, opened), options.onChainEvent)
    const subscription = run([writing], options)
    const stop = async () => {
      subscription.unsubscribe()
      await opened.tape.close()
    }
    return { ...opened, stop: once(stop) }
  })
}

/** Only serves a tape that another process writes. */
export async function openServer(
  options: RelayOptions & { readonly sharedUsage: SharedUsage },
  opened: RelayTape,
  chainEvents: Observable<ChainEvent>,
): Promise<Relay> {
  const serving = await openServing(contextOf(options, opened))
  return serving.run([chainEvents.pipe(tap(serving.onChainEvent))])
}

const openTapeOf = (options: RelayOptions & Reopening): Promise<RelayTape> =>
  openTape({ ...options, ...ports, onReset: options.reopen, warn: rateLimitedWarn(options.log, now) })

function contextOf<Options extends RelayOptions>(options: Options, opened: RelayTape) {
  const warn = rateLimitedWarn(options.log, now)
  const context = { ...options, ...ports, ...opened, warn, chain: openTapeChain(opened.tape, options) }
  const onLoss = (endpoint: string) => options.metrics.upstreamSocketLosses.inc({ endpoint })
  return { ...context, sourceSettings: sourceSettingsOf({ ...context, config: options.config.chain, onLoss }) }
}

type RelayContext = ReturnType<typeof contextOf<RelayOptions>>

/** Opens all that reads the tape for clients: the hub, the gateway, the status and the port. */
async function openServing({ openParts = [openGateway], ...context }: RelayContext) {
  const live = openLiveEdge(context)
  const parts = openParts.map((open) => open({ ...context, ...live }))
  live.onRevoked((clients) => {
    for (const part of parts) part.disconnect(clients)
  })
  const clientCount = () => parts.reduce((sum, part) => sum + part.clientCount(), 0)
  measureState(context.metrics, live.streams.edge)
  const status = await openStatus(live.streams.edge, clientCount, context.onFailure)
  const server = await openHttpEdge({ ...context, ...live, parts, status: status.read })
  const close = async () => {
    await server.close(context.config.process.drainMs)
    for (const { close } of [live, ...parts]) close()
    await status.close()
  }
  return {
    /** Takes every chain event. */
    onChainEvent: (event: ChainEvent) => {
      for (const part of parts) part.onChainEvent(event)
    },
    /** Runs the relay until it is stopped. */
    run: (activities: readonly Observable<unknown>[]): Relay => {
      const subscription = run(activities, context)
      const stop = async () => {
        // Every client is sent its position.
        for (const { drain } of [live, ...parts]) drain()
        subscription.unsubscribe()
        await close().finally(() => context.tape.close())
      }
      return { port: server.port, whenListed: live.whenListed, announceStop: live.announceStop, stop: once(stop) }
    },
  }
}

/** The ingest; where others may write the tape, only while this process leads. */
async function openWriting(context: RelayContext, onChainEvent: (event: ChainEvent) => void): Promise<Observable<unknown>> {
  const { config, chain, metrics, warn } = context
  // One for the ingest and the standby: it keeps a socket, and what it learned about its endpoints.
  const endpoints = new EndpointPool({
    urls: config.chain.upstreamRpcUrl,
    chain,
    warn,
    ...ports,
    onAnswer: metrics.countUpstreamRequest,
  })
  const openIngestOf = () => openCountedIngest({ ...context, endpoints, onChainEvent })
  if (!context.leadership) return openIngestOf()
  return whileLeading(context.leadership, openIngestOf, openStandby({ ...context, endpoints, onChainEvent }))
}

/** The ingest with the settings of the process, counted in its metrics. */
async function openCountedIngest(
  context: RelayContext & { readonly endpoints: EndpointPool; readonly onChainEvent: (event: ChainEvent) => void },
) {
  const { config, sourceSettings, endpoints, chain, tape, metrics, clock, wallTime, random, warn, peers } = context
  const { request, requestBatch, confirmChain, leaveEndpoint } = endpoints
  const { link, linkCount = 1, ...intervals } = sourceSettings
  const onUnreadable = (count: number) => metrics.upstreamUnreadable.inc(count)
  const calendar = openCalendar(config.tokens.calendar)
  let oldestOpenAt: number | null = null
  metrics.oldestOpenKey.measureBy(() => (oldestOpenAt === null ? 0 : Math.max(0, now() - oldestOpenAt) / 1_000))
  const published = await openIngest({
    ...{ tape, append: appendWithChain(tape, chain), clock, wallTime, warn, onChainEvent: context.onChainEvent },
    ...{ request, requestBatch, confirmChain, leaveEndpoint },
    ...{ link, linkCount, ...(peers && { peerLogs: peers.logs }) },
    lists: (known) =>
      pollList({
        fetch: fetchList(config.tokens.stocksApiUrl),
        stocksRefreshMs: config.tokens.stocksRefreshMs,
        ...{ known, clock, random, warn, onUnreadable },
        onRead: (outcome) => metrics.listReads.inc({ outcome }),
      }),
    // All sockets have been read then.
    tick: nextTurn,
    settings: { ...config.tokens, ...intervals, sessionAt: calendar && ((seconds) => calendar.sessionAt(seconds)) },
    count: ({ repeated, unlisted, unreadable }, openAt) => {
      oldestOpenAt = openAt
      metrics.logsRepeated.inc(repeated)
      metrics.logsUnlisted.inc(unlisted)
      if (unreadable === 0) return
      onUnreadable(unreadable)
      warn('upstream logs or messages unreadable', { count: unreadable })
    },
  })
  return published.pipe(tap(metrics.countPublished))
}

function run(activities: readonly Observable<unknown>[], { onFailure }: Pick<RelayOptions, 'onFailure'>): Subscription {
  const subscription = new Subscription()
  for (const activity of activities) subscription.add(activity.subscribe({ error: onFailure }))
  return subscription
}

async function orCloseTape<Opened>({ tape }: RelayTape, open: () => Promise<Opened>): Promise<Opened> {
  try {
    return await open()
  } catch (failure) {
    await tape.close()
    throw failure
  }
}

const once = (stop: () => Promise<void>): (() => Promise<void>) => {
  let stopping: Promise<void> | undefined
  return () => (stopping ??= stop())
}
