import type { CloseReason } from '../../../protocol/close-codes.ts'
import type { KeyLimits } from '../../config/key-settings.ts'
import type { SharedUsage } from './shared-usage.ts'

/** Replays of one address that run at once, in all processes; the others wait. */
const REPLAYS_PER_ADDRESS_BOUND = 2

type ConnectionBounds = {
  readonly maxClients: number
  readonly maxClientsPerAddress: number
  /** The limits of a client that counts by its key. */
  readonly limitsOf?: (client: string) => KeyLimits | undefined
  /** The counts of all processes that serve one port; null where this is the only one. */
  readonly shared?: SharedUsage | null
  /** How many processes there are: each takes its share of the replays, at least one. */
  readonly workers?: number
}
/** A connected client and the address that it counts for. */
type ConnectedClient = { readonly address: string }
/** The usage of one address. A waiting client is called back with true for a slot, with false if it disconnected. */
type AddressUsage = { listeners: number; replays: number; readonly waiting: Map<ConnectedClient, (isGranted: boolean) => void> }

/** The name under which all connections are counted. */
const ALL = '*'

const noop = (): void => {}

/** Bounds connections in total and per address, and replays per address. */
export class ConnectionLimits {
  readonly #bounds: ConnectionBounds
  readonly #usageByAddress = new Map<string, AddressUsage>()
  #listeners = 0

  constructor(bounds: ConnectionBounds) {
    this.#bounds = bounds
  }

  /** The limit that refuses another connection from this address; null if there is room. */
  exceededLimit(address: string): Extract<CloseReason, 'full' | 'too_many_connections'> | null {
    const { maxClients, shared, limitsOf } = this.#bounds
    const maxClientsPerAddress = limitsOf?.(address)?.clients ?? this.#bounds.maxClientsPerAddress
    const ofAddress = shared ? shared.count(address) : (this.#usageByAddress.get(address)?.listeners ?? 0)
    if (ofAddress >= maxClientsPerAddress) return 'too_many_connections'
    return (shared ? shared.count(ALL) : this.#listeners) >= maxClients ? 'full' : null
  }

  /** Counts a client. Returns the limit that it exceeds, and then it does not count: another process may have been faster. */
  add({ address }: ConnectedClient): ReturnType<ConnectionLimits['exceededLimit']> {
    const exceeded = this.#share(address)
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
    for (const name of [client.address, ALL]) this.#bounds.shared?.change(name, -1)
    usage.listeners -= 1
    settleWaiting(usage, client, false)
    this.#forgetIfEmpty(client.address, usage)
  }

  /** Resolves when a client may start its replay, or has disconnected. Call the result when the replay ends. */
  async acquireReplaySlot(client: ConnectedClient): Promise<() => void> {
    const usage = this.#usageByAddress.get(client.address)
    if (!usage) return noop
    const { workers = 1, limitsOf } = this.#bounds
    const replays = limitsOf?.(client.address)?.replays ?? REPLAYS_PER_ADDRESS_BOUND
    const replaysBound = Math.max(1, Math.floor(replays / workers))
    if (usage.replays < replaysBound) usage.replays += 1
    else if (!(await new Promise<boolean>((resolve) => usage.waiting.set(client, resolve)))) return noop
    return () => {
      // The slot passes to the next waiting client.
      const [next] = usage.waiting.keys()
      if (next) return settleWaiting(usage, next, true)
      usage.replays -= 1
      this.#forgetIfEmpty(client.address, usage)
    }
  }

  /** Counts a client in all processes, unless that exceeds a limit. */
  #share(address: string): ReturnType<ConnectionLimits['exceededLimit']> {
    const { shared } = this.#bounds
    if (!shared) return null
    return shared.exclusively(() => {
      const exceeded = this.exceededLimit(address)
      if (!exceeded) for (const name of [address, ALL]) shared.change(name, 1)
      return exceeded
    })
  }

  /** Drops an unused address, so that the map does not grow. */
  #forgetIfEmpty(address: string, { listeners, replays }: AddressUsage): void {
    if (listeners === 0 && replays === 0) this.#usageByAddress.delete(address)
  }
}

/** Ends the wait of a client, if it waits. */
function settleWaiting({ waiting }: AddressUsage, client: ConnectedClient, isGranted: boolean): void {
  waiting.get(client)?.(isGranted)
  waiting.delete(client)
}
