import type { IncomingMessage } from 'node:http'
import type { Config } from '../../config/config.ts'
import type { Host } from '../../host.ts'
import type { SharedTapeLink, Tape } from '../../tape/tape.ts'
import type { Clients } from '../clients/clients.ts'
import type { ApiKeyRing } from '../limits/api-key-ring.ts'
import type { Authorizer } from '../limits/authorizer.ts'
import type { CurrentState } from '../select/current-state.ts'
import type { Hub } from './hub.ts'

/** The parts and settings that all requests and streams share. */
export type EdgeContext = Pick<Config['edge'], 'heartbeatMs' | 'maxSelections' | 'maxReplay'> &
  Omit<Host, 'clock'> & {
    readonly hub: Hub
    readonly clients: Clients
    readonly current: CurrentState
    readonly tape: Tape
    /** Null if no other process writes the tape. */
    readonly shared: SharedTapeLink | null
    readonly chainId: () => number | null
    /** Whether every upstream URL belongs to another chain. */
    readonly isWrongChain: () => boolean
    readonly server: string
    readonly demo: () => boolean
    /** Whether other processes serve the same tape, so that a client may reconnect at once. */
    readonly isOneOfMany: boolean
    readonly navStaleAfterMs: number
    readonly tapeRetentionMs: number
    readonly createConnectionId: () => string
    /** Returns the name under which a connection is counted: that of its API key, or its network address. */
    readonly clientAddressOf: (incoming: IncomingMessage) => string
    readonly authorize: Authorizer
    /** The API keys that clients need; null if they need none. */
    readonly keys: ApiKeyRing | null
    readonly compression: boolean
    /** Receives the HTTP status of each refusal with its request, or `none` if the connection is closed without an answer. */
    readonly countRefusal: (code: number | 'none', incoming?: IncomingMessage) => void
  }
