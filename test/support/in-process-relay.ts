import { randomUUID } from 'node:crypto'
import { join } from 'node:path'
import { pino } from 'pino'
import type { Devnet } from '../../src/devnet/devnet.ts'
import { documents } from '../../src/docs/documents.ts'
import { readConfig } from '../../src/relay/config/config.ts'
import { openMetrics } from '../../src/relay/metrics.ts'
import { startRelay } from '../../src/relay/relay.ts'

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
export const silentLog = pino({ enabled: false })

const fastSettings = { PORT: '0', DATA_DIR: ':memory:', MAX_BACKLOG, PENDING_POLL: '20ms', STOCKS_REFRESH: '100ms', DRAIN: '1s' }

/** Starts a relay on a devnet. Resolves when it has published its first list. */
export async function openRelay(devnet: Upstream, settings: Record<string, string> = {}): Promise<TestRelay> {
  const relay = await openRelayBeforeList(devnet, settings)
  await relay.listed
  return relay
}

/** Starts a relay without waiting for its list. */
export const openRelayBeforeList = (devnet: Upstream, settings: Record<string, string> = {}): Promise<TestRelay> =>
  isOverNats ? openEdges(devnet, settings) : openOneRelay(devnet, settings)

/** An ingester and two edges that share a tape over NATS. Clients connect to the first edge. */
async function openEdges(devnet: Upstream, settings: Record<string, string>): Promise<TestRelay> {
  const { DATA_DIR: dir, PORT = '0', ...rest } = settings
  const stream = (dir && streams.get(dir)) ?? `T${randomUUID().replaceAll('-', '')}`
  if (dir) streams.set(dir, stream)
  const shared = { ...rest, NATS_URL: process.env.STOCKTAPE_NATS_URL ?? '', NATS_STREAM: stream }
  const open = (ROLE: string, name: string, port = '0') =>
    openOneRelay(devnet, { ...shared, ROLE, PORT: port, ...(dir && dir !== ':memory:' && { DATA_DIR: join(dir, name) }) })
  const ingester = await open('ingest', 'ingester')
  const edges = [await open('edge', 'edge', PORT), await open('edge', 'other-edge')]
  const [edge = ingester] = edges
  const listed = Promise.all([ingester, ...edges].map((one) => one.listed)).then(() => {})
  const stop = async () => {
    for (const one of [...edges, ingester]) await one.stop()
  }
  return { ...edge, listed, stop }
}

/** Whether the journeys run on a tape over NATS. */
const isOverNats = process.env.STOCKTAPE_TAPE === 'nats'
/** The stream of each folder: a relay that comes back to its folder goes on with its stream. */
const streams = new Map<string, string>()

async function openOneRelay(devnet: Upstream, settings: Record<string, string> = {}): Promise<TestRelay> {
  const parsed = readConfig([], {
    ...fastSettings,
    ...(settings.ROLE !== 'edge' && { UPSTREAM_RPC_URL: devnet.rpcUrl, UPSTREAM_WS_URL: devnet.wsUrl, STOCKS_API_URL: devnet.url }),
    ...settings,
  })
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
