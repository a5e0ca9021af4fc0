import { randomUUID } from 'node:crypto'
import type { IncomingMessage } from 'node:http'
import { isWithin, type RecurringWindow } from '../../../lib/fault-settings.ts'
import { version } from '../../../lib/version.ts'
import { closeCodeOf } from '../../../protocol/close-codes.ts'
import { randomTokenSecret } from '../../config/api-key-settings.ts'
import type { Config } from '../../config/config.ts'
import type { WriteLine } from '../../log-lines.ts'
import type { Metrics } from '../../metrics.ts'
import { demoNote } from '../../notes/published-notes.ts'
import type { Entry } from '../../tape/tape.ts'
import { ApiKeyRing } from '../limits/api-key-ring.ts'
import { apiKeyRequired, createAuthorizer, givenApiKeyOf } from '../limits/authorizer.ts'
import { clientAddressOf } from '../limits/client-address.ts'
import { SentTotals } from '../limits/sent-totals.ts'
import type { SharedUsage } from '../limits/shared-usage.ts'
import { CurrentState } from '../select/current-state.ts'
import type { EdgeContext, StreamServices } from './edge-context.ts'
import { Hub } from './hub.ts'
import { openReadiness } from './readiness.ts'

const HEARTBEAT_CHECK_MS = 250
const ABSENCE_CHECK_MS = 100
/** Limit of the time for which an update waits to share one write with later ones: Node receives a burst in a few reads. */
const BATCH_DELAY_BOUND_MS = 10

type LiveInputs = {
  readonly config: Config
  readonly tape: EdgeContext['tape']
  readonly shared: EdgeContext['shared']
  readonly chain: { readonly id: number | null; readonly isWrong: (urls: readonly string[]) => boolean }
  readonly metrics: Metrics
  readonly sharedUsage?: SharedUsage | null
  readonly now: () => number
  readonly wallTime: () => number
  readonly uptime: () => number
  readonly random: () => number
  readonly warn: WriteLine
  readonly log: WriteLine
}

export function openLiveEdge(inputs: LiveInputs) {
  const { config, tape, shared, wallTime, random, warn, log } = inputs
  const current = new CurrentState(tape.notes, shared)
  const revocations: ((clients: ReadonlySet<string>) => void)[] = []
  const { apiKeys = [], apiKeysFile, tokenSecret = randomTokenSecret() } = config.edge
  const onRevoked = (clients: ReadonlySet<string>) => {
    for (const revoke of revocations) revoke(clients)
  }
  const needsKeys = apiKeys.length > 0 || apiKeysFile !== undefined
  const keys = needsKeys ? new ApiKeyRing({ apiKeys, apiKeysFile, tokenSecret, wallTime, log, onRevoked }) : null
  const sentTotals = new SentTotals(keys)
  const hub = openHub(inputs, current, { keys, sentTotals })
  revocations.push((clients) => hub.disconnectAll(clients))
  const streams: StreamServices = {
    edge: openContext(inputs, current, hub),
    random,
    createConnectionId: randomUUID,
    compression: config.edge.compression,
    warn,
    countRefusal: (code, incoming) => {
      inputs.metrics.refusals.inc({ code })
      if (code !== apiKeyRequired.code && incoming) keys?.countRefusal(keyClientOf(incoming, keys) ?? '')
    },
    authorize: createAuthorizer(config.edge.origins, keys),
    keys,
    clientAddressOf: (incoming) =>
      keyClientOf(incoming, keys) ?? clientAddressOf(incoming, config.edge.trustedProxies, () => warn('untrusted_proxy')),
  }
  const { isWrongChain } = streams.edge
  let isStopping = false
  const readiness = openReadiness({
    tape,
    shared,
    current,
    now: inputs.now,
    isWrongChain,
    isStopping: () => isStopping || hub.isDraining,
  })
  const absence = config.process.faults?.gap
  const stopAbsences = absence ? runAbsences(absence, wallTime, hub) : () => {}
  const heartbeatTimer = setInterval(() => void hub.sendHeartbeats(), HEARTBEAT_CHECK_MS)
  return {
    streams,
    sentTotals,
    current,
    connections: hub.connectionLimits,
    addressOf: streams.clientAddressOf,
    limitsOf: limitsOf(keys),
    /** Calls back with the clients whose API keys were removed. */
    onRevoked: (revoke: (clients: ReadonlySet<string>) => void) => void revocations.push(revoke),
    /** Resolves when the first token list has been read, so that symbols can be named. */
    whenListed: whenListed(tape, current),
    clientCount: () => hub.clientCount,
    unreadyReasons: readiness.reasons,
    announceStop: () => {
      isStopping = true
    },
    drain: () => {
      stopAbsences()
      hub.drain()
    },
    close: () => {
      clearInterval(heartbeatTimer)
      keys?.close()
      readiness.close()
      hub.close()
    },
  }
}

/** Runs the fault `gap`: disconnects the clients in a recurring window, but not right after the start. Returns a stop function. */
function runAbsences(window: RecurringWindow, wallTime: () => number, hub: Hub): () => void {
  let hasBeenPresent = false
  const timer = setInterval(() => {
    const isDue = isWithin(window, wallTime())
    hasBeenPresent ||= !isDue
    const isAway = isDue && hasBeenPresent
    if (isAway !== hub.isDraining) isAway ? hub.drain() : hub.reopen()
  }, ABSENCE_CHECK_MS)
  return () => clearInterval(timer)
}

/** Returns the client of the API key in a request; null if the request has no valid API key. */
function keyClientOf(incoming: IncomingMessage, keys: ApiKeyRing | null): string | null {
  if (!keys) return null
  const key = givenApiKeyOf(incoming, URL.parse(incoming.url ?? '', 'http://localhost')?.searchParams ?? new URLSearchParams())
  return key === null ? null : keys.clientOf(key)
}

const limitsOf = (keys: ApiKeyRing | null) => (client: string) => keys?.limitsOf(client)

function openHub(
  inputs: LiveInputs,
  current: CurrentState,
  { keys, sentTotals }: { readonly keys: ApiKeyRing | null; readonly sentTotals: SentTotals },
): Hub {
  const { config, metrics, wallTime, log } = inputs
  return new Hub({
    ...inputs,
    ...config.edge,
    current,
    limitsOf: limitsOf(keys),
    workers: config.process.workers,
    isOneOfMany: isOneOfMany(config),
    batchDelayBoundMs: BATCH_DELAY_BOUND_MS,
    counters: {
      connected: (transport) => {
        metrics.listeners.inc({ transport })
        log('client_connected', { transport })
      },
      disconnected: (listener, reason, aliveMs) => {
        const { transport } = listener
        metrics.countDisconnect(transport, reason, closeCodeOf(reason))
        log('client_ended', { transport, reason, alive_ms: Math.round(aliveMs) })
        sentTotals.end(listener)
      },
      refused: ({ transport, address }, reason) => {
        metrics.disconnects.inc({ transport, reason, code: closeCodeOf(reason) })
        keys?.countRefusal(address)
      },
      gap: (reason) => metrics.gaps.inc({ reason }),
      delivered: countDeliveries(metrics.deliverySeconds, wallTime),
      held: (bytes) => metrics.heldBytes.set(bytes),
    },
  })
}

/** Whether another machine serves on when this process stops. The workers of one machine stop together. */
const isOneOfMany = (config: Config): boolean => config.process.role === 'edge'

const openContext = (
  { config, tape, shared, now, wallTime, uptime, chain }: LiveInputs,
  current: CurrentState,
  hub: Hub,
): EdgeContext => ({
  heartbeatMs: config.edge.heartbeatMs,
  maxSelections: config.edge.maxSelections,
  maxReplay: config.edge.maxReplay,
  maxBacklogBytes: config.edge.maxBacklogBytes,
  ...{ hub, current, tape, shared, now, wallTime, uptime },
  chainId: () => chain.id,
  isWrongChain: () => chain.isWrong(config.chain.upstreamRpcUrl),
  demo: () => config.chain.isBuiltIn || tape.notes.note(demoNote) === true,
  server: `stocktape/${version}`,
  isOneOfMany: isOneOfMany(config),
  navStaleAfterMs: config.tokens.navStaleAfterMs,
  tapeRetentionMs: config.tape.tapeRetentionMs,
})

/** Measures the time from the receipt of each log to its delivery, by source. Most logs of a batch were received together. */
function countDeliveries(histogram: Metrics['deliverySeconds'], wallTime: () => number): (entries: readonly Entry[]) => void {
  const bySource = new Map<string, ReturnType<typeof histogram.labels>>()
  const histogramOf = (source: string) => {
    const known = bySource.get(source) ?? histogram.labels({ source })
    bySource.set(source, known)
    return known
  }
  return (entries) => {
    const now = wallTime()
    let [lastTime, seconds] = ['', 0]
    for (const { update } of entries) {
      if (!('ingest' in update)) continue
      const { source, received_at } = update.ingest
      if (received_at !== lastTime) [lastTime, seconds] = [received_at, Math.max(0, now - Date.parse(received_at)) / 1_000]
      histogramOf(source).observe(seconds)
    }
  }
}

const whenListed = (tape: Pick<EdgeContext['tape'], 'follow'>, current: CurrentState): Promise<void> =>
  new Promise((resolve) => {
    const check = () => {
      if (!current.hasTokens) return
      unfollow()
      resolve()
    }
    const unfollow = tape.follow(check)
    check()
  })
