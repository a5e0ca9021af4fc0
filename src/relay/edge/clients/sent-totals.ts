import type { ApiKeyRing } from '../limits/api-key-ring.ts'
import type { Client } from './client.ts'

/** Numbers of clients that are connected, and of the updates and bytes that were sent to all. */
export type Sent = { clients: number; messages: number; bytes: number }

/** Sums what was sent, by transport and by API key. A client counts for itself, and is read only when it ends or is measured. */
export class SentTotals {
  readonly #keys: ApiKeyRing | null
  /** Sums over clients that are gone. */
  readonly #ended = new Map<string, Sent>()

  constructor(keys: ApiKeyRing | null) {
    this.#keys = keys
  }

  /** Call it once, when a client is gone. */
  end(client: Client): void {
    this.#add(this.#ended, client, 0)
  }

  /** Returns the sums with those of the connected clients, by the names of transports and of clients with API keys. */
  measure(connected: Iterable<Client>): ReadonlyMap<string, Sent> {
    const sums = new Map([...this.#ended].map(([name, sent]) => [name, { ...sent }]))
    for (const client of connected) this.#add(sums, client, 1)
    return sums
  }

  #add(sums: Map<string, Sent>, { transport, address, sent, sentBytes }: Client, connections: 0 | 1): void {
    for (const name of this.#keys?.clients.has(address) ? [transport, address] : [transport]) {
      const sum = sums.get(name) ?? { clients: 0, messages: 0, bytes: 0 }
      sums.set(name, sum)
      sum.clients += connections
      sum.messages += sent
      sum.bytes += sentBytes
    }
  }
}
