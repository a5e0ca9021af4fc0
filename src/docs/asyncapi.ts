import { version } from '../lib/version.ts'
import { examplesOf } from '../protocol/contract-examples.ts'
import { StreamQuery } from '../protocol/parameters/selection.ts'
import { allMessageTypes, type JsonSchema, messageTypes, namedSchemas, querySchema } from './json-schemas.ts'
import { SCHEMA_REF_PREFIX } from './route-texts.ts'
import { CAVEAT, closeCodesText, serviceDescription } from './snippets.ts'

const { updates, notices, requests } = messageTypes
const replies = {
  subscribe: ['subscribed', 'snapshot', 'error'],
  unsubscribe: ['unsubscribed', 'error'],
  list: ['subscribed', 'error'],
  auth: ['hello', 'error'],
  ping: ['pong', 'error'],
} as const satisfies Record<(typeof requests)[number], readonly (typeof notices)[number][]>
const webSocketOnly: readonly string[] = ['unsubscribed', 'pong']
const streamTypes = [...updates, ...notices.filter((type) => !webSocketOnly.includes(type))]

const jsonrpc = { const: '2.0' }
/** JSON-RPC has its own contract. These messages only say which side sends what. */
const rpcMessages = {
  rpcRequest: {
    summary: 'A JSON-RPC call or a subscription.',
    schema: { type: 'object', properties: { jsonrpc, id: {}, method: { type: 'string' }, params: { type: 'array' } } },
    example: { jsonrpc: '2.0', id: 1, method: 'eth_subscribe', params: ['pendingLogs', {}] },
  },
  rpcResponse: {
    summary: 'The answer to a request, by its id: a result or an error.',
    schema: { type: 'object', properties: { jsonrpc, id: {}, result: {}, error: { type: 'object' } } },
    example: { jsonrpc: '2.0', id: 1, result: '0x9cef478923ff08bf67fde6c64013158d' },
  },
  rpcNotification: {
    summary: 'An event of a subscription.',
    schema: {
      type: 'object',
      properties: {
        jsonrpc,
        method: { const: 'eth_subscription' },
        params: { type: 'object', properties: { subscription: { type: 'string' }, result: {} } },
      },
    },
    example: {
      jsonrpc: '2.0',
      method: 'eth_subscription',
      params: { subscription: '0x9cef478923ff08bf67fde6c64013158d', result: { number: '0x31f4394' } },
    },
  },
} as const

const streamDescription =
  'The stream sends hello, subscribed, a gap if messages are missing, a snapshot of each token, the replay and live; live messages follow.'

/** Describes the streams as AsyncAPI 3.0, whose default dialect is JSON Schema draft 07. */
export function asyncApi() {
  return {
    asyncapi: '3.0.0',
    info: { title: 'stocktape', version, description: `${serviceDescription} ${CAVEAT}`, license: { name: 'MIT' } },
    defaultContentType: 'application/json',
    servers: {
      socket: serverOf('ws', 'The relay over WebSocket; wss behind TLS.'),
      stream: serverOf('http', 'The relay over HTTP; https behind TLS.'),
    },
    channels: channels(),
    operations: operations(),
    components: components(namedSchemas(SCHEMA_REF_PREFIX, 'draft-07')),
  }
}

const channels = () => ({
  socket: {
    address: '/v1/ws',
    title: 'WebSocket',
    description: `${streamDescription} There is one selection per connection, from the query or from a subscribe; the client can change it later. Subprotocol stocktape.v1. permessage-deflate if it is offered. ${closeCodesText}`,
    servers: [{ $ref: '#/servers/socket' }],
    bindings: { ws: { method: 'GET', query: querySchema(StreamQuery.omit({ format: true, events: true })) } },
    messages: messagesOf(allMessageTypes),
  },
  stream: {
    address: '/v1/stream',
    title: 'Server-sent events and NDJSON',
    description: `${streamDescription} The query holds the selection, and the client sends nothing. With server-sent events the id line repeats the id; with NDJSON each message is a line.`,
    servers: [{ $ref: '#/servers/stream' }],
    messages: messagesOf(streamTypes),
  },
  streamOne: {
    address: '/v1/stream/{symbol}',
    title: 'The stream of one token',
    description: 'The path names the token.',
    parameters: { symbol: { description: 'A symbol, an address, or isin:…' } },
    servers: [{ $ref: '#/servers/stream' }],
    messages: messagesOf(streamTypes),
  },
  rpc: {
    address: '/rpc',
    title: 'JSON-RPC over WebSocket',
    description:
      'As on a node: eth_subscribe to pendingLogs, logs and newHeads, and all methods of POST /rpc. The relay sends each log once, and again with removed: true if it is not sealed.',
    servers: [{ $ref: '#/servers/socket' }],
    messages: messagesOf(Object.keys(rpcMessages)),
  },
})

const operations = () => ({
  sendOnSocket: operationOf('send', 'socket', 'The relay sends messages on a WebSocket.', [...updates, ...notices]),
  sendOnStream: {
    ...operationOf('send', 'stream', 'The relay sends messages on a stream.', streamTypes),
    bindings: { http: { method: 'GET', query: querySchema(StreamQuery) } },
  },
  sendOnTokenStream: {
    ...operationOf('send', 'streamOne', 'The relay sends the messages of one token.', streamTypes),
    bindings: { http: { method: 'GET', query: querySchema(StreamQuery.omit({ symbols: true })) } },
  },
  callRpc: {
    ...operationOf('receive', 'rpc', 'A client sends a request as to a node.', ['rpcRequest']),
    reply: { channel: { $ref: '#/channels/rpc' }, messages: refsIn('rpc', ['rpcResponse']) },
  },
  notifyRpc: operationOf('send', 'rpc', 'The relay sends an event of a subscription.', ['rpcNotification']),
  ...Object.fromEntries(
    requests.map((type) => [
      type,
      {
        ...operationOf('receive', 'socket', `A client sends ${type}.`, [type]),
        reply: { channel: { $ref: '#/channels/socket' }, messages: refsIn('socket', replies[type]) },
      },
    ]),
  ),
})

const components = (schemas: Readonly<Record<string, JsonSchema>>) => ({
  messages: Object.fromEntries([
    ...allMessageTypes.map((type) => messageOf(type, schemas[type]?.description, examplesOf(type))),
    ...Object.entries(rpcMessages).map(([name, { summary, example }]) => messageOf(name, summary, [example])),
  ]),
  schemas: {
    ...schemas,
    ...Object.fromEntries(Object.entries(rpcMessages).map(([name, { schema }]): [string, JsonSchema] => [name, schema])),
  },
})

const messageOf = (name: string, summary: string | undefined, examples: readonly Readonly<Record<string, unknown>>[]) =>
  [
    name,
    {
      ...{ name, title: name, summary },
      payload: { $ref: SCHEMA_REF_PREFIX + name },
      examples: examples.map((payload) => ({ name, payload })),
    },
  ] as const

const serverOf = (protocol: 'ws' | 'http', description: string) => ({
  host: '{host}',
  protocol,
  description,
  variables: { host: { default: '127.0.0.1:8080', description: 'The address of the relay.' } },
})

const messagesOf = (types: readonly string[]) =>
  Object.fromEntries(types.map((type) => [type, { $ref: `#/components/messages/${type}` }]))

const refsIn = (channel: string, types: readonly string[]) =>
  types.map((type) => ({ $ref: `#/channels/${channel}/messages/${type}` }))

const operationOf = (action: 'send' | 'receive', channel: string, summary: string, types: readonly string[]) => ({
  action,
  channel: { $ref: `#/channels/${channel}` },
  summary,
  messages: refsIn(channel, types),
})
