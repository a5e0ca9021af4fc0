import type { Head, Source, SubscribedMessage } from '../generated/messages.ts'

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
