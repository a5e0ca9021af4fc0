import type { IncomingMessage, ServerResponse } from 'node:http'
import type { Socket } from 'node:net'
import { defaultSelectionOptions, patchOptions, readStreamQuery } from '../../../protocol/parameters/selection.ts'
import { Refusal } from '../../../protocol/refusal.ts'
import { contentTypeOf, type FormatName, formatOf, variantsOf } from '../../../protocol/transports.ts'
import { resolveKnownSymbols } from '../select/resolve-symbols.ts'
import { publicHeaders, safetyHeaders } from '../transport/shared-headers.ts'
import { lagging, sendRawRefusal } from '../transport/shared-refusals.ts'
import { SocketOutlet } from '../transport/socket-outlet.ts'
import { takeOver } from '../transport/socket-takeover.ts'
import type { StreamServices } from './edge-context.ts'
import { Listener } from './listener.ts'
import { numberAhead, reach } from './resume-point.ts'
import { continueSession, startSession } from './session-start.ts'

/** Time that a client has to take the last bytes of a stream. After it the connection is cut. */
const END_BOUND_MS = 5_000
/** A browser that lost its stream reconnects after a random time in this range, so that not all reconnect at once. */
const RETRY_LEAST_MS = 1_000
const RETRY_SPREAD_MS = 2_000
/** A browser reconnects after this time if other processes serve the same tape. */
const OTHERS_RETRY_MS = 500
/** Times after which a refused browser retries: a short one if the relay will soon be ready, a long one if the relay is full. */
const SOON_RETRY_MS = 2_000
const OVERLOAD_RETRY_MS = 30_000

/** A request for a stream. `format` is set if the path determines it. */
export type StreamRequest = {
  readonly incoming: IncomingMessage
  readonly outgoing: ServerResponse
  readonly query: URLSearchParams
  readonly format: FormatName | undefined
  /** The format of the `Accept` header, which counts only if neither path nor query name one. */
  readonly acceptedFormat: FormatName
}

function resolveRequest({ edge }: StreamServices, request: StreamRequest) {
  const query = readStreamQuery(request.query, lastEventIdOf(request.incoming))
  const format = request.format ?? query.format ?? request.acceptedFormat
  const choice = resolveKnownSymbols(edge.current, query.symbols ?? [])
  const options = patchOptions(defaultSelectionOptions, query)
  return { query, format, choice, options, since: query.since ?? ({ from: 'now' } as const) }
}

export const streamHeadersOf = (streams: StreamServices, request: StreamRequest): Record<string, string> =>
  headersOf(resolveRequest(streams, request).format)

/** Opens a stream, or throws a refusal. EventSource retries only after status 200, so it gets a temporary refusal as an event. */
export function openStream(streams: StreamServices, request: StreamRequest): void {
  try {
    startStream(streams, request, resolveRequest(streams, request))
  } catch (failure) {
    const event = failure instanceof Refusal ? refusalEvent(failure, streams, request) : null
    if (event === null) throw failure
    if (failure instanceof Refusal) streams.countRefusal(failure.code, request.incoming)
    request.outgoing.writeHead(200, headersOf('sse'))
    request.outgoing.end(event)
  }
}

/** Returns a temporary refusal as a browser's EventSource needs it; null if the client gets the status of the refusal. */
function refusalEvent({ code, reason, message }: Refusal, { edge }: StreamServices, request: StreamRequest): string | null {
  const retryMs = retryMsByReason[reason]
  if (!isEventSource(request) || retryMs === undefined) return null
  // The load balancer passes this status to another process.
  if (reason === 'going_away' && edge.isOneOfMany) return null
  return `retry: ${retryMs}\n\ndata: ${JSON.stringify({ type: 'error', code, reason, message })}\n\n`
}

/** The temporary refusals, with the time after which a browser retries. */
const retryMsByReason: Readonly<Record<string, number>> = {
  no_list: SOON_RETRY_MS,
  going_away: SOON_RETRY_MS,
  lagging: SOON_RETRY_MS,
  full: OVERLOAD_RETRY_MS,
  too_many_connections: OVERLOAD_RETRY_MS,
  too_many_selections: OVERLOAD_RETRY_MS,
}

/** Whether a request is that of a browser's EventSource, or similar: for a stream of SSE, with SSE in its `Accept` header. */
const isEventSource = ({ incoming, query, format: pathFormat, acceptedFormat }: StreamRequest): boolean =>
  (pathFormat ?? query.get('format') ?? acceptedFormat) === 'sse' && /text\/event-stream/i.test(incoming.headers.accept ?? '')

function startStream(streams: StreamServices, request: StreamRequest, resolved: ReturnType<typeof resolveRequest>): void {
  const { edge, clientAddressOf } = streams
  const { incoming, outgoing } = request
  const { choice, options, since } = resolved
  const address = clientAddressOf(incoming)
  const refusal = () => edge.hub.refusal({ tokens: choice.tokens, options }, address)
  const refused = refusal()
  if (refused) throw refused
  const socket = takeOver(incoming, outgoing)
  const run = () => runStream(streams, { ...resolved, address, socket })
  const ahead = numberAhead(since, edge)
  if (ahead === null) return run()
  socket.on('error', () => socket.destroy())
  // The connection is taken over already, because Node could not release it after a wait.
  void reach(edge, ahead).then((isReached) => {
    if (socket.destroyed) return
    const refused = isReached ? refusal() : lagging
    if (!refused) return run()
    streams.countRefusal(refused.code, request.incoming)
    const event = refusalEvent(refused, streams, request)
    if (event === null) sendRawRefusal(socket, refused)
    else socket.end(`${responseHeadOf('sse', edge.wallTime())}${event}`, () => socket.destroy())
  })
}

type OpenedStream = ReturnType<typeof resolveRequest> & { readonly address: string; readonly socket: Socket }

function runStream({ edge, random, createConnectionId }: StreamServices, stream: OpenedStream): void {
  const { query, format, choice, options, since, address, socket } = stream
  const { preface } = formatOf(format)
  const retryMs = edge.isOneOfMany ? OTHERS_RETRY_MS : Math.round(RETRY_LEAST_MS + random() * RETRY_SPREAD_MS)
  const heartbeatMs = query.heartbeat === undefined ? edge.heartbeatMs : query.heartbeat * 1_000 || null
  const [usual, named = usual] = variantsOf(format)
  const transport = query.events === 'named' ? named : usual
  const outlet = new ResponseOutlet(socket)
  const listener = new Listener({
    ...{ id: createConnectionId(), transport, address, outlet, heartbeatMs, options },
    uptime: edge.uptime(),
  })
  listener.tokens = choice.tokens
  socket.write(`${responseHeadOf(format, edge.wallTime())}${preface(retryMs)}`)
  const remove = () => edge.hub.remove(listener)
  socket.on('close', remove).on('error', remove)
  const exceeded = edge.hub.add(listener)
  if (exceeded) return edge.hub.disconnect(listener, exceeded)
  const { snapshot = true } = query
  const onGap = query.on_gap ?? 'replay'
  const subscription = { since, snapshot, onGap, rejected: choice.rejected }
  const run = (session: Promise<void>) => void session.catch(() => socket.destroy())
  if (options.stage === 'sealed') listener.replayAgain = () => run(continueSession(edge, listener, subscription))
  run(startSession(edge, listener, subscription))
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

/** A streaming response as an outlet. Its body ends when the connection ends. */
class ResponseOutlet extends SocketOutlet {
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
