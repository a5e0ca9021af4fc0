import { createServer } from 'node:http'
import type { Refusal } from '../../../protocol/refusal.ts'
import { routes } from '../../../protocol/routes.ts'
import { internalError, unknownPath } from '../limits/refusals.ts'
import { refusalHeaders } from '../transport/send-refusal.ts'
import { startListening } from './http-server.ts'

/** Limits of a client that reads metrics, or stops reading them, and of the number of such clients. */
const BOUNDS_MS = { headersTimeout: 5_000, requestTimeout: 5_000, keepAliveTimeout: 60_000, connectionsCheckingInterval: 1_000 }
const CONNECTIONS_BOUND = 32
const UNREAD_BOUND_MS = 30_000

type MetricsPort = { readonly host: string; readonly port: number; readonly text: () => Promise<string> }

/** Serves the metrics, and nothing else, to everybody who reaches the port. It is open until the process ends. */
export async function openMetricsPort({ text, ...address }: MetricsPort): Promise<void> {
  const server = createServer(BOUNDS_MS, ({ method = '', url = '' }, outgoing) => {
    const refuse = ({ code, record }: Refusal) => outgoing.writeHead(code, refusalHeaders).end(JSON.stringify(record))
    const [path = ''] = url.split('?')
    if (!['GET', 'HEAD'].includes(method) || path !== routes.metrics.path) return void refuse(unknownPath(path))
    text().then(
      (body) => outgoing.writeHead(200, { 'content-type': 'text/plain; version=0.0.4; charset=utf-8' }).end(body),
      () => refuse(internalError),
    )
  })
  server.maxConnections = CONNECTIONS_BOUND
  server.timeout = UNREAD_BOUND_MS
  await startListening(server, address, 'METRICS_PORT')
}
