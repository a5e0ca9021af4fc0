import { LocalCounts } from './usage-counts.ts'

/** Limits what is reserved at a time, in total and by one client: bytes, or tasks. Without a client name, all are one client. */
export class Budget {
  readonly #perClient: number
  readonly #heldByClient = new LocalCounts()
  #available: number

  constructor(total: number, perClient = total) {
    this.#available = total
    this.#perClient = perClient
  }

  /** Returns false if the budget or the client's share has less left. */
  reserve(amount: number, client = ''): boolean {
    if (amount === 0) return true
    if (amount > this.#available || this.#heldByClient.count(client) + amount > this.#perClient) return false
    this.#available -= amount
    this.#heldByClient.change(client, amount)
    return true
  }

  release(amount: number, client = ''): void {
    this.#available += amount
    this.#heldByClient.change(client, -amount)
  }
}
