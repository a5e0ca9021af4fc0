import { type Http, isTemporary, type RelayError, refusalOf, retryAfterMs } from './http-requests.ts'

type ConnectionEvents = {
  readonly onMessage: (text: string) => void
  /** Called with the number of milliseconds that the relay asks the client to wait before it connects again. */
  readonly onRetry: (ms: number) => void
  readonly onEnd: (end: ConnectionEnd) => void
}

export type ConnectionEnd = {
  readonly reason: string
  /** Close code of the connection, if it was a WebSocket. */
  readonly code?: number
  /** Set if the relay would refuse each later attempt too. */
  readonly refusal?: RelayError
}

/** Opens one connection. Returns a function that closes it. The caller ignores events after it has called that function. */
export type OpenConnection = (query: URLSearchParams, events: ConnectionEvents) => () => void

const SUBPROTOCOL = 'stocktape.v1'

export const webSocketOpener =
  (http: Http, key: string | undefined): OpenConnection =>
  (query, { onMessage, onEnd }) => {
    const url = http.urlOf('v1/ws', query)
    url.protocol = url.protocol.replace('http', 'ws')
    // A browser cannot set headers on a WebSocket, so the URL contains the API key.
    if (key) url.searchParams.set('key', key)
    const socket = new WebSocket(url, SUBPROTOCOL)
    socket.onmessage = ({ data }) => onMessage(String(data))
    socket.onclose = ({ code, reason }) => onEnd({ code, reason: reason || `closed: ${code}` })
    return () => socket.close()
  }

export const eventStreamOpener =
  (http: Http): OpenConnection =>
  (query, events) => {
    const abort = new AbortController()
    readEventStream(http, query, events, abort.signal).then(events.onEnd, (failure: unknown) =>
      events.onEnd({ reason: reasonOf(failure) }),
    )
    return () => abort.abort()
  }

async function readEventStream(
  http: Http,
  query: URLSearchParams,
  { onMessage, onRetry }: ConnectionEvents,
  signal: AbortSignal,
): Promise<ConnectionEnd> {
  const response = await fetch(http.urlOf('v1/stream', query), {
    headers: { ...http.headers, accept: 'text/event-stream' },
    signal,
  })
  if (!response.ok || !response.body) {
    onRetry(retryAfterMs(response))
    return endOf(await refusalOf(response))
  }
  // A reader is needed because some browsers cannot iterate over the body of a response.
  const reader = response.body.pipeThrough(new TextDecoderStream()).getReader()
  for (let rest = ''; ; ) {
    const { done, value } = await reader.read()
    if (done) return { reason: 'the stream ended' }
    const lines = (rest + value).split('\n')
    rest = lines.pop() ?? ''
    for (const line of lines) {
      if (line.startsWith('data: ')) onMessage(line.slice(6))
      if (line.startsWith('retry: ')) onRetry(Number(line.slice(7)))
    }
  }
}

export const endOf = (refusal: RelayError): ConnectionEnd => ({
  reason: refusal.message,
  ...(!isTemporary(refusal) && { refusal }),
})

/** Prefers the cause of a failed `fetch`, since the message of the error itself is the same for every cause. */
function reasonOf(failure: unknown): string {
  if (!(failure instanceof Error)) return String(failure)
  return failure.cause instanceof Error ? failure.cause.message || failure.message : failure.message
}
