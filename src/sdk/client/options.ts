import type { GapMessage, Head, SnapshotMessage, Source, SubscribedMessage, Update } from '../generated/messages.ts'
import type { ValueFilters } from '../generated/names.ts'

/** How to reach the relay. */
export type ConnectOptions = {
  /** An API key, for a relay that requires one. */
  readonly key?: string
  /** Without it the client uses a WebSocket, and SSE where a WebSocket does not open. */
  readonly transport?: TransportName
  /** Seconds between two heartbeats, 1 to 60 (5). A relay that is silent for three of them is gone. */
  readonly heartbeatS?: number
}

export type TransportName = 'websocket' | 'sse'

/** What to receive, and how the stream begins and behaves. */
export type StreamOptions<Type extends Update['type'] = Update['type']> = ValueFilters & {
  /** The message types, or `*` for all. By default all but `approval` and `log`. */
  readonly types?: readonly Type[] | '*'
  /** `sealed` delivers facts only when their block is sealed. */
  readonly stage?: 'preconfirmed' | 'sealed'
  /** A position (exclusive), `start`, a duration (`90s`, `5m`, `2h`) or a time. By default the present. */
  readonly since?: string | Date
  /** `true` (default): snapshots come first, unless a position was resumed. `always`, or `false` for never. */
  readonly snapshot?: boolean | 'always'
  /** Throws a `GapError` instead of yielding a gap. */
  readonly strict?: boolean
  /** Reads what a gap left out from the history, and yields it in its place. A gap comes only where that fails. */
  readonly fill?: boolean
  /** Where the position is kept, so that a restarted program goes on where it stopped. */
  readonly store?: PositionStore
  /** Messages that may wait for the consumer (10,000). Beyond it the stream disconnects, and resumes once they are taken. */
  readonly queueBound?: number
  readonly signal?: AbortSignal
  /** Called at every change of the connection. */
  readonly onState?: (state: StreamState) => void
}

/** Holds the position of what the consumer has finished with. */
export type PositionStore = { load(): string | null | Promise<string | null>; save(position: string): void | Promise<void> }

/** The relay's gap, or one that the client found by itself: the stream is alive, and messages were missing in it. */
export type Gap = GapMessage | MissedGap
export type MissedGap = {
  readonly type: 'gap'
  /** Where the stream continues. */
  readonly id: string
  readonly reason: 'missed'
  /** The messages that are missing are after this position. */
  readonly after: string | null
  /** The messages that are missing are not after this position. */
  readonly through: string
  /** A path on the relay whose pages hold the messages after `after` through `through`, also those that were received. */
  readonly backfill: string | null
}

/** What a stream yields. How a delivered fact ends comes too, also where `types` does not name it. */
export type StreamItem<Type extends Update['type'] = Update['type']> =
  | Extract<Update, { type: Type | 'seal' | 'retract' | 'amend' }>
  | SnapshotMessage
  | Gap

/** The state of a stream's connection. */
export type StreamState = {
  /** `paused`: the consumer has too many messages to take first. `waiting`: until the next attempt to connect. */
  readonly phase: 'connecting' | 'replaying' | 'live' | 'paused' | 'waiting' | 'closed'
  readonly transport: TransportName | null
  /** Where a new connection would continue. */
  readonly position: string | null
  /** Messages that wait for the consumer. */
  readonly queued: number
  /** The relay's own state, as of its newest message about it. */
  readonly source: Source | null
  readonly head: Head | null
  /** Whether the relay's upstream is the built-in chain. */
  readonly demo: boolean | null
  /** Symbols that the relay does not know, with suggestions. */
  readonly rejected: SubscribedMessage['rejected']
  /** Why the last connection ended or could not be opened. */
  readonly reason: string | null
  /** Milliseconds until the next attempt. */
  readonly retryMs: number | null
  /** Attempts since the stream was last live. */
  readonly attempts: number
}
