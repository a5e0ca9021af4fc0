import type { z } from 'zod'
import { schemaRegistry } from '../protocol/fields.ts'
import { EventsPage, EventsQuery, OneFact } from '../protocol/history.ts'
import { StreamQuery } from '../protocol/selection.ts'
import { Health, Readiness, ServiceStatus } from '../protocol/status.ts'
import { TokenDetails, TokenList } from '../protocol/token-list.ts'
import { examplesOf, statusExample } from './examples.ts'
import { ORIGIN } from './snippets.ts'

/** What one route takes and gives. */
export type Route = {
  readonly method: 'get' | 'post'
  readonly path: string
  readonly id: RouteId
  readonly tag: string
  readonly summary: string
  readonly description?: string
  /** What stands in the path, each with its meaning and one that is there. */
  readonly pathParameters?: Readonly<Record<string, { readonly description: string; readonly example: string }>>
  readonly query?: z.ZodObject
  /** Headers that mean something, each with what. */
  readonly requestHeaders?: Readonly<Record<string, string>>
  readonly body?: Media
  readonly responses: readonly RouteResponse[]
  /** Which refusals there are besides. */
  readonly refusals: readonly (keyof typeof refusals)[]
  /** What a client is advised that uses another method; where nothing is, GET. */
  readonly otherMethods?: string
  /** A line to paste into a shell. */
  readonly curl: string
}

/** Names a route for its handler, and as the operation of the OpenAPI document. */
export type RouteId =
  | 'tail'
  | 'streamOne'
  | 'stream'
  | 'socket'
  | 'events'
  | 'fact'
  | 'tokens'
  | 'token'
  | 'rpc'
  | 'status'
  | 'health'
  | 'ready'
  | 'metrics'
  | 'door'
  | 'schema'
  | 'openapi'
  | 'asyncapi'
  | 'docs'
  | 'llms'

export type Media = Readonly<Record<string, { readonly schema: unknown; readonly example?: unknown }>>

type RouteResponse = {
  readonly status: number
  readonly description: string
  readonly content?: Media
  readonly headers?: Readonly<Record<string, string>>
}

/** Why a request is refused, always with an error record. */
export const refusals = {
  400: 'A parameter cannot be read; message and details name it.',
  401: 'This relay asks for a key.',
  403: 'Not from this place: of another origin, or without what it takes.',
  404: 'There is no such thing; details may suggest what was meant.',
  410: 'A position of a tape that is gone; details name the oldest of this one.',
  426: 'This is a WebSocket.',
  429: 'Too much at once from your address; Retry-After says when to come back.',
  503: 'Not now: no list yet, no room, or about to stop; Retry-After says when to come back.',
} as const

/** What any route may answer beside what is said of it. */
export const anyRefusal =
  'As anywhere: 405 for another method than Allow names, 408 and 431 for a request that is too slow or has too many headers, 500 for a failure on our side.'

/** Where a document of this kind keeps its schemas. */
export const SCHEMA_REF_PREFIX = '#/components/schemas/'
const message = { $ref: `${SCHEMA_REF_PREFIX}message` }
const update = { $ref: `${SCHEMA_REF_PREFIX}update` }

/** An answer as JSON, by the schema that has its name. */
export function jsonContent(schema: z.ZodType, example?: unknown): Media {
  const { id } = schemaRegistry.get(schema) ?? { id: '' }
  return {
    'application/json': { schema: { $ref: SCHEMA_REF_PREFIX + id }, ...(example === undefined ? {} : { example }) },
  }
}
const textContent = { schema: { type: 'string' } }
/** JSON-RPC has a contract of its own. */
const rpcContent = (example?: unknown): Media => ({
  'application/json': { schema: { type: ['object', 'array'] }, ...(example === undefined ? {} : { example }) },
})

const [transfer, seal, retract] = (['transfer', 'seal', 'retract'] as const).map((type) => examplesOf(type)[0])
const [snapshot] = examplesOf('snapshot')
const { type: _type, id: _id, ...tokenState } = snapshot ?? { type: '' }
const record = snapshot?.token

const symbolParameter = {
  symbol: {
    description: 'A symbol in any case, an address, or isin:…; several with commas, * for all.',
    example: 'AAPLc',
  },
}

const streamDescription =
  'First come hello, subscribed, a gap if something is missing, a snapshot of each token and the replay; after live everything is news. Come back with the last id, as Last-Event-ID or since, and nothing is missing and nothing comes twice.'

const resumeHeaders = {
  'Last-Event-ID': 'The last id that was seen, as a browser sends it by itself. It wins over since.',
}
const etagRequestHeaders = { 'If-None-Match': 'The ETag of what is known already.' }
const notModified: RouteResponse = { status: 304, description: 'It is still the one that If-None-Match names.' }
const keptSinceHeader = {
  'X-Kept-Since': 'The position after which nothing was gone: who goes on from before it has missed something.',
}

const streamResponse: RouteResponse = {
  status: 200,
  description: 'Messages for as long as the connection lasts.',
  content: {
    'text/event-stream': {
      schema: message,
      example: `id: ${transfer?.id}\ndata: ${JSON.stringify(transfer)}\n\n`,
    },
    'application/x-ndjson': { schema: message, example: `${JSON.stringify(transfer)}\n` },
    'text/plain': textContent,
  },
}

/** Every route over plain HTTP, in the order in which a newcomer needs them. The handlers and the documents follow it. */
export const routes: readonly Route[] = [
  {
    ...{ method: 'get', path: '/v1/tail/{symbol}', id: 'tail', tag: 'Listen' },
    summary: 'Readable lines, one for each message',
    description: 'For people: the stream as text. Control, escape and bidirectional characters are replaced.',
    pathParameters: symbolParameter,
    query: StreamQuery.omit({ symbols: true, format: true, events: true }),
    requestHeaders: resumeHeaders,
    responses: [
      {
        status: 200,
        description: 'Lines for as long as the connection lasts.',
        content: { 'text/plain': textContent },
      },
    ],
    refusals: [400, 401, 403, 404, 429, 503],
    curl: `curl -N ${ORIGIN}/v1/tail/AAPLc`,
  },
  {
    ...{ method: 'get', path: '/v1/stream/{symbol}', id: 'streamOne', tag: 'Listen' },
    summary: 'The messages of one token as server-sent events or NDJSON',
    description: streamDescription,
    pathParameters: symbolParameter,
    query: StreamQuery.omit({ symbols: true }),
    requestHeaders: resumeHeaders,
    responses: [streamResponse],
    refusals: [400, 401, 403, 404, 429, 503],
    curl: `curl -N '${ORIGIN}/v1/stream/AAPLc?format=ndjson'`,
  },
  {
    ...{ method: 'get', path: '/v1/stream', id: 'stream', tag: 'Listen' },
    summary: 'The messages of some tokens, or of all, as server-sent events or NDJSON',
    description: `${streamDescription} A browser that finds no room gets 200, a retry and an error, since it would take any other answer for good.`,
    query: StreamQuery,
    requestHeaders: resumeHeaders,
    responses: [streamResponse],
    refusals: [400, 401, 403, 404, 429, 503],
    curl: `curl -N '${ORIGIN}/v1/stream?symbols=*&types=transfer,seal,retract&since=5m'`,
  },
  {
    ...{ method: 'get', path: '/v1/ws', id: 'socket', tag: 'Listen' },
    summary: 'The same over WebSocket; what is said there is in asyncapi.json',
    description: `${streamDescription} The query says the same as a first subscribe; without symbols one is waited for.`,
    query: StreamQuery.omit({ format: true, events: true }),
    responses: [
      {
        status: 101,
        description:
          'The connection is a WebSocket from here on. What is wrong with the query is an error message on it.',
      },
    ],
    refusals: [400, 426, 503],
    curl: `npx wscat -c '${ORIGIN.replace('http', 'ws')}/v1/ws?symbols=AAPLc'`,
  },
  {
    ...{ method: 'get', path: '/v1/events', id: 'events', tag: 'Look back' },
    summary: 'What was told, page by page or all at once',
    description:
      'The very objects of the stream, heard by the same rules, in either view. next goes into after, with desc into before, in place of what the query says there, and is null once there is nothing more; a page may be short or empty and still not be the last. As NDJSON it is no page but all that was asked for, ended by the end of the answer.',
    query: EventsQuery,
    responses: [
      {
        status: 200,
        description: 'A page, or lines.',
        content: {
          ...jsonContent(EventsPage, { events: [transfer, retract, seal], next: seal?.id }),
          'application/x-ndjson': { schema: update, example: `${JSON.stringify(transfer)}\n` },
        },
        headers: keptSinceHeader,
      },
    ],
    refusals: [400, 401, 403, 404, 410, 429, 503],
    curl: `curl -s '${ORIGIN}/v1/events?symbols=AAPLc&order=desc&limit=10'\ncurl -s '${ORIGIN}/v1/events?symbols=AAPLc&since=1h&format=ndjson' > AAPLc.ndjson`,
  },
  {
    ...{ method: 'get', path: '/v1/events/{key}', id: 'fact', tag: 'Look back' },
    summary: "One on-chain fact's life",
    description:
      'Everything that is kept about it, oldest first, with the seals that list it, and how firm it is by now.',
    pathParameters: { key: { description: 'The key of a message.', example: String(transfer?.key) } },
    responses: [
      {
        status: 200,
        description: 'All that is kept of it.',
        content: jsonContent(OneFact, { key: transfer?.key, updates: [transfer, seal], stage: 'sealed' }),
      },
    ],
    refusals: [400, 401, 403, 404],
    curl: `key=$(curl -s '${ORIGIN}/v1/events?types=transfer&limit=1' | grep -o '[0-9]*-0x[0-9a-f]*-[0-9]*' | head -n 1)\ncurl -s "${ORIGIN}/v1/events/$key"`,
  },
  {
    ...{ method: 'get', path: '/v1/tokenized-stocks', id: 'tokens', tag: 'What there is' },
    summary: 'The list of tokenized stocks',
    description: 'Exactly the list response of the Tokenized Stocks Read API, from the list as it was last read.',
    requestHeaders: etagRequestHeaders,
    responses: [
      {
        status: 200,
        description: 'The list.',
        content: jsonContent(TokenList, { tokens: [record] }),
        headers: { ETag: 'Which list it is.', Age: 'How many seconds ago it was read.' },
      },
      notModified,
    ],
    refusals: [401, 403, 503],
    curl: `curl -s ${ORIGIN}/v1/tokenized-stocks`,
  },
  {
    ...{ method: 'get', path: '/v1/tokenized-stocks/{selector}', id: 'token', tag: 'What there is' },
    summary: 'One token as it stands now',
    description: 'The fields of a snapshot, and the position of the newest message about it.',
    pathParameters: { selector: { description: 'A symbol, an address, or isin:…', example: 'AAPLc' } },
    responses: [
      {
        status: 200,
        description: 'The token.',
        content: jsonContent(TokenDetails, { ...tokenState, last: snapshot?.id }),
      },
    ],
    refusals: [401, 403, 404, 503],
    curl: `curl -s ${ORIGIN}/v1/tokenized-stocks/AAPLc`,
  },
  {
    ...{ method: 'post', path: '/rpc', id: 'rpc', tag: 'Ask the chain' },
    summary: 'JSON-RPC 2.0, as a node answers it',
    description:
      'eth_getBlockByNumber, eth_getLogs, eth_getBlockReceipts, eth_getStorageAt, eth_getTransactionCount, eth_getCode, eth_getBalance, eth_chainId and eth_blockNumber, with pending state. A WebSocket at the same path has eth_subscribe (pendingLogs, logs, newHeads) besides. A batch holds up to 50 requests.',
    body: rpcContent({ jsonrpc: '2.0', id: 1, method: 'eth_blockNumber', params: [] }),
    responses: [
      {
        status: 200,
        description: 'A result, or an error of JSON-RPC; a list of them for a batch.',
        content: rpcContent({ jsonrpc: '2.0', id: 1, result: '0x31f4394' }),
      },
      { status: 204, description: 'There were only notifications.' },
      {
        status: 403,
        description: 'The upstream refuses this method, or this place is not let in.',
        content: rpcContent(),
      },
      { status: 413, description: 'The body is too large.', content: rpcContent() },
      {
        status: 429,
        description: 'Too many requests of your address: -32005, and Retry-After.',
        content: rpcContent(),
      },
      { status: 503, description: 'No room now.', content: rpcContent() },
    ],
    refusals: [401],
    otherMethods: 'use POST with a JSON-RPC body, or connect with ws:// for subscriptions.',
    curl: `curl -s ${ORIGIN}/rpc -d '{"jsonrpc":"2.0","id":1,"method":"eth_blockNumber","params":[]}'`,
  },
  {
    ...{ method: 'get', path: '/v1/status', id: 'status', tag: 'How it is' },
    summary: 'Where the feed comes from now, and how well it keeps its promises',
    responses: [{ status: 200, description: 'How it is.', content: jsonContent(ServiceStatus, statusExample) }],
    refusals: [401, 403],
    curl: `curl -s ${ORIGIN}/v1/status`,
  },
  {
    ...{ method: 'get', path: '/healthz', id: 'health', tag: 'How it is' },
    summary: 'Whether the process answers',
    responses: [{ status: 200, description: 'It does.', content: jsonContent(Health, { status: 'ok' }) }],
    refusals: [],
    curl: `curl -s ${ORIGIN}/healthz`,
  },
  {
    ...{ method: 'get', path: '/readyz', id: 'ready', tag: 'How it is' },
    summary: 'Whether it is of use now',
    responses: [
      { status: 200, description: 'It is.', content: jsonContent(Readiness, { status: 'ready', reasons: [] }) },
      {
        status: 503,
        description: 'It is not, and why.',
        content: jsonContent(Readiness, { status: 'unready', reasons: ['the upstream is down'] }),
      },
    ],
    refusals: [],
    curl: `curl -s ${ORIGIN}/readyz`,
  },
  {
    ...{ method: 'get', path: '/metrics', id: 'metrics', tag: 'How it is' },
    summary: 'What is counted, in Prometheus text',
    description: 'To this machine only, unless METRICS_TOKEN is set and borne.',
    responses: [{ status: 200, description: 'Metrics.', content: { 'text/plain': textContent } }],
    refusals: [403],
    curl: `curl -s ${ORIGIN}/metrics`,
  },
  {
    ...{ method: 'get', path: '/', id: 'door', tag: 'Read about it' },
    summary: 'Leads to /docs',
    responses: [{ status: 302, description: 'Where to read on.', headers: { Location: '/docs' } }],
    refusals: [],
    curl: `curl -sL ${ORIGIN}`,
  },
  {
    ...{ method: 'get', path: '/schemas/{type}.json', id: 'schema', tag: 'Read about it' },
    summary: 'The JSON Schema of one type of message',
    pathParameters: { type: { description: 'A type of message.', example: 'transfer' } },
    responses: [
      {
        status: 200,
        description: 'A schema that needs no other document, with examples.',
        content: { 'application/schema+json': { schema: { type: 'object' } } },
      },
      notModified,
    ],
    requestHeaders: etagRequestHeaders,
    refusals: [404],
    curl: `curl -s ${ORIGIN}/schemas/transfer.json`,
  },
  ...(
    [
      ['/openapi.json', 'openapi', 'This document: OpenAPI 3.1', 'application/json'],
      ['/asyncapi.json', 'asyncapi', 'Every message, and who says it: AsyncAPI 3.0', 'application/json'],
      ['/docs', 'docs', 'Both of them as a page, with lines to copy', 'text/html'],
      ['/llms.txt', 'llms', 'What a language model needs to know', 'text/plain'],
    ] as const
  ).map(
    ([path, id, summary, type]): Route => ({
      ...{ method: 'get', path, id, summary, tag: 'Read about it' },
      responses: [
        {
          status: 200,
          description: summary,
          content: { [type]: { schema: { type: type === 'application/json' ? 'object' : 'string' } } },
        },
        notModified,
      ],
      requestHeaders: etagRequestHeaders,
      refusals: [],
      curl: `curl -s ${ORIGIN}${path}`,
    }),
  ),
]
