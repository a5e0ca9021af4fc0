import type { ApiKeyRing } from './api-key-ring.ts'

/** Numbers of updates and of bytes that were sent. */
type Sent = { messages: number; bytes: number }

/** A connection that counts what it sent. `sent` is null if it counts bytes only. `address` may be the client of an API key. */
export type Sender = {
  readonly address: string
  readonly transport: string
  readonly sent: number | null
  readonly sentBytes: number
}

/** Sums what was sent by transport and by API key. A connection counts for itself, and is read only when it ends or is measured. */
export class SentTotals {
  readonly #keys: ApiKeyRing | null
  /** Sums over connections that have ended. The ring of keys holds the same by key. */
  readonly #ended = new Map<string, Sent>()

  constructor(keys: ApiKeyRing | null) {
    this.#keys = keys
  }

  /** Call it once, when a connection ends. */
  end(sender: Sender): void {
    add(sentOf(this.#ended, sender.transport), sender)
    const usage = this.#keys?.usageOf(sender.address)
    if (usage) add(usage, sender)
  }

  /** Returns the sums with those of the connected clients. */
  measure(connected: Iterable<Sender>): Record<'byTransport' | 'byClient', ReadonlyMap<string, Sent>> {
    const byTransport = new Map([...this.#ended].map(([transport, sent]) => [transport, { ...sent }]))
    const byClient = new Map([...(this.#keys?.clients ?? [])].map(([client, { usage }]) => [client, { ...usage }]))
    for (const sender of connected) {
      add(sentOf(byTransport, sender.transport), sender)
      const ofClient = byClient.get(sender.address)
      if (ofClient) add(ofClient, sender)
    }
    return { byTransport, byClient }
  }
}

function add(total: Sent, { sent, sentBytes }: Sender): void {
  total.messages += sent ?? 0
  total.bytes += sentBytes
}

function sentOf(totals: Map<string, Sent>, transport: string): Sent {
  const known = totals.get(transport) ?? { messages: 0, bytes: 0 }
  totals.set(transport, known)
  return known
}
