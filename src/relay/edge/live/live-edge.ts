import { randomUUID } from 'node:crypto'
import type { IncomingMessage } from 'node:http'
import { BlockList } from 'node:net'
import { isWithin, type RecurringWindow } from '../../../lib/recurring-window.ts'
import { version } from '../../../lib/version.ts'
import { closeCodeOf } from '../../../protocol/close-codes.ts'
import type { Config } from '../../config/config.ts'
import { type KeyLimits, randomTokenSecret } from '../../config/key-settings.ts'
import type { Metrics } from '../../metrics.ts'
import { KeyRing } from '../limits/api-key-ring.ts'
import { createAuthorizer, givenKeyOf } from '../limits/authorizer.ts'
import { clientAddressOf } from '../limits/client-address.ts'
import type { SharedUsage } from '../limits/shared-usage.ts'
import { View } from '../select/state-view.ts'
import { countDeliveries } from './delivery-times.ts'
import type { EdgeContext, StreamServices } from './edge-context.ts'
import { Hub } from './hub.ts'
import { openReadiness } from './readiness.ts'

/** How often the hub checks whose heartbeat is due. */
const HEARTBEAT_CHECK_MS = 250
/** Interval between checks whether an absence has begun or ended. */
const ABSENCE_CHECK_MS = 100
/** The longest that an update waits to share one write with those that follow it: a burst comes in a few reads. */
const BATCH_DELAY_BOUND_MS = 10
/** Where no proxy is trusted, the address of a client is that of its socket. */
const noTrustedProxies = new BlockList()

type LiveInputs = {
  readonly config: Config
  readonly tape: EdgeContext['tape']
  /** Whether the tape lacks what happens now. */
  readonly isCut: () => boolean
  /** The chain, once its id is known. */
  readonly chain: { readonly id: number | null; readonly isWrong: (urls: readonly string[]) => boolean }
  readonly metrics: Metrics
  readonly sharedUsage?: SharedUsage | null
  readonly now: () => number
  readonly wallTime: () => number
  readonly uptime: () => number
  readonly random: () => number
  readonly warn: (kind: string, detail: unknown) => void
}

/** The hub with its heartbeats, and what every stream needs. */
export function openLiveEdge(inputs: LiveInputs) {
  const { config, tape, isCut, random, warn } = inputs
  const view = new View(tape, isCut)
  const revocations: ((clients: ReadonlySet<string>) => void)[] = []
  const keys = openKeys(inputs, (clients) => {
    for (const revoke of revocations) revoke(clients)
  })
  const limitsOf = (client: string) => keys?.limitsOf(client)
  const hub = openHub(inputs, view, limitsOf)
  revocations.push((clients) => hub.disconnectAll(clients))
  const streams: StreamServices = {
    edge: openContext(inputs, view, hub),
    random,
    createConnectionId: randomUUID,
    compression: config.edge.compression,
    warn,
    countRefusal: (code) => inputs.metrics.refusals.inc({ code }),
    authorize: createAuthorizer({ origins: config.edge.origins, keys }),
    keys,
    clientAddressOf: (incoming) =>
      keyClientOf(incoming, keys) ??
      clientAddressOf(incoming, config.edge.trustedProxies ?? noTrustedProxies, () =>
        warn('X-Forwarded-For from an address that is not in TRUSTED_PROXIES is not believed', {}),
      ),
  }
  const { isWrongChain } = streams.edge
  let isStopping = false
  const readiness = openReadiness({ tape, view, now: inputs.now, isWrongChain, isStopping: () => isStopping || hub.isDraining })
  const absence = config.process.faults?.gap
  const stopAbsences = absence ? runAbsences(absence, inputs.wallTime, (isAway) => setAway(hub, isAway)) : () => {}
  const heartbeatTimer = setInterval(() => void hub.sendHeartbeats(), HEARTBEAT_CHECK_MS)
  return {
    streams,
    view,
    connections: hub.connectionLimits,
    addressOf: streams.clientAddressOf,
    limitsOf,
    /** Calls back with the clients whose keys are gone. */
    onRevoked: (revoke: (clients: ReadonlySet<string>) => void) => void revocations.push(revoke),
    /** Resolves when the first list has been read, so that symbols can be named. */
    whenListed: whenListed(tape, view),
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

/**
 * A fault on request: from time to time the relay disconnects its clients and is away, but not right after its start.
 * Returns the function that stops it.
 */
function runAbsences(window: RecurringWindow, wallTime: () => number, setAway: (isAway: boolean) => void): () => void {
  let hasBeenPresent = false
  const timer = setInterval(() => {
    const isDue = isWithin(window, wallTime())
    hasBeenPresent ||= !isDue
    setAway(isDue && hasBeenPresent)
  }, ABSENCE_CHECK_MS)
  return () => clearInterval(timer)
}

const setAway = (hub: Hub, isAway: boolean): void => {
  if (isAway === hub.isDraining) return
  isAway ? hub.drain() : hub.reopen()
}

function openKeys({ config, wallTime, warn }: LiveInputs, onRevoked: (clients: ReadonlySet<string>) => void): KeyRing | null {
  const { apiKeys = [], apiKeysFile, tokenSecret = randomTokenSecret() } = config.edge
  if (apiKeys.length === 0 && apiKeysFile === undefined) return null
  return new KeyRing({ apiKeys, apiKeysFile, tokenSecret, wallTime, warn, onRevoked })
}

/** The client that the key of a request stands for; null without a valid one. */
function keyClientOf(incoming: IncomingMessage, keys: KeyRing | null): string | null {
  if (!keys) return null
  const key = givenKeyOf(incoming, URL.parse(incoming.url ?? '', 'http://localhost')?.searchParams ?? new URLSearchParams())
  return key === null ? null : keys.clientOf(key)
}

const openHub = (
  { config, metrics, tape, wallTime, uptime, random, sharedUsage = null }: LiveInputs,
  view: View,
  limitsOf: (client: string) => KeyLimits | undefined,
): Hub => {
  const { maxBacklogBytes, backlogPatienceMs, maxClients, maxClientsPerAddress, maxSelections } = config.edge
  return new Hub({
    ...{ maxBacklogBytes, backlogPatienceMs, maxClients, maxClientsPerAddress, maxSelections },
    ...{ tape, view, wallTime, uptime, random, sharedUsage, workers: config.process.workers, limitsOf },
    batchDelayBoundMs: BATCH_DELAY_BOUND_MS,
    counters: {
      connected: (transport) => metrics.listeners.inc({ transport }),
      disconnected: (transport, reason) => metrics.countDisconnect(transport, reason, closeCodeOf(reason)),
      refused: (transport, reason) => metrics.disconnects.inc({ transport, reason, code: closeCodeOf(reason) }),
      gap: (reason) => metrics.gaps.inc({ reason }),
      delivered: countDeliveries(metrics.deliverySeconds, wallTime),
      held: (bytes) => metrics.heldBytes.set(bytes),
    },
  })
}

const openContext = ({ config, tape, now, wallTime, uptime, chain }: LiveInputs, view: View, hub: Hub): EdgeContext => ({
  heartbeatMs: config.edge.heartbeatMs,
  maxSelections: config.edge.maxSelections,
  maxReplay: config.edge.maxReplay,
  maxBacklogBytes: config.edge.maxBacklogBytes,
  ...{ hub, view, tape, now, wallTime, uptime },
  chainId: () => chain.id,
  isWrongChain: () => chain.isWrong(config.chain.upstreamRpcUrl),
  demo: config.chain.isBuiltIn,
  server: `stocktape/${version}`,
  navStaleAfterMs: config.tokens.navStaleAfterMs,
  tapeRetentionMs: config.tape.tapeRetentionMs,
})

const whenListed = (tape: Pick<EdgeContext['tape'], 'follow'>, view: View): Promise<void> =>
  new Promise((resolve) => {
    const check = () => {
      if (!view.hasTokens) return
      unfollow()
      resolve()
    }
    const unfollow = tape.follow(check)
    check()
  })
