import type { IncomingMessage, ServerResponse } from 'node:http'
import type { Socket } from 'node:net'
import { Refusal } from '../../protocol/refusal.ts'
import {
  defaultSelectionOptions,
  patchOptions,
  readStreamQuery,
  type StreamQuery,
  startPointFromLastEventId,
} from '../../protocol/selection.ts'
import type { Authorizer } from '../limits/auth.ts'
import { resolveSymbols, unknownSymbol } from '../select/symbols.ts'
import type { Transport } from '../transport/encode.ts'
import { EXPOSED_HEADERS } from '../transport/exposed-headers.ts'
import type { Outlet } from '../transport/outlet.ts'
import { SocketOutlet } from '../transport/socket-outlet.ts'
import { takeOver } from '../transport/takeover.ts'
import { Listener } from './listener.ts'
import { type EdgeContext, startSession } from './session.ts'

/** How long the last bytes of a stream may take to leave. */
const END_BOUND_MS = 5_000
/** A browser that lost its stream waits this long, drawn anew for each, so that not all come at once. */
const RETRY_LEAST_MS = 1_000
const RETRY_SPREAD_MS = 2_000
/** Where the house is full, a browser is sent away for this long. */
const OVERLOAD_RETRY_MS = 30_000

type Format = NonNullable<StreamQuery['format']>

const contentTypes: Readonly<Record<Format, string>> = {
  sse: 'text/event-stream; charset=utf-8',
  ndjson: 'application/x-ndjson; charset=utf-8',
  text: 'text/plain; charset=utf-8',
}

/** One streaming answer, asked for: where to, what, and in which format if the path says so. */
export type StreamRequest = {
  readonly incoming: IncomingMessage
  readonly outgoing: ServerResponse
  readonly query: URLSearchParams
  readonly format: StreamQuery['format']
  /** The format that the `Accept` header asks for, where nothing else says. */
  readonly acceptedFormat: Format
}

export type StreamServices = {
  readonly edge: EdgeContext
  readonly random: () => number
  readonly createConnectionId: () => string
  /** Whom a connection is counted for. */
  readonly clientAddressOf: (incoming: IncomingMessage) => string
  readonly authorize: Authorizer
  /** Says for the log what went wrong. */
  readonly warn: (kind: string, detail: unknown) => void
}

/** What a stream would be that is asked for; refuses what cannot be. */
function resolveRequest(
  { edge }: StreamServices,
  { incoming, query: parameters, format: asked, acceptedFormat }: StreamRequest,
) {
  const lastEventId = lastEventIdOf(incoming)
  // A browser that comes back repeats the URL of its page; its own position wins, whatever is there.
  if (lastEventId) parameters.delete('since')
  const query = readStreamQuery(parameters)
  const format = asked ?? query.format ?? acceptedFormat
  const choice = resolveQuerySymbols(edge, query)
  const options = patchOptions(defaultSelectionOptions, query)
  return {
    query,
    format,
    choice,
    options,
    since: lastEventId ? startPointFromLastEventId(lastEventId) : (query.since ?? ({ from: 'now' } as const)),
  }
}

/** The headers that a stream would come with. */
export const streamHeadersOf = (streams: StreamServices, request: StreamRequest): Record<string, string> =>
  headersOf(resolveRequest(streams, request).format)

const goingAway = new Refusal(503, 'going_away', 'This server is about to stop; come back in a moment.')

/** Opens SSE, NDJSON or text on the raw response. A refusal is thrown before the first byte. */
export function openStream(streams: StreamServices, request: StreamRequest): void {
  const { edge, random, createConnectionId, clientAddressOf } = streams
  const { incoming, outgoing } = request
  const { query, format, choice, options, since } = resolveRequest(streams, request)
  const address = clientAddressOf(incoming)
  const retryMs = Math.round(RETRY_LEAST_MS + random() * RETRY_SPREAD_MS)
  const capacityRefusal = edge.hub.refusal({ tokens: choice.tokens, options }, address)
  const refusal = edge.hub.isDraining ? goingAway : capacityRefusal
  const isBrowser = format === 'sse' && /text\/event-stream/i.test(incoming.headers.accept ?? '')
  if (refusal && isBrowser) return refuseAsEvent(outgoing, refusal, edge.hub.isDraining ? retryMs : OVERLOAD_RETRY_MS)
  if (refusal) throw refusal
  const heartbeatMs = query.heartbeat ? query.heartbeat * 1_000 : format === 'ndjson' ? null : edge.heartbeatMs
  const transport: Transport = format !== 'sse' ? format : query.events === 'named' ? 'sse-named' : 'sse'
  const socket = takeOver(incoming, outgoing)
  const outlet = new ResponseOutlet(socket)
  const listener = new Listener({
    ...{ id: createConnectionId(), transport, address, outlet, heartbeatMs, options },
    uptime: edge.uptime(),
  })
  listener.tokens = choice.tokens
  socket.write(`${responseHeadOf(format)}${format === 'sse' ? `: stocktape.v1\nretry: ${retryMs}\n\n` : ''}`)
  edge.hub.add(listener)
  removeOnClose(edge.hub, listener, socket)
  startSession(edge, listener, { since, snapshot: query.snapshot ?? true, rejected: choice.rejected }).catch(() =>
    socket.destroy(),
  )
}

function removeOnClose(hub: EdgeContext['hub'], listener: Listener, socket: Socket): void {
  const remove = () => hub.remove(listener)
  socket.on('close', remove)
  socket.on('error', remove)
}

function resolveQuerySymbols({ view }: EdgeContext, { symbols = [] }: StreamQuery) {
  if (symbols.length === 0) {
    throw new Refusal(400, 'bad_parameter', 'symbols: name at least one symbol, or * for all.', {
      parameter: 'symbols',
    })
  }
  const choice = resolveSymbols(view, symbols)
  if (choice.tokens?.size === 0) throw unknownSymbol(choice.rejected)
  return choice
}

const lastEventIdOf = ({ headers }: IncomingMessage): string => [headers['last-event-id']].flat()[0] ?? ''

const headersOf = (format: Format): Record<string, string> => ({
  'content-type': contentTypes[format],
  'cache-control': 'no-cache, no-transform',
  'x-accel-buffering': 'no',
  'access-control-allow-origin': '*',
  'access-control-expose-headers': EXPOSED_HEADERS.join(', '),
  'x-content-type-options': 'nosniff',
})

/** How a stream's answer begins: written by hand, since the bytes that follow are too. */
const responseHeadOf = (format: Format): string =>
  `HTTP/1.1 200 OK\r\n${Object.entries(headersOf(format))
    .map(([name, value]) => `${name}: ${value}\r\n`)
    .join('')}date: ${new Date().toUTCString()}\r\nconnection: close\r\n\r\n`

/** A browser is told on a stream of its own, and when to come back: it gives up for good on any other answer. */
function refuseAsEvent(outgoing: ServerResponse, refusal: Refusal, retryMs: number): void {
  outgoing.writeHead(200, headersOf('sse'))
  const error = { type: 'error', code: refusal.code, reason: refusal.reason, message: refusal.message }
  outgoing.end(`retry: ${retryMs}\n\ndata: ${JSON.stringify(error)}\n\n`)
}

/** A streaming response as an outlet. What it writes is delimited by the end of the connection, and by nothing else. */
class ResponseOutlet extends SocketOutlet implements Outlet {
  ping(): boolean {
    return false
  }

  end(): void {
    const { socket } = this
    socket.end()
    const cutTimer = setTimeout(() => socket.destroy(), END_BOUND_MS)
    socket.once('close', () => clearTimeout(cutTimer))
  }
}
