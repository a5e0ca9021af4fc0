import type { Client } from './client.ts'

/** Limit of the replays of one address that run at a time, in all processes together. Further replays wait. */
const REPLAYS_PER_ADDRESS_BOUND = 2

/** A waiting client is called back with true when it gets a slot, with false when it is gone. */
type AddressSlots = { running: number; readonly waiting: Map<Client, (isGranted: boolean) => void> }

/** Limits the replays of each address, because each of them reads the tape. */
export class ReplaySlots {
  readonly #limitOf: (address: string) => number | undefined
  readonly #workers: number
  readonly #byAddress = new Map<string, AddressSlots>()

  /** Each of the serving processes allows an equal share of the replays of an address, and at least one replay. */
  constructor(limitOf: (address: string) => number | undefined, workers: number) {
    this.#limitOf = limitOf
    this.#workers = workers
  }

  /** Runs a replay as soon as its address may have another one. A client that is gone before loses its turn. */
  async run(client: Client, replay: () => Promise<void>): Promise<void> {
    const { address } = client
    if (client.isGone) return
    const slots = this.#byAddress.get(address) ?? { running: 0, waiting: new Map() }
    this.#byAddress.set(address, slots)
    const bound = Math.max(1, Math.floor((this.#limitOf(address) ?? REPLAYS_PER_ADDRESS_BOUND) / this.#workers))
    if (slots.running < bound) slots.running += 1
    else if (!(await new Promise<boolean>((resolve) => slots.waiting.set(client, resolve)))) return
    try {
      await replay()
    } finally {
      const [next] = slots.waiting.keys()
      if (next) settle(slots, next, true)
      else slots.running -= 1
      if (slots.running === 0) this.#byAddress.delete(address)
    }
  }

  /** Ends the wait of a client that is gone. */
  leave(client: Client): void {
    const slots = this.#byAddress.get(client.address)
    if (slots) settle(slots, client, false)
  }
}

function settle({ waiting }: AddressSlots, client: Client, isGranted: boolean): void {
  waiting.get(client)?.(isGranted)
  waiting.delete(client)
}
