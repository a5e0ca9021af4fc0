import type { z } from 'zod'
import { BarsPage, StoredBar } from '../protocol/bars/bars-query.ts'
import { examplesOf, statusExample } from '../protocol/contract-examples.ts'
import { EventsPage, OneFact } from '../protocol/history.ts'
import { type RouteId, routeIds, routes } from '../protocol/routes.ts'
import { schemaRegistry } from '../protocol/schema-registry.ts'
import { AccessToken, Health, Readiness, ServiceStatus } from '../protocol/service-status.ts'
import { Snapshots, TokenDetails, TokenList } from '../protocol/token-list.ts'
import { ORIGIN } from './snippets.ts'
import { udfRouteTexts } from './udf-route-texts.ts'

/** Names of headers with their descriptions. */
type HeaderTexts = Readonly<Record<string, string>>

type RouteText = {
  readonly tag: string
  readonly summary: string
  readonly description?: string
  readonly pathParameters?: Readonly<Record<string, { readonly description: string; readonly example: string }>>
  readonly requestHeaders?: HeaderTexts
  readonly body?: Media
  /** The answer with status 200, if the route has one. */
  readonly answer?: string
  readonly content?: Media
  readonly headers?: HeaderTexts
  readonly otherAnswers?: readonly RouteResponse[]
  /** Statuses of the error records that the route may return. */
  readonly refusals?: readonly (keyof typeof refusals)[]
  /** A command to copy. By default it requests the path, with the examples of its parameters. */
  readonly curl?: string
}

export type Media = Readonly<Record<string, { readonly schema: unknown; readonly example?: unknown }>>

type RouteResponse = {
  readonly status: number
  readonly description: string
  readonly content?: Media
  readonly headers?: HeaderTexts
}

export const refusals = {
  400: 'A parameter is not valid; message and details name it.',
  401: 'This relay requires a key.',
  403: 'Forbidden: the origin is not allowed, or the credentials are missing.',
  404: 'Not found; details may suggest close matches.',
  410: 'A position of a tape that no longer exists; details name the oldest position of this tape.',
  426: 'This path requires a WebSocket.',
  429: 'Too many requests or connections from your address; Retry-After says when to retry.',
  503: 'Not available now: no list yet, no room, or stopping; Retry-After says when to retry.',
} as const

export const anyRefusal =
  'On any route: 405 for a method that Allow does not name, 408 and 431 for a request that is too slow or has too many headers, 500 for an internal error.'

export const SCHEMA_REF_PREFIX = '#/components/schemas/'
const message = { $ref: `${SCHEMA_REF_PREFIX}message` }
const exportLine = { anyOf: ['update', 'Receipt'].map((name) => ({ $ref: SCHEMA_REF_PREFIX + name })) }

export const jsonContent = (schema: z.ZodType, example?: unknown): Media => ({
  'application/json': { schema: { $ref: `${SCHEMA_REF_PREFIX}${schemaRegistry.get(schema)?.id}` }, example },
})
const rpcContent = (example?: unknown): Media => ({ 'application/json': { schema: { type: ['object', 'array'] }, example } })
const textContent = { schema: { type: 'string' } }

const [transfer, seal, retract, snapshot] = ['transfer', 'seal', 'retract', 'snapshot'].map((type) => examplesOf(type)[0])
const { type: _type, id: _id, ...tokenState } = snapshot ?? { type: '' }

const symbolParameter = {
  symbol: {
    description: 'A symbol in upper or lower case, an address, or isin:…; several separated by commas, or * for all.',
    example: 'AAPLc',
  },
}

const streamDescription =
  'The stream begins with hello, subscribed, a gap if messages are missing, a snapshot of each token and the replay; after live it sends live messages. Reconnect with the last id, as Last-Event-ID or since, and no message is lost or repeated.'

const resumeHeaders = {
  'Last-Event-ID': 'The last id received, which a browser sends by itself. If it is given, since is ignored.',
}
const etagRequestHeaders = { 'If-None-Match': 'The ETag of the copy that the client has.' }
const notModified: RouteResponse = { status: 304, description: 'Not modified: If-None-Match names the current version.' }

const streamContent = {
  'text/event-stream': { schema: message, example: `id: ${transfer?.id}\ndata: ${JSON.stringify(transfer)}\n\n` },
  'application/x-ndjson': { schema: message, example: `${JSON.stringify(transfer)}\n` },
  'text/plain': textContent,
}
/** Parts of a route's text that are equal for all streams over HTTP. */
const listening = { tag: 'Listen', requestHeaders: resumeHeaders, refusals: [400, 401, 403, 404, 429, 503] } as const
/** Parts of a route's text that are equal for all documents. */
const documentation = { tag: 'Documentation', requestHeaders: etagRequestHeaders, otherAnswers: [notModified] } as const

const [barMessage] = examplesOf('bar')
const storedBar = Object.fromEntries(
  Object.keys(StoredBar.shape).map((name) => [name, name === 'state' ? 'closed' : barMessage?.[name]]),
)

const barsDescription =
  'Bars are made of sealed trades and chain time: a minute without a trade has none. A bar of a reorg or of a late trade has another revision. Longer bars are folds of minutes, and are here once their last minute is over, before only with open=true. The ETag stands for the bars; a range whose bars are all final may be kept for a day.'
const barsAnswer = {
  requestHeaders: etagRequestHeaders,
  answer: 'A page of bars, or lines.',
  content: {
    ...jsonContent(BarsPage, { as_of: barMessage?.id, interval: '1m', bars: [storedBar], next: null }),
    'application/x-ndjson': { schema: { $ref: `${SCHEMA_REF_PREFIX}Bar` }, example: `${JSON.stringify(storedBar)}\n` },
    'text/csv': { schema: { type: 'string' } },
  },
  headers: { ETag: 'The version of the bars.' },
  otherAnswers: [notModified],
}

const routeTexts: Readonly<Record<RouteId, RouteText>> = {
  tail: {
    ...listening,
    summary: 'Readable lines, one per message',
    description: 'For people: the stream as text. Control, escape and bidirectional characters are replaced.',
    pathParameters: symbolParameter,
    answer: 'Lines for as long as the connection lasts.',
    content: { 'text/plain': textContent },
    curl: `curl -N ${ORIGIN}/v1/tail/AAPLc`,
  },
  streamOne: {
    ...listening,
    summary: 'The messages of one token as server-sent events or NDJSON',
    description: streamDescription,
    pathParameters: symbolParameter,
    answer: 'Messages for as long as the connection lasts.',
    content: streamContent,
    curl: `curl -N '${ORIGIN}/v1/stream/AAPLc?format=ndjson'`,
  },
  stream: {
    ...listening,
    summary: 'The messages of several tokens, or of all, as server-sent events or NDJSON',
    description: `${streamDescription} If there is no room, a browser gets 200, a retry and an error, because EventSource never reconnects after another status.`,
    answer: 'Messages for as long as the connection lasts.',
    content: streamContent,
    curl: `curl -N '${ORIGIN}/v1/stream?symbols=*&types=transfer,seal,retract&since=5m'`,
  },
  socket: {
    tag: 'Listen',
    summary: 'The stream over WebSocket; asyncapi.json describes its messages',
    description: `${streamDescription} The query has the same options as a subscribe message; without symbols the relay waits for one.`,
    requestHeaders: resumeHeaders,
    otherAnswers: [
      { status: 101, description: 'The connection is now a WebSocket. A mistake in the query becomes an error message on it.' },
    ],
    refusals: [400, 426, 503],
    curl: `npx wscat -c '${ORIGIN.replace('http', 'ws')}/v1/ws?symbols=AAPLc'`,
  },
  events: {
    tag: 'History',
    summary: 'Past messages, page by page or all at once',
    description:
      'The same objects as the stream, matched by the same rules, with either stage. For the next page, repeat the query and set after to next; with order=desc, set before to next. next is null when there are no more messages. A short or empty page is not necessarily the last. NDJSON returns the whole range instead of a page; it is complete if the answer ends normally.',
    answer: 'A page, or NDJSON lines.',
    content: {
      ...jsonContent(EventsPage, { events: [transfer, retract, seal], next: seal?.id }),
      'application/x-ndjson': { schema: exportLine, example: `${JSON.stringify(transfer)}\n` },
    },
    headers: {
      'X-Kept-Since':
        'The position after which all messages were still stored. A client that continues from an earlier one may have missed messages.',
      'X-Kept-Since-Time': 'The time of the first message after X-Kept-Since; absent if there is none.',
    },
    refusals: [400, 401, 403, 404, 410, 429, 503],
    curl: `curl -s '${ORIGIN}/v1/events?symbols=AAPLc&order=desc&limit=10'\ncurl -s '${ORIGIN}/v1/events?symbols=AAPLc&since=1h&format=ndjson' > AAPLc.ndjson`,
  },
  fact: {
    tag: 'History',
    summary: 'All messages about one on-chain fact',
    description: 'Every stored message about it, oldest first, including the seals that list it, and its current stage.',
    pathParameters: { key: { description: 'The key of a message.', example: String(transfer?.key) } },
    answer: 'Every stored message about it.',
    content: jsonContent(OneFact, { key: transfer?.key, events: [transfer, seal], stage: 'sealed' }),
    refusals: [400, 401, 403, 404],
    curl: `key=$(curl -s '${ORIGIN}/v1/events?types=transfer&limit=1' | grep -o '[0-9]*-0x[0-9a-f]*-[0-9]*' | head -n 1)\ncurl -s "${ORIGIN}/v1/events/$key"`,
  },
  barsOfOne: {
    tag: 'Bars',
    summary: 'Bars of one token: what the trades in its pools make of each minute, hour or day',
    description: barsDescription,
    pathParameters: { symbol: { description: 'A symbol, an address, or isin:…', example: 'AAPLc' } },
    ...barsAnswer,
    refusals: [400, 401, 403, 404, 429, 503],
    curl: `curl -s '${ORIGIN}/v1/bars/AAPLc?interval=5m&since=6h'\ncurl -s '${ORIGIN}/v1/bars/AAPLc?interval=1h&format=csv' > AAPLc.csv`,
  },
  bars: {
    tag: 'Bars',
    summary: 'Bars of several tokens, or of all',
    description: barsDescription,
    ...barsAnswer,
    refusals: [400, 401, 403, 404, 429, 503],
    curl: `curl -s '${ORIGIN}/v1/bars?symbols=AAPLc,TSLAc&interval=1h&since=1d'`,
  },
  ...udfRouteTexts,
  snapshot: {
    tag: 'Tokens',
    summary: 'The state of several tokens, or of all, at one position',
    description:
      'One consistent cut: whole snapshot messages, and the position that they include. Draw them, then listen with since=as_of: nothing is lost or repeated. It is the state of the default stage: with stage=sealed, facts that it shows as pre-confirmed are sent again when they are sealed.',
    answer: 'The snapshots.',
    content: jsonContent(Snapshots, { as_of: snapshot?.as_of, snapshots: [{ ...snapshot, id: snapshot?.as_of }], rejected: [] }),
    refusals: [400, 401, 403, 404, 503],
    curl: `curl -s '${ORIGIN}/v1/snapshot?symbols=AAPLc,TSLAc'`,
  },
  tokens: {
    tag: 'Tokens',
    summary: 'The list of tokenized stocks',
    description: 'Exactly the list answer of the Tokenized Stocks Read API, as last read.',
    requestHeaders: etagRequestHeaders,
    answer: 'The list.',
    content: jsonContent(TokenList, { tokens: [snapshot?.token] }),
    headers: { ETag: 'The version of the list.', Age: 'Seconds since the list was read.' },
    otherAnswers: [notModified],
    refusals: [401, 403, 503],
  },
  token: {
    tag: 'Tokens',
    summary: 'The current state of one token',
    description: 'The fields of a snapshot, and the position of the newest message about the token.',
    pathParameters: { selector: { description: 'A symbol, an address, or isin:…', example: 'AAPLc' } },
    answer: 'The token.',
    content: jsonContent(TokenDetails, { ...tokenState, last: snapshot?.id }),
    refusals: [401, 403, 404, 503],
  },
  accessToken: {
    tag: 'Service',
    summary: 'An access token in place of an API key',
    description:
      'Takes an API key as "Authorization: Bearer …" and returns an access token that opens connections for a minute, as key=… in a URL: a page needs no API key in the URL of its EventSource. Without required API keys the answer is 404.',
    answer: 'The access token, and when it expires.',
    content: jsonContent(AccessToken, {
      token: 't.90d2b0ad92d8a1c4.1795185065.3vJmT0cV2m5Vb1yT0u0vX0T7uJm2cT8pYy1b2m5V3vI',
      expires_at: '2026-11-20T14:31:05.000Z',
    }),
    refusals: [401, 403, 404],
    curl: `curl -s -X POST -H 'authorization: Bearer <key>' ${ORIGIN}/v1/token`,
  },
  rpc: {
    tag: 'JSON-RPC',
    summary: 'JSON-RPC 2.0, as a node answers it',
    description:
      'eth_getBlockByNumber, eth_getLogs, eth_getBlockReceipts, eth_getStorageAt, eth_getTransactionCount, eth_getCode, eth_getBalance, eth_chainId and eth_blockNumber, with pending state. A WebSocket at the same path also has eth_subscribe (pendingLogs, logs, newHeads). A batch holds up to 100 requests.',
    body: rpcContent({ jsonrpc: '2.0', id: 1, method: 'eth_blockNumber', params: [] }),
    answer: 'A JSON-RPC result or error; an array of them for a batch.',
    content: rpcContent({ jsonrpc: '2.0', id: 1, result: '0x31f4394' }),
    otherAnswers: [
      { status: 204, description: 'The request had only notifications.' },
      { status: 403, description: 'The upstream refuses this method, or the origin is not allowed.', content: rpcContent() },
      { status: 413, description: 'The body is too large.', content: rpcContent() },
      { status: 429, description: 'Too many requests from your address: -32005, and Retry-After.', content: rpcContent() },
      { status: 503, description: 'No room now.', content: rpcContent() },
    ],
    refusals: [401],
    curl: `curl -s ${ORIGIN}/rpc -d '{"jsonrpc":"2.0","id":1,"method":"eth_blockNumber","params":[]}'`,
  },
  status: {
    tag: 'Status',
    summary: 'The current source of the feed, and how its pre-confirmations ended',
    answer: 'The status.',
    content: jsonContent(ServiceStatus, statusExample),
    refusals: [401, 403],
  },
  health: {
    tag: 'Status',
    summary: 'Whether the process answers',
    answer: 'The process answers.',
    content: jsonContent(Health, { status: 'ok' }),
  },
  ready: {
    tag: 'Status',
    summary: 'Whether the service is ready',
    answer: 'Ready.',
    content: jsonContent(Readiness, { status: 'ready', reasons: [], demo: false }),
    otherAnswers: [
      {
        status: 503,
        description: 'Not ready, and why.',
        content: jsonContent(Readiness, { status: 'unready', reasons: ['the upstream is down'], demo: false }),
      },
    ],
  },
  metrics: {
    tag: 'Status',
    summary: 'Metrics as Prometheus text',
    description:
      'For this machine only, unless METRICS_TOKEN is set and the request sends it. With METRICS_PORT the metrics are on that port only.',
    answer: 'Metrics.',
    content: { 'text/plain': textContent },
    refusals: [403, 404],
  },
  home: {
    ...documentation,
    summary: 'The board: all symbols and the tape as a page',
    answer: 'The page.',
    content: { 'text/html': textContent },
    otherAnswers: [
      { status: 302, description: 'If the board is not built: the documentation.', headers: { Location: '/docs' } },
      notModified,
    ],
    curl: `curl -sL ${ORIGIN}`,
  },
  embed: {
    ...documentation,
    summary: 'One symbol as a card, for an iframe in any page',
    description: 'The only page that others may put into a frame. `?theme=dark` or `?theme=light` sets its colours.',
    pathParameters: { symbol: { description: 'A symbol of the list.', example: 'AAPLc' } },
    answer: 'The page.',
    content: { 'text/html': textContent },
    otherAnswers: [
      { status: 302, description: 'If the board is not built: the documentation.', headers: { Location: '/docs' } },
      notModified,
    ],
  },
  schema: {
    ...documentation,
    summary: 'The JSON Schema of one message type, or of all',
    pathParameters: {
      type: { description: 'A message type, or message for all that a listener can receive.', example: 'transfer' },
    },
    answer: 'A self-contained schema with examples.',
    content: { 'application/schema+json': { schema: { type: 'object' } } },
    refusals: [404],
  },
  openapi: documentText('This document: OpenAPI 3.1', 'application/json'),
  asyncapi: documentText('Every message and its sender: AsyncAPI 3.0', 'application/json'),
  docs: documentText('Both as a page, with code to copy', 'text/html'),
  llms: documentText('The service for language models', 'text/plain'),
  types: documentText('Every message as a TypeScript type', 'text/plain'),
  contract: documentText('What a client may rely on, in Markdown', 'text/plain'),
  charts: documentText('Candles of a symbol as a page, with the code that draws them', 'text/html'),
  chartLibrary: documentText('The library that draws that page', 'text/javascript'),
}

function documentText(summary: string, type: string): RouteText {
  const schema = { type: type === 'application/json' ? 'object' : 'string' }
  return { ...documentation, summary, answer: summary, content: { [type]: { schema } } }
}

/** Every route with its text, in the order of the table. */
export const describedRoutes = routeIds.map((id) => {
  const { answer, content, headers, otherAnswers = [], refusals = [], ...text } = routeTexts[id]
  const { pathParameters = {} } = text
  const path = routes[id].path.replaceAll(/\{(\w+)\}/g, (_, name) => pathParameters[name]?.example ?? '')
  const answers: readonly RouteResponse[] = answer === undefined ? [] : [{ status: 200, description: answer, content, headers }]
  return { id, ...routes[id], curl: `curl -s ${ORIGIN}${path}`, ...text, responses: [...answers, ...otherAnswers], refusals }
})
export type DescribedRoute = (typeof describedRoutes)[number]
