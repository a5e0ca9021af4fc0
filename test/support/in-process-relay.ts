import type { Devnet } from '../../src/devnet/devnet.ts'
import { documents } from '../../src/docs/documents.ts'
import { readConfig } from '../../src/relay/config/config.ts'
import { openMetrics } from '../../src/relay/metrics.ts'
import { startRelay } from '../../src/relay/relay.ts'
import { upstreamOf } from './child-program.ts'

/** A relay in this process, over real sockets, with intervals short enough for tests. */
export type TestRelay = {
  readonly url: string
  readonly wsUrl: string
  /** Resolves when the relay has published its first list. */
  readonly listed: Promise<void>
  stop(): Promise<void>
}
/** The upstream's addresses. */
type Upstream = Pick<Devnet, 'rpcUrl' | 'wsUrl' | 'url'>

/** Listeners in the same process cannot read while the relay publishes a flood, so the backlog bound is raised. */
const MAX_BACKLOG = '64MiB'

/** A relay in the process of a test says nothing: what it does is asserted. */
export const silentLog = (): void => {}

const fastSettings = { PORT: '0', DATA_DIR: ':memory:', MAX_BACKLOG, PENDING_POLL: '20ms', STOCKS_REFRESH: '100ms', DRAIN: '1s' }

/** Starts a relay on a devnet. Resolves when it has published its first list. */
export async function openRelay(devnet: Upstream, settings: Record<string, string> = {}): Promise<TestRelay> {
  const relay = await openRelayBeforeList(devnet, settings)
  await relay.listed
  return relay
}

/** Starts a relay without waiting for its list. */
export async function openRelayBeforeList(devnet: Upstream, settings: Record<string, string> = {}): Promise<TestRelay> {
  const parsed = readConfig([], { ...fastSettings, ...upstreamOf(devnet), ...settings })
  if (parsed.kind !== 'settings') throw new Error(JSON.stringify(parsed))
  const { config } = parsed
  const relay = await startRelay({
    config,
    log: silentLog,
    metrics: openMetrics(),
    loadDocuments: async () => documents,
    onFailure: (failure) => {
      throw failure
    },
  })
  const host = `127.0.0.1:${relay.port}`
  let stopped: Promise<void> | undefined
  const stop = () => {
    stopped ??= relay.stop()
    return stopped
  }
  return { url: `http://${host}`, wsUrl: `ws://${host}/v1/ws`, listed: relay.whenListed, stop }
}
