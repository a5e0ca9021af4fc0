import type { IncomingMessage, ServerResponse } from 'node:http'
import type { Socket } from 'node:net'
import { defaultSelectionOptions, patchOptions, readStreamQuery } from '../../../protocol/parameters/selection.ts'
import { Refusal } from '../../../protocol/refusal.ts'
import { contentTypeOf, type FormatName, formatOf, variantsOf } from '../../../protocol/transports.ts'
import { browserRetryMs, lagging } from '../limits/refusals.ts'
import { resolveKnownSymbols } from '../select/resolve-symbols.ts'
import { sendRawRefusal } from '../transport/send-refusal.ts'
import { publicHeaders, safetyHeaders } from '../transport/shared-headers.ts'
import { SocketOutlet } from '../transport/socket-outlet.ts'
import { takeOver } from '../transport/socket-takeover.ts'
import type { EdgeContext } from './edge-context.ts'
import { numberAhead, reach } from './resume-point.ts'
import { startSession, subscriptionOf } from './session-start.ts'

/** A browser that lost its stream reconnects after a random time in this range, so that not all reconnect at once. */
const RETRY_LEAST_MS = 1_000
const RETRY_SPREAD_MS = 2_000
/** A browser reconnects after this time if other processes serve the same tape. */
const OTHERS_RETRY_MS = 500
/** The kernel asks a silent client whether it is there, after this time and some retries, if the stream has no heartbeats. */
const KEEP_ALIVE_DELAY_MS = 60_000

/** A request for a stream. `format` is set if the path determines it. */
export type StreamRequest = {
  readonly incoming: IncomingMessage
  readonly outgoing: ServerResponse
  readonly query: URLSearchParams
  readonly format: FormatName | undefined
  /** The format of the `Accept` header, which counts only if neither path nor query name one. */
  readonly acceptedFormat: FormatName
}

function resolveRequest(edge: EdgeContext, request: StreamRequest) {
  const query = readStreamQuery(request.query, lastEventIdOf(request.incoming))
  const format = request.format ?? query.format ?? request.acceptedFormat
  const { tokens, rejected } = resolveKnownSymbols(edge.current, query.symbols ?? [])
  const selection = { tokens, options: patchOptions(defaultSelectionOptions, query) }
  return { query, format, selection, subscription: subscriptionOf(query, { rejected }) }
}

export const streamHeadersOf = (edge: EdgeContext, request: StreamRequest): Record<string, string> =>
  headersOf(resolveRequest(edge, request).format)

/** Opens a stream, or throws a refusal. EventSource retries only after status 200, so it gets a temporary refusal as an event. */
export function openStream(edge: EdgeContext, request: StreamRequest): void {
  try {
    startStream(edge, request, resolveRequest(edge, request))
  } catch (failure) {
    const event = failure instanceof Refusal ? refusalEvent(failure, edge, request) : null
    if (event === null) throw failure
    if (failure instanceof Refusal) edge.countRefusal(failure.code, request.incoming)
    request.outgoing.writeHead(200, headersOf('sse'))
    request.outgoing.end(event)
  }
}

/** Returns a temporary refusal as a browser's EventSource needs it; null if the client gets the status of the refusal. */
function refusalEvent({ code, reason, message }: Refusal, edge: EdgeContext, request: StreamRequest): string | null {
  const retryMs = browserRetryMs[reason]
  if (!isEventSource(request) || retryMs === undefined) return null
  // The load balancer passes this status to another process.
  if (reason === 'going_away' && edge.isOneOfMany) return null
  return `retry: ${retryMs}\n\ndata: ${JSON.stringify({ type: 'error', code, reason, message })}\n\n`
}

/** Whether a request is that of a browser's EventSource, or similar: for a stream of SSE, with SSE in its `Accept` header. */
const isEventSource = ({ incoming, query, format: pathFormat, acceptedFormat }: StreamRequest): boolean =>
  (pathFormat ?? query.get('format') ?? acceptedFormat) === 'sse' && /text\/event-stream/i.test(incoming.headers.accept ?? '')

function startStream(edge: EdgeContext, request: StreamRequest, resolved: ReturnType<typeof resolveRequest>): void {
  const { incoming, outgoing } = request
  const { selection, subscription } = resolved
  const address = edge.clientAddressOf(incoming)
  const refusal = () => edge.clients.refusal(address) ?? edge.hub.selectionRefusal(selection)
  const refused = refusal()
  if (refused) throw refused
  const socket = takeOver(incoming, outgoing)
  const run = () => runStream(edge, { ...resolved, address, socket })
  const ahead = numberAhead(subscription.since, edge)
  if (ahead === null) return run()
  socket.on('error', () => socket.destroy())
  // The connection is taken over already, because Node could not release it after a wait.
  void reach(edge, ahead).then((isReached) => {
    if (socket.destroyed) return
    const refused = isReached ? refusal() : lagging
    if (!refused) return run()
    edge.countRefusal(refused.code, request.incoming)
    const event = refusalEvent(refused, edge, request)
    if (event === null) sendRawRefusal(socket, refused)
    else socket.end(`${responseHeadOf('sse', edge.wallTime())}${event}`, () => socket.destroy())
  })
}

type OpenedStream = ReturnType<typeof resolveRequest> & { readonly address: string; readonly socket: Socket }

function runStream(edge: EdgeContext, stream: OpenedStream): void {
  const { query, format, selection, subscription, address, socket } = stream
  const { preface } = formatOf(format)
  const retryMs = edge.isOneOfMany ? OTHERS_RETRY_MS : Math.round(RETRY_LEAST_MS + edge.random() * RETRY_SPREAD_MS)
  const heartbeatMs = query.heartbeat === undefined ? edge.heartbeatMs : query.heartbeat * 1_000 || null
  const [usual, named = usual] = variantsOf(format)
  const transport = query.events === 'named' ? named : usual
  const outlet = new SocketOutlet(socket)
  const listener = edge.hub.createListener({ id: edge.createConnectionId(), transport, address, outlet, heartbeatMs, selection })
  // Without heartbeats and updates, nothing else shows that a client has vanished.
  if (heartbeatMs === null) socket.setKeepAlive(true, KEEP_ALIVE_DELAY_MS)
  socket.write(`${responseHeadOf(format, edge.wallTime())}${preface(retryMs)}`)
  const remove = () => edge.clients.remove(listener)
  socket.on('close', remove).on('error', remove)
  const exceeded = edge.clients.add(listener)
  if (exceeded) return edge.clients.disconnect(listener, exceeded)
  const run = (session: Promise<void>) => void session.catch(() => socket.destroy())
  run(startSession(edge, listener, subscription, run))
}

export const lastEventIdOf = ({ headers }: IncomingMessage): string => [headers['last-event-id']].flat()[0] ?? ''

const headersOf = (format: FormatName): Record<string, string> => ({
  'content-type': contentTypeOf(format),
  'cache-control': 'no-cache, no-transform',
  'x-accel-buffering': 'no',
  ...publicHeaders,
  ...safetyHeaders,
})

/** Returns the head of the response as text, because the stream is written to the raw socket. */
const responseHeadOf = (format: FormatName, time: number): string =>
  `HTTP/1.1 200 OK\r\n${Object.entries(headersOf(format))
    .map(([name, value]) => `${name}: ${value}\r\n`)
    .join('')}date: ${new Date(time).toUTCString()}\r\nconnection: close\r\n\r\n`
