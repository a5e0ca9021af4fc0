import type { Config } from '../../config/config.ts'
import type { Metrics } from '../../metrics.ts'
import type { StreamServices } from '../live/http-stream.ts'
import { onlyIngests } from './refusals.ts'
import { type NodeRoute, openApp } from './routes.ts'
import { type EdgeServer, listen } from './server.ts'
import type { ServiceReports } from './service-handlers.ts'
import type { WebSocketRoute } from './upgrade.ts'

type HttpInputs = Pick<ServiceReports, 'unreadyReasons' | 'status'> & {
  readonly config: Config
  readonly streams: StreamServices
  /** The parts of the relay that serve routes of their own. */
  readonly parts: readonly { readonly routes: readonly NodeRoute[]; readonly webSocketRoutes: readonly WebSocketRoute[] }[]
  readonly metrics: Metrics
}

/** Listens on the port of the process with all routes. */
export function openHttpEdge({ config, streams, parts, metrics, ...reports }: HttpInputs): Promise<EdgeServer> {
  const app = openApp({
    ...reports,
    streams,
    nodeRoutes: parts.flatMap(({ routes }) => routes),
    listCacheControl: `${streams.keys ? 'private' : 'public'}, max-age=${Math.ceil(config.STOCKS_REFRESH_MS / 1_000)}`,
    explorerUrl: config.EXPLORER_URL,
    metrics: metrics.text,
    metricsToken: config.METRICS_TOKEN,
    onlyServiceRoutes: config.ROLE === 'ingest',
  })
  const refusal = config.ROLE === 'ingest' ? onlyIngests : null
  const webSocketRoutes = parts.flatMap((part) => part.webSocketRoutes)
  const address = {
    host: config.HOST,
    port: config.PORT,
    clientsBound: config.CLIENTS_BOUND,
    perAddressBound: () => Math.max(config.CLIENTS_PER_ADDRESS_BOUND, streams.keys?.clientsBound ?? 0),
    trustedProxies: config.TRUSTED_PROXIES,
  }
  return listen(app, { streams, webSocketRoutes, refusal }, address)
}
