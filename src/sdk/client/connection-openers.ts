import { RelayError, type StocktapeError } from './errors.ts'
import type { Http } from './http-requests.ts'
import type { ConnectOptions } from './stream-types.ts'

type ConnectionEvents = {
  readonly onMessage: (text: string) => void
  /** Called with the number of milliseconds that the relay asks the client to wait before it connects again. */
  readonly onRetry: (ms: number) => void
  readonly onEnd: (error: StocktapeError) => void
}

/** Opens one connection. Returns a function that closes it. The caller ignores events after it has called that function. */
export type OpenConnection = (query: URLSearchParams, events: ConnectionEvents) => () => void

const SUBPROTOCOL = 'stocktape.v1'
/** The first close code of the relay. Lower ones come from the network. */
const RELAY_CODES_FROM = 4_000

/** A browser cannot set headers on a WebSocket, and a URL ends up in logs, so the first message contains the API key. */
export const webSocketOpener =
  (http: Http, Socket: NonNullable<ConnectOptions['WebSocket']>): OpenConnection =>
  (query, { onMessage, onEnd }) => {
    const open = (key: string | undefined): WebSocket => {
      const url = http.urlOf('/v1/ws', query)
      url.protocol = url.protocol.replace('http', 'ws')
      const opened = new Socket(url, SUBPROTOCOL)
      if (key) opened.onopen = () => opened.send(JSON.stringify({ type: 'auth', key }))
      opened.onmessage = ({ data }) => onMessage(String(data))
      opened.onclose = ({ code, reason }) => onEnd(endOf(code, reason, http))
      return opened
    }
    const socket = http.getKey().then(open)
    socket.catch(onEnd)
    return () => void socket.then((opened) => opened.close()).catch(() => {})
  }

/** The reason of a close code begins with a word. */
function endOf(code: number, text: string, http: Http): StocktapeError {
  const [reason] = text.split(' ')
  const message = `closed with ${code} ${reason}`
  return code < RELAY_CODES_FROM ? http.errorOf('lost', message) : new RelayError(code, { reason, message })
}

export const eventStreamOpener =
  (http: Http): OpenConnection =>
  (query, events) => {
    const abort = new AbortController()
    readEventStream(http, query, events, abort.signal).then(events.onEnd, events.onEnd)
    return () => abort.abort()
  }

async function readEventStream(
  http: Http,
  query: URLSearchParams,
  { onMessage, onRetry }: ConnectionEvents,
  signal: AbortSignal,
): Promise<StocktapeError> {
  const url = http.urlOf('/v1/stream', query)
  const { body } = await http.request(url, signal)
  // A reader is needed because some browsers cannot iterate over the body of a response.
  const reader = (body as NonNullable<typeof body>).pipeThrough(new TextDecoderStream()).getReader()
  for (let rest = ''; ; ) {
    const { done, value } = await reader.read().catch((failure) => {
      throw http.errorOf('lost', failure)
    })
    if (done) return http.errorOf('lost', null)
    const lines = (rest + value).split('\n')
    rest = String(lines.pop())
    for (const line of lines) {
      if (line.startsWith('data: ')) onMessage(line.slice(6))
      if (line.startsWith('retry: ')) onRetry(Number(line.slice(7)))
    }
  }
}
