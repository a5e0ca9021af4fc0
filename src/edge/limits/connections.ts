import type { CloseReason } from '../../protocol/close-codes.ts'

/** Replays that run at once for one address; the others wait for their turn. */
const REPLAYS_PER_ADDRESS_BOUND = 2

type ConnectionBounds = { readonly clientsBound: number; readonly perAddressBound: number }
/** Somebody who listens, and whom it is counted for. */
type ConnectedClient = { readonly address: string }
/** Those of one address. Who waits for its turn is told whether it has come; it may have left instead. */
type AddressUsage = {
  listeners: number
  replays: number
  readonly waiting: Map<ConnectedClient, (isGranted: boolean) => void>
}

const noop = (): void => {}

/** How many listen and how many read what was, in all and from one address. */
export class ConnectionLimits {
  readonly #bounds: ConnectionBounds
  readonly #usageByAddress = new Map<string, AddressUsage>()
  #listeners = 0

  constructor(bounds: ConnectionBounds) {
    this.#bounds = bounds
  }

  /** Why nobody else can come in from an address; null if there is room. */
  exceededLimit(address: string): Extract<CloseReason, 'full' | 'too_many_connections'> | null {
    const { clientsBound, perAddressBound } = this.#bounds
    if ((this.#usageByAddress.get(address)?.listeners ?? 0) >= perAddressBound) return 'too_many_connections'
    return this.#listeners >= clientsBound ? 'full' : null
  }

  add({ address }: ConnectedClient): void {
    const usage = this.#usageByAddress.get(address)
    if (usage) usage.listeners += 1
    else this.#usageByAddress.set(address, { listeners: 1, replays: 0, waiting: new Map() })
    this.#listeners += 1
  }

  remove(client: ConnectedClient): void {
    const usage = this.#usageByAddress.get(client.address)
    if (!usage) return
    this.#listeners -= 1
    usage.listeners -= 1
    settleWaiting(usage, client, false)
    this.#forgetIfEmpty(client.address, usage)
  }

  /** Resolves when a guest may begin to replay, or has left, with what is to be called when it is through. */
  async acquireReplaySlot(client: ConnectedClient): Promise<() => void> {
    const usage = this.#usageByAddress.get(client.address)
    if (!usage) return noop
    if (usage.replays < REPLAYS_PER_ADDRESS_BOUND) usage.replays += 1
    else if (!(await new Promise<boolean>((resolve) => usage.waiting.set(client, resolve)))) return noop
    return () => {
      // Whoever is through hands its turn on.
      const [next] = usage.waiting.keys()
      if (next) return settleWaiting(usage, next, true)
      usage.replays -= 1
      this.#forgetIfEmpty(client.address, usage)
    }
  }

  /** An address of which nobody is left is forgotten. */
  #forgetIfEmpty(address: string, { listeners, replays }: AddressUsage): void {
    if (listeners === 0 && replays === 0) this.#usageByAddress.delete(address)
  }
}

/** Tells a guest that waits for its turn, if it does, that it need not any longer. */
function settleWaiting({ waiting }: AddressUsage, client: ConnectedClient, isGranted: boolean): void {
  waiting.get(client)?.(isGranted)
  waiting.delete(client)
}
