import { performance } from 'node:perf_hooks'
import { type Observable, Subscription } from 'rxjs'
import { sourceSettingsOf } from './chain/source/source-settings.ts'
import type { Config, UpstreamEndpoints } from './config.ts'
import { type ConfiguredTape, openConfiguredTape } from './configured-tape.ts'
import { openHttpEdge } from './edge/http/http-edge.ts'
import { openLiveEdge } from './edge/live/live-edge.ts'
import { openStatus } from './edge/status/status-service.ts'
import { openGateway } from './gateway/gateway.ts'
import { openConfiguredIngest } from './ingest/configured-ingest.ts'
import { openStandby, whileLeading } from './ingest/standby.ts'
import { openTapeChain } from './ingest/tape-chain.ts'
import { type Logger, rateLimitedWarn } from './log.ts'
import type { Metrics } from './metrics.ts'
import { openSteadyClock, schedulerOn } from './steady-clock.ts'

type Warn = ReturnType<typeof rateLimitedWarn>

export type RelayOptions = {
  readonly config: Config
  readonly endpoints: UpstreamEndpoints
  readonly log: Logger
  readonly metrics: Metrics
  /** Opens the parts that a relay can do without. */
  readonly openParts?: readonly (typeof openGateway)[]
  /** Called when the relay cannot go on. */
  readonly onFailure: (failure: unknown) => void
}

/** A running relay. `whenListed` resolves when the first list has been read, so that symbols can be named. */
export type Relay = { readonly port: number; readonly whenListed: Promise<void>; stop(): Promise<void> }

const uptime = () => performance.now()
const now = openSteadyClock(Date.now, uptime)
/** `wallTime` is for what shows a time; everything that measures one asks `now` or `clock`. */
const ports = { clock: schedulerOn(now), now, wallTime: Date.now, uptime, random: Math.random }

/** Opens a relay. It calls `reopen` where its tape has to be opened anew, and the relay with it. */
export async function openRelay(options: RelayOptions & { readonly reopen: (why: string) => void }): Promise<Relay> {
  const warn = rateLimitedWarn(options.log, now)
  const opened = await openConfiguredTape({ ...options, onReset: options.reopen, warn, ...ports })
  try {
    return await openParts(opened, warn, options)
  } catch (failure) {
    await opened.tape.close()
    throw failure
  }
}

/** Wires the parts: the ingest writes the tape, everything else reads it. */
async function openParts(
  { tape, leadership, peers, isCut }: ConfiguredTape,
  warn: Warn,
  { openParts = [openGateway], ...options }: RelayOptions,
): Promise<Relay> {
  const chain = openTapeChain(tape, options)
  const context = { ...options, ...ports, tape, isCut, peers, chain, warn }
  const sourceSettings = sourceSettingsOf(context)
  const live = openLiveEdge(context)
  const parts = openParts.map((open) => open({ ...context, ...live, sourceSettings }))
  const clientCount = () => parts.reduce((sum, part) => sum + part.clientCount(), 0)
  const status = await openStatus(live.streams.edge, clientCount, options.onFailure)
  const server = await openHttpEdge({ ...context, ...live, parts, status: status.read })
  const onChainEvent: (typeof parts)[number]['onChainEvent'] = (event) => {
    for (const part of parts) part.onChainEvent(event)
  }
  const inputs = { ...context, sourceSettings, onChainEvent }
  const openIngest = () => openConfiguredIngest(inputs)
  const ingest = leadership ? whileLeading(leadership, openIngest, openStandby(inputs)) : await openIngest()
  const subscription = new Subscription()
  const activities: readonly Observable<unknown>[] = [ingest, ...parts.map(({ activity }) => activity)]
  for (const activity of activities) subscription.add(activity.subscribe({ error: options.onFailure }))
  const stop = async () => {
    for (const { drain } of [live, ...parts]) drain()
    subscription.unsubscribe()
    await server.close(options.config.DRAIN_MS)
    for (const { close } of [live, ...parts]) close()
    await status.close().finally(() => tape.close())
  }
  let stopping: Promise<void> | undefined
  return { port: server.port, whenListed: live.whenListed, stop: () => (stopping ??= stop()) }
}
