import type { Config } from '../../config/config.ts'
import type { Metrics } from '../../metrics.ts'
import type { StreamServices } from '../live/edge-context.ts'
import type { LoadDocuments } from './documents-handler.ts'
import { type NodeRoute, openApp } from './http-app.ts'
import { onlyIngests } from './http-refusals.ts'
import { type EdgeServer, listen } from './http-server.ts'
import type { ServiceReports } from './service-handlers.ts'
import type { WebSocketRoute } from './websocket-upgrade.ts'

type HttpInputs = Pick<ServiceReports, 'unreadyReasons' | 'status'> & {
  readonly config: Config
  readonly streams: StreamServices
  readonly parts: readonly { readonly routes: readonly NodeRoute[]; readonly webSocketRoutes: readonly WebSocketRoute[] }[]
  readonly metrics: Metrics
  readonly loadDocuments: LoadDocuments
}

export function openHttpEdge({ config, streams, parts, metrics, ...reports }: HttpInputs): Promise<EdgeServer> {
  const { edge, process: own } = config
  const app = openApp({
    ...reports,
    streams,
    nodeRoutes: parts.flatMap(({ routes }) => routes),
    listCacheControl: `${streams.keys ? 'private' : 'public'}, max-age=${Math.ceil(config.tokens.stocksRefreshMs / 1_000)}`,
    explorerUrl: edge.explorerUrl,
    metrics: metrics.text,
    metricsToken: edge.metricsToken,
    onlyServiceRoutes: own.role === 'ingest',
  })
  const refusal = own.role === 'ingest' ? onlyIngests : null
  const webSocketRoutes = parts.flatMap((part) => part.webSocketRoutes)
  const address = {
    host: own.host,
    port: own.port,
    maxClients: edge.maxClients,
    maxPerAddress: () => Math.max(edge.maxClientsPerAddress, streams.keys?.maxClients ?? 0),
    trustedProxies: edge.trustedProxies,
  }
  return listen(app, { streams, webSocketRoutes, refusal }, address)
}
