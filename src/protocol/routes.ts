import type { z } from 'zod'
import { BarsOfOneQuery, BarsQuery } from './bars/bars-query.ts'
import { ChartQuery, MarksQuery, SearchQuery, SymbolQuery } from './bars/udf.ts'
import { EventsQuery } from './history.ts'
import { SnapshotQuery, StreamQuery } from './parameters/selection.ts'

type RouteDefinition = {
  readonly method: 'get' | 'post'
  /** `{name}` stands for one part of the path. */
  readonly path: string
  readonly query?: z.ZodObject
  /** Advice in the refusal of another method. Without it, the relay advises GET. */
  readonly otherMethods?: string
}

/** All routes, in the order in which a new user needs them. Handlers, 405 answers and documents are derived from this table. */
const table = {
  tail: { method: 'get', path: '/v1/tail/{symbol}', query: StreamQuery.omit({ symbols: true, format: true, events: true }) },
  streamOne: { method: 'get', path: '/v1/stream/{symbol}', query: StreamQuery.omit({ symbols: true }) },
  stream: { method: 'get', path: '/v1/stream', query: StreamQuery },
  socket: { method: 'get', path: '/v1/ws', query: StreamQuery.omit({ format: true, events: true }) },
  events: { method: 'get', path: '/v1/events', query: EventsQuery },
  fact: { method: 'get', path: '/v1/events/{key}' },
  barsOfOne: { method: 'get', path: '/v1/bars/{symbol}', query: BarsOfOneQuery },
  bars: { method: 'get', path: '/v1/bars', query: BarsQuery },
  udfConfig: { method: 'get', path: '/udf/config' },
  udfTime: { method: 'get', path: '/udf/time' },
  udfSymbols: { method: 'get', path: '/udf/symbols', query: SymbolQuery },
  udfSearch: { method: 'get', path: '/udf/search', query: SearchQuery },
  udfHistory: { method: 'get', path: '/udf/history', query: ChartQuery },
  udfMarks: { method: 'get', path: '/udf/marks', query: MarksQuery },
  udfTimescaleMarks: { method: 'get', path: '/udf/timescale_marks', query: MarksQuery },
  snapshot: { method: 'get', path: '/v1/snapshot', query: SnapshotQuery },
  tokens: { method: 'get', path: '/v1/tokenized-stocks' },
  token: { method: 'get', path: '/v1/tokenized-stocks/{selector}' },
  accessToken: { method: 'post', path: '/v1/token', otherMethods: 'use POST with the key as a bearer token.' },
  rpc: {
    ...{ method: 'post', path: '/rpc' },
    otherMethods: 'use POST with a JSON-RPC body, or connect with ws:// for subscriptions.',
  },
  status: { method: 'get', path: '/v1/status' },
  health: { method: 'get', path: '/healthz' },
  ready: { method: 'get', path: '/readyz' },
  metrics: { method: 'get', path: '/metrics' },
  home: { method: 'get', path: '/' },
  embed: { method: 'get', path: '/embed/{symbol}' },
  schema: { method: 'get', path: '/schemas/{type}.json' },
  openapi: { method: 'get', path: '/openapi.json' },
  asyncapi: { method: 'get', path: '/asyncapi.json' },
  docs: { method: 'get', path: '/docs' },
  llms: { method: 'get', path: '/llms.txt' },
  types: { method: 'get', path: '/types.ts' },
  contract: { method: 'get', path: '/docs/contract' },
  charts: { method: 'get', path: '/docs/charts' },
  chartLibrary: { method: 'get', path: '/docs/lightweight-charts.js' },
} as const satisfies Readonly<Record<string, RouteDefinition>>

/** Name of a route, and of its operation in the OpenAPI document. */
export type RouteId = keyof typeof table

export const routes: Readonly<Record<RouteId, RouteDefinition>> = table
export const routeIds = Object.keys(table) as readonly RouteId[]

export const quickStartLines = (host: string, symbol: string): readonly string[] => [
  `curl -N http://${host}/v1/tail/${symbol}`,
  `npx wscat -c 'ws://${host}/v1/ws?symbols=${symbol}'`,
  `new EventSource('http://${host}/v1/stream/${symbol}').onmessage = (message) => console.log(JSON.parse(message.data))`,
]
