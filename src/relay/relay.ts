import { performance } from 'node:perf_hooks'
import { type Observable, Subscription, tap } from 'rxjs'
import { openSteadyClock, schedulerOn } from '../lib/steady-clock.ts'
import { Rpc } from './chain/rpc/client.ts'
import type { ChainEvent } from './chain/source/source.ts'
import { sourceSettingsOf } from './chain/source/source-settings.ts'
import type { Config, UpstreamEndpoints } from './config/config.ts'
import { type ConfiguredTape, openConfiguredTape } from './configured-tape.ts'
import type { SharedUsage } from './edge/limits/shared-usage.ts'
import type { openGateway } from './gateway/gateway.ts'
import { openConfiguredIngest } from './ingest/configured-ingest.ts'
import { openStandby, whileLeading } from './ingest/standby.ts'
import { openTapeChain } from './ingest/tape-chain.ts'
import { type Logger, rateLimitedWarn } from './log.ts'
import type { Metrics } from './metrics.ts'
import { openServing, type Serving } from './serving.ts'

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

/** One process does all: the ingest writes the tape, everything else reads it. */
export async function openRelay(options: RelayOptions & Reopening): Promise<Relay> {
  const opened = await openTape(options)
  return orCloseTape(opened, async () => {
    const context = contextOf(options, opened)
    const serving = await openServing(context)
    const writing = await openWriting(context, serving.onChainEvent)
    const subscription = run([writing, ...serving.activities], options)
    const stop = async () => {
      serving.drain()
      subscription.unsubscribe()
      await serving.close().finally(() => opened.tape.close())
    }
    return { ...pick(serving), stop: once(stop) }
  })
}

/** Only writes the tape, for other processes of this machine that serve it. */
export async function openWriter(options: RelayOptions & Reopening & { readonly onChainEvent: (event: ChainEvent) => void }) {
  const opened = await openTape(options)
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
  opened: ConfiguredTape,
  chainEvents: Observable<ChainEvent>,
): Promise<Relay> {
  const serving = await openServing(contextOf(options, opened))
  const subscription = run([chainEvents.pipe(tap(serving.onChainEvent)), ...serving.activities], options)
  const stop = async () => {
    serving.drain()
    subscription.unsubscribe()
    await serving.close().finally(() => opened.tape.close())
  }
  return { ...pick(serving), stop: once(stop) }
}

/** What an opener of tapes outside of this file needs of the clocks. */
export const tapePorts = { now, wallTime: ports.wallTime, random: ports.random }

const openTape = (options: RelayOptions & Reopening): Promise<ConfiguredTape> =>
  openConfiguredTape({ ...options, ...ports, onReset: options.reopen, warn: rateLimitedWarn(options.log, now) })

function contextOf<Options extends RelayOptions>(options: Options, opened: ConfiguredTape) {
  const warn = rateLimitedWarn(options.log, now)
  const context = { ...options, ...ports, ...opened, warn, chain: openTapeChain(opened.tape, options) }
  const onLoss = (endpoint: string) => options.metrics.upstreamSocketLosses.inc({ endpoint })
  return { ...context, sourceSettings: sourceSettingsOf({ ...context, onLoss }) }
}

/** The ingest; where others may write the tape, only while this process leads. */
async function openWriting(context: ReturnType<typeof contextOf>, onChainEvent: (event: ChainEvent) => void) {
  const { endpoints, chain, warn } = context
  // One for the ingest and the standby: it keeps a socket, and what it learned about its endpoints.
  const rpc = new Rpc({ urls: endpoints.rpcUrls, chain, warn, ...ports, onAnswer: context.metrics.countUpstreamRequest })
  const inputs = { ...context, rpc, onChainEvent }
  const openIngest = () => openConfiguredIngest(inputs)
  return context.leadership ? whileLeading(context.leadership, openIngest, openStandby(inputs)) : openIngest()
}

function run(activities: readonly Observable<unknown>[], { onFailure }: RelayOptions): Subscription {
  const subscription = new Subscription()
  for (const activity of activities) subscription.add(activity.subscribe({ error: onFailure }))
  return subscription
}

async function orCloseTape<Opened>({ tape }: ConfiguredTape, open: () => Promise<Opened>): Promise<Opened> {
  try {
    return await open()
  } catch (failure) {
    await tape.close()
    throw failure
  }
}

const pick = ({ port, whenListed, announceStop }: Serving) => ({ port, whenListed, announceStop })

const once = (stop: () => Promise<void>): (() => Promise<void>) => {
  let stopping: Promise<void> | undefined
  return () => (stopping ??= stop())
}
