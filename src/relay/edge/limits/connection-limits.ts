import type { CloseReason } from '../../../protocol/close-codes.ts'
import type { KeyLimits } from '../../config/api-key-settings.ts'
import type { SharedUsage } from './shared-usage.ts'

/** Limit of the replays of one address that run at a time, in all processes together. Further replays wait. */
const REPLAYS_PER_ADDRESS_BOUND = 2

export type ConnectionBounds = {
  readonly maxClients: number
  readonly maxClientsPerAddress: number
  readonly limitsOf?: (client: string) => KeyLimits | undefined
  /** The counts of all processes that serve one port; null if there is only one. */
  readonly sharedUsage?: SharedUsage | null
  /** Number of serving processes. Each one allows an equal share of the replays of an address, and at least one replay. */
  readonly workers?: number
}
/** A connected client. `address` is the name under which it is counted: that of its API key, or its network address. */
type ConnectedClient = { readonly address: string }
/** A waiting client is called back with true when it gets a replay slot, with false when it disconnects. */
type AddressUsage = { listeners: number; replays: number; readonly waiting: Map<ConnectedClient, (isGranted: boolean) => void> }

const ALL = '*'

const noop = (): void => {}

export class ConnectionLimits {
  readonly #bounds: ConnectionBounds
  readonly #usageByAddress = new Map<string, AddressUsage>()
  #listeners = 0

  constructor(bounds: ConnectionBounds) {
    this.#bounds = bounds
  }

  /** Returns the number of connections of an address in this process. */
  countOf(address: string): number {
    return this.#usageByAddress.get(address)?.listeners ?? 0
  }

  /** Returns the limit that another connection from this address would exceed; null if there is room. */
  exceededLimit(address: string): Extract<CloseReason, 'full' | 'too_many_connections'> | null {
    const { maxClients, sharedUsage: shared, limitsOf } = this.#bounds
    const maxClientsPerAddress = limitsOf?.(address)?.clients ?? this.#bounds.maxClientsPerAddress
    const ofAddress = shared ? shared.count(address) : (this.#usageByAddress.get(address)?.listeners ?? 0)
    if (ofAddress >= maxClientsPerAddress) return 'too_many_connections'
    return (shared ? shared.count(ALL) : this.#listeners) >= maxClients ? 'full' : null
  }

  /** Counts a client. Returns the limit that it exceeds, if another process has accepted a client since the last check. */
  add({ address }: ConnectedClient): ReturnType<ConnectionLimits['exceededLimit']> {
    const { sharedUsage: shared } = this.#bounds
    const exceeded = shared?.exclusively(() => {
      const limit = this.exceededLimit(address)
      if (!limit) for (const name of [address, ALL]) shared.change(name, 1)
      return limit
    })
    if (exceeded) return exceeded
    const usage = this.#usageByAddress.get(address)
    if (usage) usage.listeners += 1
    else this.#usageByAddress.set(address, { listeners: 1, replays: 0, waiting: new Map() })
    this.#listeners += 1
    return null
  }

  remove(client: ConnectedClient): void {
    const usage = this.#usageByAddress.get(client.address)
    if (!usage) return
    this.#listeners -= 1
    for (const name of [client.address, ALL]) this.#bounds.sharedUsage?.change(name, -1)
    usage.listeners -= 1
    settleWaiting(usage, client, false)
    this.#forgetIfEmpty(client.address, usage)
  }

  /** Resolves when a client may start its replay, or has disconnected. Call the returned function when the replay ends. */
  async acquireReplaySlot(client: ConnectedClient): Promise<() => void> {
    const usage = this.#usageByAddress.get(client.address)
    if (!usage) return noop
    const { workers = 1, limitsOf } = this.#bounds
    const replays = limitsOf?.(client.address)?.replays ?? REPLAYS_PER_ADDRESS_BOUND
    const replaysBound = Math.max(1, Math.floor(replays / workers))
    if (usage.replays < replaysBound) usage.replays += 1
    else if (!(await new Promise<boolean>((resolve) => usage.waiting.set(client, resolve)))) return noop
    return () => {
      const [next] = usage.waiting.keys()
      if (next) return settleWaiting(usage, next, true)
      usage.replays -= 1
      this.#forgetIfEmpty(client.address, usage)
    }
  }

  #forgetIfEmpty(address: string, { listeners, replays }: AddressUsage): void {
    if (listeners === 0 && replays === 0) this.#usageByAddress.delete(address)
  }
}

function settleWaiting({ waiting }: AddressUsage, client: ConnectedClient, isGranted: boolean): void {
  waiting.get(client)?.(isGranted)
  waiting.delete(client)
}
