import type { Bar, Position, ServiceStatus, SnapshotMessage, Update } from '../generated/messages.ts'
import type { BarsOptions } from './bars.ts'
import { eventStreamOpener, webSocketOpener } from './connection-openers.ts'
import { type HistoryOptions, readHistory } from './history-reader.ts'
import { createHttp } from './http-requests.ts'
import { isNotAfter } from './position-order.ts'
import type { ConnectOptions, StreamItem, StreamOptions } from './stream-types.ts'
import { type StreamSource, UpdateStream, type Updates } from './update-stream.ts'

/** The client of one relay. Each stream has its own connection, which opens when the stream is first read. */
export type RelayClient = {
  readonly url: string
  /** URL of the JSON-RPC node that the relay serves. */
  readonly rpcUrl: string
  /** Follows symbols live, and reconnects and resumes by itself. `*` means all symbols. */
  updates<Type extends Update['type'] = Update['type']>(
    symbols: string | readonly string[],
    options?: StreamOptions<Type>,
  ): Updates<StreamItem<Type>>
  status(options?: RequestOptions): Promise<ServiceStatus>
  /** Reads the present state of one token. */
  snapshot(symbol: string, options?: RequestOptions): Promise<SnapshotMessage>
  /** Reads the states of many tokens, all at one position. A stream with `since: as_of` continues exactly at that position. */
  snapshots(symbols?: string | readonly string[], options?: RequestOptions): Promise<SnapshotCut>
  /** Reads stored messages. Requests the next page once you have taken every message of the page before. */
  history(symbols: string | readonly string[], options?: HistoryOptions): AsyncIterable<Update>
  /**
   * Yields the stored bars of one token, then each bar that changes; the open one is folded from trades here. A bar replaces the one
   * before with the same `start`. Loads the code of bars when it is first read.
   */
  bars(symbol: string, options?: BarsOptions): AsyncGenerator<Bar, void>
}

export type RequestOptions = { readonly signal?: AbortSignal }

export type SnapshotCut = {
  readonly as_of: Position
  readonly snapshots: readonly SnapshotMessage[]
  readonly rejected: readonly { readonly symbol: string; readonly reason: string; readonly suggest: readonly string[] }[]
}

const DEFAULT_HEARTBEAT_MS = 5_000

/** Options that have another name now. */
const formerOptions = { heartbeatS: 'heartbeatInterval', queueBound: 'highWaterMark', fill: 'gaps', strict: 'gaps' }

function refuseFormer(options: object): void {
  for (const [former, present] of Object.entries(formerOptions))
    if (former in options) throw new TypeError(`the option ${former} is now ${present}`)
}

/** Makes a client. It sends nothing until you read a stream or make a request. */
export function connect(url: string | URL, options: ConnectOptions = {}): RelayClient {
  refuseFormer(options)
  const { transport, heartbeatInterval = DEFAULT_HEARTBEAT_MS, WebSocket = globalThis.WebSocket } = options
  const http = createHttp(url, options)
  const source: StreamSource = {
    ...{ http, transport },
    open: { websocket: webSocketOpener(http, WebSocket), sse: eventStreamOpener(http) },
    heartbeatS: heartbeatInterval / 1_000,
    now: () => performance.now(),
    wallTime: Date.now,
    random: Math.random,
    after: (ms, callback) => {
      const timer = setTimeout(callback, ms)
      return () => clearTimeout(timer)
    },
  }
  const snapshots: RelayClient['snapshots'] = (symbols = '*', { signal } = {}) =>
    http.get('/v1/snapshot', new URLSearchParams({ symbols: String(symbols) }), signal)
  const client: RelayClient = {
    get url() {
      return String(http.urlOf('/'))
    },
    get rpcUrl() {
      return String(http.urlOf('/rpc'))
    },
    updates: <Type extends Update['type']>(symbols: string | readonly string[], streamOptions: StreamOptions<Type> = {}) => {
      refuseFormer(streamOptions)
      // The cast is correct because the relay sends only the selected types.
      return new UpdateStream(source, symbols, streamOptions) as Updates<StreamItem> as Updates<StreamItem<Type>>
    },
    status: ({ signal } = {}) => http.get('/v1/status', undefined, signal),
    snapshots,
    // The relay refuses a symbol that it does not know, so the answer has exactly one snapshot.
    snapshot: async (symbol, requestOptions) => (await snapshots(symbol, requestOptions)).snapshots[0] as SnapshotMessage,
    history: (symbols, historyOptions = {}) => readHistory(http, symbols, historyOptions),
    async *bars(...request) {
      yield* (await import('./bars.ts')).readBars({ ...client, http, isNotAfter }, ...request)
    },
  }
  return client
}
