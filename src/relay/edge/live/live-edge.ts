import { randomUUID } from 'node:crypto'
import type { IncomingMessage } from 'node:http'
import { isWithin, type RecurringWindow } from '../../../lib/fault-settings.ts'
import { version } from '../../../lib/version.ts'
import { transports } from '../../../protocol/transports.ts'
import { randomTokenSecret } from '../../config/api-key-settings.ts'
import type { Config } from '../../config/config.ts'
import type { Host } from '../../host.ts'
import type { Metrics } from '../../metrics.ts'
import { demoNote } from '../../notes/published-notes.ts'
import { Clients } from '../clients/clients.ts'
import { ApiKeyRing } from '../limits/api-key-ring.ts'
import { createAuthorizer, givenApiKeyOf } from '../limits/authorizer.ts'
import { clientAddressOf } from '../limits/client-address.ts'
import { apiKeyRequired } from '../limits/refusals.ts'
import type { SharedUsage } from '../limits/shared-usage.ts'
import { CurrentState } from '../select/current-state.ts'
import type { EdgeContext } from './edge-context.ts'
import { Hub } from './hub.ts'
import { openReadiness } from './readiness.ts'

const HEARTBEAT_CHECK_MS = 250
const ABSENCE_CHECK_MS = 100
/** Limit of the time for which an update waits to share one write with later ones: Node receives a burst in a few reads. */
const BATCH_DELAY_BOUND_MS = 10

type LiveInputs = Pick<EdgeContext, 'tape' | 'shared'> &
  Omit<Host, 'clock'> & {
    readonly config: Config
    readonly chain: { readonly id: number | null; readonly isWrong: (urls: readonly string[]) => boolean }
    readonly metrics: Metrics
    readonly sharedUsage?: SharedUsage | null
  }

export function openLiveEdge(inputs: LiveInputs) {
  const { config, chain, tape, shared, wallTime, log } = inputs
  const current = new CurrentState(tape.notes, shared)
  const { apiKeys = [], apiKeysFile, tokenSecret = randomTokenSecret() } = config.edge
  const onRevoked = (revoked: ReadonlySet<string>) => clients.disconnectAll(revoked)
  const needsKeys = apiKeys.length > 0 || apiKeysFile !== undefined
  const keys = needsKeys ? new ApiKeyRing({ apiKeys, apiKeysFile, tokenSecret, wallTime, log, onRevoked }) : null
  /** Whether another machine serves on when this process stops. The workers of one machine stop together. */
  const isOneOfMany = config.process.role === 'edge'
  const clients = new Clients({ ...inputs, ...config.edge, keys, workers: config.process.workers, isOneOfMany })
  const { maxSelections } = config.edge
  const hub = new Hub({ ...inputs, clients, current, maxSelections, batchDelayBoundMs: BATCH_DELAY_BOUND_MS })
  const isWrongChain = () => chain.isWrong(config.chain.upstreamRpcUrl)
  const context: EdgeContext = {
    ...inputs,
    ...config.edge,
    ...{ hub, clients, current, keys, isOneOfMany, isWrongChain },
    chainId: () => chain.id,
    demo: () => config.chain.isBuiltIn || tape.notes.note(demoNote) === true,
    server: `stocktape/${version}`,
    navStaleAfterMs: config.tokens.navStaleAfterMs,
    tapeRetentionMs: config.tape.tapeRetentionMs,
    createConnectionId: randomUUID,
    countRefusal: (code, incoming) => {
      inputs.metrics.refusals.inc({ code })
      if (code !== apiKeyRequired.code && incoming) keys?.countRefusal(keyClientOf(incoming, keys) ?? '')
    },
    authorize: createAuthorizer(config.edge.origins, keys),
    clientAddressOf: (incoming) =>
      keyClientOf(incoming, keys) ?? clientAddressOf(incoming, config.edge.trustedProxies, () => log('untrusted_proxy')),
  }
  let isStopping = false
  const readiness = openReadiness({ ...context, isStopping: () => isStopping || clients.isDraining })
  const absence = config.process.faults?.gap
  const stopAbsences = absence ? runAbsences(absence, wallTime, { hub, clients }) : () => {}
  const heartbeatTimer = setInterval(() => {
    hub.updateBacklogs()
    void clients.sendHeartbeats()
  }, HEARTBEAT_CHECK_MS)
  return {
    context,
    /** Resolves when the first token list has been read, so that symbols can be named. */
    whenListed: whenListed(tape, current),
    clientCount: () => clients.count(transports),
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
function runAbsences(
  window: RecurringWindow,
  wallTime: () => number,
  { hub, clients }: Pick<EdgeContext, 'hub' | 'clients'>,
): () => void {
  let hasBeenPresent = false
  const timer = setInterval(() => {
    const isDue = isWithin(window, wallTime())
    hasBeenPresent ||= !isDue
    const isAway = isDue && hasBeenPresent
    if (isAway !== clients.isDraining) isAway ? hub.drain() : clients.reopen()
  }, ABSENCE_CHECK_MS)
  return () => clearInterval(timer)
}

/** Returns the client of the API key in a request; null if the request has no valid API key. */
function keyClientOf(incoming: IncomingMessage, keys: ApiKeyRing | null): string | null {
  if (!keys) return null
  const key = givenApiKeyOf(incoming, URL.parse(incoming.url ?? '', 'http://localhost')?.searchParams ?? new URLSearchParams())
  return key === null ? null : keys.clientOf(key)
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
