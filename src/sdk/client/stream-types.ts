import type { GapMessage, Head, SnapshotMessage, Source, SubscribedMessage, Update } from '../generated/messages.ts'
import type { ValueFilters } from '../generated/names.ts'

export type ConnectOptions = {
  /** An API key, for a relay that requires one. */
  readonly key?: string
  /** By default the client uses a WebSocket, or SSE if a WebSocket does not open. */
  readonly transport?: TransportName
  /** Seconds between heartbeats, 1 to 60; default 5. After three missed heartbeats the client reconnects. */
  readonly heartbeatS?: number
}

export type StreamOptions<Type extends Update['type'] = Update['type']> = ValueFilters & {
  /** Message types, or `*` for all. By default all except `approval` and `log`. */
  readonly types?: readonly Type[] | '*'
  /** With `sealed`, facts are delivered only once their block is sealed. */
  readonly stage?: 'preconfirmed' | 'sealed'
  /** Start of the stream: a position (exclusive), `start`, a duration (`90s`, `5m`, `2h`) or a time. By default now. */
  readonly since?: string | Date
  /** `true` (default): snapshots first, unless the stream resumes at a position. `always`: snapshots first. `false`: none. */
  readonly snapshot?: boolean | 'always'
  /** Throw a `GapError` instead of yielding a gap. */
  readonly strict?: boolean
  /** Read the messages that a gap left out, and yield them instead of the gap. If that fails, the gap is yielded. */
  readonly fill?: boolean
  /** Keeps the position, so that a restarted program continues where it stopped. */
  readonly store?: PositionStore
  /** Limit on the messages that wait for the consumer; default 10,000. At the limit the stream disconnects, and resumes later. */
  readonly queueBound?: number
  readonly signal?: AbortSignal
  /** Called after each change of the state. */
  readonly onState?: (state: StreamState) => void
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
  /** `paused`: too many messages wait for the consumer. `waiting`: the next attempt to connect follows in `retryMs`. */
  readonly phase: 'connecting' | 'replaying' | 'live' | 'paused' | 'waiting' | 'closed'
  readonly transport: TransportName | null
  /** Position up to which the consumer has finished. A new stream can continue there. */
  readonly position: string | null
  /** Number of messages that wait for the consumer. */
  readonly queued: number
  /** Source of the relay, from the newest message that names it. */
  readonly source: Source | null
  readonly head: Head | null
  /** Whether the relay's upstream is the built-in chain. */
  readonly demo: boolean | null
  /** Symbols that the relay does not know. */
  readonly rejected: SubscribedMessage['rejected']
  /** Why the last connection ended or could not be opened. */
  readonly reason: string | null
  /** Milliseconds until the next attempt. */
  readonly retryMs: number | null
  /** Attempts since the stream was last live. */
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
  reason: null,
  retryMs: null,
  attempts: 0,
}
