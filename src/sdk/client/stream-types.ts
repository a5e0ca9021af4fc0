import type { GapMessage, Head, SnapshotMessage, Source, SubscribedMessage, Update } from '../generated/messages.ts'
import type { ValueFilters } from '../generated/names.ts'
import type { StocktapeError } from './errors.ts'

export type ConnectOptions = {
  /** An API key, for a relay that requires one. A function is called for each connection and request. The key is never in a URL. */
  readonly key?: string | (() => string | Promise<string>)
  /** By default the client uses a WebSocket, or SSE if a WebSocket does not open. */
  readonly transport?: TransportName
  /** Milliseconds between heartbeats, 1,000 to 60,000; default 5,000. After three missed heartbeats the client reconnects. */
  readonly heartbeatInterval?: number
  readonly retry?: RetryOptions
  readonly fetch?: typeof globalThis.fetch
  readonly WebSocket?: new (url: URL, protocol: string) => WebSocket
}

export type RetryOptions = {
  /**
   * Attempts in a row that may fail. By default a client that has never reached its relay gives up at once, because its URL
   * is probably wrong. Later it never gives up, unless the relay would refuse each attempt.
   */
  readonly attempts?: number
  /** Limit on the average wait between two attempts in milliseconds; default 30,000. */
  readonly maxDelay?: number
}

export type StreamOptions<Type extends Update['type'] = Update['type']> = ValueFilters & {
  /** Message types, or `*` for all. By default all except `approval` and `log`. */
  readonly types?: readonly Type[] | '*' | undefined
  /** With `sealed`, facts are delivered only once their block is sealed. */
  readonly stage?: 'preconfirmed' | 'sealed'
  /** Start of the stream: a position (exclusive), `start`, a duration (`90s`, `5m`, `2h`) or a time. By default now. */
  readonly since?: string | Date | undefined
  /** `true` (default): snapshots first, unless the stream resumes at a position. `always`: snapshots first. `false`: none. */
  readonly snapshot?: boolean | 'always'
  /**
   * Says what to do if messages are missing. `yield` (default): yield a gap. `fill`: read the messages from the history, and yield
   * them in place of the gap, or the gap if that fails. `throw`: throw a `GapError`.
   */
  readonly gaps?: 'yield' | 'fill' | 'throw'
  /** Keeps the position, so that a restarted program continues where it stopped. */
  readonly store?: PositionStore
  /** Limit on the messages that wait for the consumer; default 10,000. At the limit the stream disconnects, and resumes later. */
  readonly highWaterMark?: number
  readonly signal?: AbortSignal
  /** Called after each change of the state. */
  readonly onState?: (state: StreamState) => void
  /** Called after each failure of the connection, also if the stream continues. `state.retryAt` is the time of the next attempt. */
  readonly onError?: (error: StocktapeError) => void
}

/** Saves and loads the position up to which the consumer has finished. */
export type PositionStore = { load(): string | null | Promise<string | null>; save(position: string): void | Promise<void> }

/** A gap that the relay reports, or one that the client found in a stream that is alive. */
export type Gap = GapMessage | MissedGap
/** The pages at `backfill` also contain the messages that were received. */
export type MissedGap = Omit<GapMessage, 'reason'> & { readonly reason: 'missed' }

/** An item of a stream. The messages that end a delivered fact are included even if `types` does not name them. */
export type StreamItem<Type extends Update['type'] = Update['type']> =
  | Extract<Update, { type: Type | 'seal' | 'retract' | 'amend' }>
  | SnapshotMessage
  | Gap

export type TransportName = 'websocket' | 'sse'

export type StreamState = {
  /** `paused`: too many messages wait for the consumer. `waiting`: the next attempt to connect follows at `retryAt`. */
  readonly phase: 'connecting' | 'replaying' | 'live' | 'paused' | 'waiting' | 'closed'
  readonly transport: TransportName | null
  /** Position up to which the consumer has finished. A new stream can continue there. */
  readonly position: string | null
  /** Number of messages that wait for the consumer. */
  readonly queued: number
  /** Source of the relay, from the newest message that names it; null while there is no connection. */
  readonly source: Source | null
  readonly head: Head | null
  /** Whether the relay's upstream is the built-in chain. */
  readonly demo: boolean | null
  /** Symbols that the relay does not know. */
  readonly rejected: SubscribedMessage['rejected']
  /**
   * Whether the last replay was compared with its receipt. False if the platform has no `crypto.subtle`, such as a page without
   * HTTPS, or if the replay was longer than 100,000 messages. Its messages were then only counted.
   */
  readonly verified: boolean | null
  /** Why the last connection ended or could not be opened; null while the stream is live. */
  readonly error: Pick<StocktapeError, 'code' | 'reason' | 'message'> | null
  /** Time of the next attempt. */
  readonly retryAt: Date | null
  /** Connections in a row that failed or ended. A heartbeat ends the row. */
  readonly attempts: number
}

/** State before the stream is first read. */
export const initialState: Omit<StreamState, 'queued'> = {
  phase: 'connecting',
  transport: null,
  position: null,
  source: null,
  head: null,
  demo: null,
  rejected: [],
  verified: null,
  error: null,
  retryAt: null,
  attempts: 0,
}
