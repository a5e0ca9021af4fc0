import packageJson from '../../package.json' with { type: 'json' }
import { closeCodes } from '../protocol/close-codes.ts'
import { StreamQuery } from '../protocol/selection.ts'
import { examplesOf } from './examples.ts'
import { CAVEAT, serviceDescription } from './openapi.ts'
import { SCHEMA_REF_PREFIX } from './route-table.ts'
import { type JsonSchema, messageTypes, namedSchemas, querySchema } from './schemas.ts'

const { updates, notices, requests } = messageTypes
/** What a WebSocket says in answer to what a client says. */
const replies = {
  subscribe: ['subscribed', 'snapshot', 'error'],
  unsubscribe: ['unsubscribed', 'error'],
  list: ['subscribed', 'error'],
  ping: ['pong', 'error'],
} as const satisfies Record<(typeof requests)[number], readonly (typeof notices)[number][]>
/** What is said on a WebSocket only. */
const webSocketOnly: readonly string[] = ['unsubscribed', 'pong']
const streamTypes = [...updates, ...notices.filter((type) => !webSocketOnly.includes(type))]

type AsyncApiMessage = {
  readonly name: string
  readonly title: string
  readonly summary: string | undefined
  readonly payload: { readonly $ref: string }
  readonly examples: readonly { readonly name: string; readonly payload: Readonly<Record<string, unknown>> }[]
}

const jsonrpc = { const: '2.0' }
/** JSON-RPC has a contract of its own; this is as much of it as says who speaks. */
const rpcMessages = {
  rpcRequest: {
    summary: 'A question or a subscription.',
    schema: { type: 'object', properties: { jsonrpc, id: {}, method: { type: 'string' }, params: { type: 'array' } } },
    example: { jsonrpc: '2.0', id: 1, method: 'eth_subscribe', params: ['pendingLogs', {}] },
  },
  rpcResponse: {
    summary: 'The answer to one, by its id: a result or an error.',
    schema: { type: 'object', properties: { jsonrpc, id: {}, result: {}, error: { type: 'object' } } },
    example: { jsonrpc: '2.0', id: 1, result: '0x9cef478923ff08bf67fde6c64013158d' },
  },
  rpcNotification: {
    summary: 'What a subscription tells.',
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

/** How a WebSocket ends, and whether to come back. */
export const closeCodesText = `The close code says whether to come back: 40xx not unchanged, 41xx with backoff, 42xx with your last position after bye.retry_ms (${Object.entries(
  closeCodes,
)
  .map(([reason, code]) => `${code} ${reason}`)
  .join(', ')}); the close reason is the word and the position.`

const streamDescription =
  'hello, subscribed, a gap if something is missing, a snapshot of each token, the replay, live; then everything is news.'

/** The streams as AsyncAPI 3.0: every message, and who says it. Its default dialect is JSON Schema of draft 07. */
export function asyncApi() {
  const schemas = namedSchemas(SCHEMA_REF_PREFIX, 'draft-07')
  return {
    asyncapi: '3.0.0',
    info: {
      title: 'stocktape',
      version: packageJson.version,
      description: `${serviceDescription} ${CAVEAT}`,
      license: { name: 'MIT' },
    },
    defaultContentType: 'application/json',
    servers: {
      socket: serverOf('ws', 'The relay over WebSocket; wss behind TLS.'),
      stream: serverOf('http', 'The relay over HTTP; https behind TLS.'),
    },
    channels: {
      socket: {
        address: '/v1/ws',
        title: 'WebSocket',
        description: `${streamDescription} One selection for each connection; the query makes it, or a subscribe, and a client may change it by what it says. Subprotocol stocktape.v1, no compression. ${closeCodesText}`,
        servers: [{ $ref: '#/servers/socket' }],
        bindings: { ws: { method: 'GET', query: querySchema(StreamQuery.omit({ format: true, events: true })) } },
        messages: messagesOf([...updates, ...notices, ...requests]),
      },
      stream: {
        address: '/v1/stream',
        title: 'Server-sent events and NDJSON',
        description: `${streamDescription} What is heard stands in the query, and a client says nothing. As server-sent events the id line repeats the id; as NDJSON each message is a line.`,
        servers: [{ $ref: '#/servers/stream' }],
        messages: messagesOf(streamTypes),
      },
      streamOne: {
        address: '/v1/stream/{symbol}',
        title: 'The same of one token',
        description: 'The token stands in the path.',
        parameters: { symbol: { description: 'A symbol, an address, or isin:…' } },
        servers: [{ $ref: '#/servers/stream' }],
        messages: messagesOf(streamTypes),
      },
      rpc: {
        address: '/rpc',
        title: 'JSON-RPC over WebSocket',
        description:
          'As a node has it: eth_subscribe to pendingLogs, logs and newHeads, and whatever POST /rpc answers. Each log once; one that does not make it is repeated with removed: true.',
        servers: [{ $ref: '#/servers/socket' }],
        messages: messagesOf(Object.keys(rpcMessages)),
      },
    },
    operations: {
      tellOnSocket: operationOf('send', 'socket', 'What is told on a WebSocket.', [...updates, ...notices]),
      tellOnStream: {
        ...operationOf('send', 'stream', 'What is told on a stream.', streamTypes),
        bindings: { http: { method: 'GET', query: querySchema(StreamQuery) } },
      },
      tellOfOne: {
        ...operationOf('send', 'streamOne', 'What is told of one token.', streamTypes),
        bindings: { http: { method: 'GET', query: querySchema(StreamQuery.omit({ symbols: true })) } },
      },
      askNode: {
        ...operationOf('receive', 'rpc', 'A client asks as it asks a node.', ['rpcRequest']),
        reply: { channel: { $ref: '#/channels/rpc' }, messages: refsIn('rpc', ['rpcResponse']) },
      },
      notify: operationOf('send', 'rpc', 'What a subscription tells.', ['rpcNotification']),
      ...Object.fromEntries(
        requests.map((type) => [
          type,
          {
            ...operationOf('receive', 'socket', `A client says ${type}.`, [type]),
            reply: { channel: { $ref: '#/channels/socket' }, messages: refsIn('socket', replies[type]) },
          },
        ]),
      ),
    },
    components: {
      messages: Object.fromEntries([
        ...[...updates, ...notices, ...requests].map((type) => [
          type,
          {
            name: type,
            title: type,
            summary: schemas[type]?.description,
            payload: { $ref: SCHEMA_REF_PREFIX + type },
            examples: examplesOf(type).map((payload) => ({ name: type, payload })),
          },
        ]),
        ...Object.entries(rpcMessages).map(([name, { summary, example }]) => [
          name,
          {
            name,
            title: name,
            summary,
            payload: { $ref: SCHEMA_REF_PREFIX + name },
            examples: [{ name, payload: example }],
          },
        ]),
      ]) as Readonly<Record<string, AsyncApiMessage>>,
      schemas: {
        ...schemas,
        ...Object.fromEntries(Object.entries(rpcMessages).map(([name, { schema }]) => [name, schema])),
      } as Readonly<Record<string, JsonSchema>>,
    },
  }
}

const serverOf = (protocol: 'ws' | 'http', description: string) => ({
  host: '{host}',
  protocol,
  description,
  variables: { host: { default: '127.0.0.1:8080', description: 'Where the relay listens.' } },
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
