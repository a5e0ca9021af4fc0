import type { IncomingMessage } from 'node:http'
import type { SearchableTape } from '../../tape/tape.ts'
import type { KeyRing } from '../limits/api-key-ring.ts'
import type { Authorizer } from '../limits/authorizer.ts'
import type { View } from '../select/state-view.ts'
import type { Hub } from './hub.ts'

/** Everything that the sessions of this relay share. */
export type EdgeContext = {
  readonly hub: Hub
  readonly view: View
  readonly tape: SearchableTape
  /** The wall clock without its steps: for ages, and for what the tape kept when. */
  readonly now: () => number
  /** For what shows a time. */
  readonly wallTime: () => number
  /** Monotonic milliseconds, unaffected by changes of the wall clock. */
  readonly uptime: () => number
  readonly chainId: () => number | null
  /** Whether every upstream URL is of another chain. */
  readonly isWrongChain: () => boolean
  readonly server: string
  readonly demo: boolean
  readonly heartbeatMs: number
  readonly navStaleAfterMs: number
  readonly maxSelections: number
  readonly maxReplay: number
  readonly maxBacklogBytes: number
  readonly tapeRetentionMs: number
}

/** Everything that opens and refuses the streams of clients. */
export type StreamServices = {
  readonly edge: EdgeContext
  readonly random: () => number
  readonly createConnectionId: () => string
  /** The address that a connection counts for. */
  readonly clientAddressOf: (incoming: IncomingMessage) => string
  readonly authorize: Authorizer
  /** The keys that clients need; null where they need none. */
  readonly keys: KeyRing | null
  /** Whether WebSocket messages are compressed for clients that offer it. */
  readonly compression: boolean
  readonly warn: (kind: string, detail: unknown) => void
  /** Receives the HTTP status of each refusal; none where the connection is closed without an answer. */
  readonly countRefusal: (code: number | 'none') => void
}
