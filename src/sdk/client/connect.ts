import type { Position, ServiceStatus, SnapshotMessage, Update } from '../generated/messages.ts'
import { eventStreamOpener, webSocketOpener } from './connection-openers.ts'
import { type HistoryOptions, readHistory } from './history-reader.ts'
import { createHttp } from './http-requests.ts'
import type { ConnectOptions, StreamItem, StreamOptions } from './options.ts'
import { type StreamSource, UpdateStream, type Updates } from './update-stream.ts'

/** A relay. Streams connect when they are read, each with a connection of its own. */
export type RelayClient = {
  readonly url: string
  /** The relay as a JSON-RPC node. */
  readonly rpcUrl: string
  /** The messages of some symbols, live, with everything that a long-lived client needs. `*` means all symbols. */
  updates<Type extends Update['type'] = Update['type']>(
    symbols: string | readonly string[],
    options?: StreamOptions<Type>,
  ): Updates<StreamItem<Type>>
  status(): Promise<ServiceStatus>
  /** The state of one token now. */
  snapshot(symbol: string): Promise<SnapshotMessage>
  /** The state of many tokens at one position. A stream with `since: as_of` goes on exactly there. */
  snapshots(symbols?: string | readonly string[]): Promise<SnapshotCut>
  /** Stored messages, page by page as they are taken. */
  history(symbols: string | readonly string[], options?: HistoryOptions): AsyncIterable<Update>
}

export type SnapshotCut = {
  readonly as_of: Position
  readonly snapshots: readonly SnapshotMessage[]
  readonly rejected: readonly { readonly symbol: string; readonly reason: string; readonly suggest: readonly string[] }[]
}

const HEARTBEAT_S = 5

/** Nothing is sent before something is asked for. */
export function connect(url: string | URL, options: ConnectOptions = {}): RelayClient {
  const http = createHttp(url, options)
  const source: StreamSource = {
    http,
    open: { websocket: webSocketOpener(http, options.key), sse: eventStreamOpener(http) },
    transport: options.transport,
    heartbeatS: options.heartbeatS ?? HEARTBEAT_S,
    now: () => performance.now(),
    random: Math.random,
    after: (ms, callback) => {
      const timer = setTimeout(callback, ms)
      return () => clearTimeout(timer)
    },
  }
  const snapshots: RelayClient['snapshots'] = (symbols = '*') =>
    http.getJson('v1/snapshot', new URLSearchParams({ symbols: String(symbols) }))
  return {
    url: String(http.urlOf('')),
    rpcUrl: String(http.urlOf('rpc')),
    updates: <Type extends Update['type']>(symbols: string | readonly string[], streamOptions: StreamOptions<Type> = {}) =>
      // The relay selects by type, so that the stream has the items of the selection.
      new UpdateStream(source, symbols, streamOptions) as Updates<StreamItem> as Updates<StreamItem<Type>>,
    status: () => http.getJson('v1/status'),
    snapshots,
    // The relay refuses a symbol that it does not know, so there is one.
    snapshot: async (symbol) => (await snapshots(symbol)).snapshots[0] as SnapshotMessage,
    history: (symbols, historyOptions = {}) => readHistory(http, symbols, historyOptions),
  }
}
