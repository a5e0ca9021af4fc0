import { type Http, isTemporary, type RelayError, refusalOf, retryAfterMs } from './http-requests.ts'

type ConnectionEvents = {
  readonly onMessage: (text: string) => void
  /** The relay asks for this wait, in milliseconds, before the next connection. */
  readonly onRetry: (ms: number) => void
  readonly onEnd: (end: ConnectionEnd) => void
}

export type ConnectionEnd = {
  readonly reason: string
  /** Close code of a WebSocket. */
  readonly code?: number
  /** Set if the relay would refuse every further attempt too. */
  readonly refusal?: RelayError
}

/** Opens one connection. Returns a function that closes it; the caller ignores events after that. */
export type OpenConnection = (query: URLSearchParams, events: ConnectionEvents) => () => void

const SUBPROTOCOL = 'stocktape.v1'

export const webSocketOpener =
  (http: Http, key: string | undefined): OpenConnection =>
  (query, { onMessage, onEnd }) => {
    const url = http.urlOf('v1/ws', query)
    url.protocol = url.protocol.replace('http', 'ws')
    // Browsers cannot set headers on a WebSocket.
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
  // Some browsers cannot iterate over the body of a response.
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

/** The message of a failed `fetch` is the same for every cause, so the cause is preferred. */
function reasonOf(failure: unknown): string {
  if (!(failure instanceof Error)) return String(failure)
  return failure.cause instanceof Error ? failure.cause.message || failure.message : failure.message
}
