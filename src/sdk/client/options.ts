import type { Update } from '../generated/messages.ts'
import type { ValueFilters } from '../generated/names.ts'
import type { StreamState, TransportName } from './stream-state.ts'

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
