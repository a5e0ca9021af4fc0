/** Ids to cache bytes for. Each connection counts its ids from one, so most use the first few. */
const SHARED_IDS_BOUND = 64

export type Subscriber = { readonly id: string; notify(notice: SubscriptionNotice): void }

/** One notice for many subscribers. It is encoded once per id. */
export class SubscriptionNotice {
  /** Whether it is of a backfill, which may send many at once: a backlog is then not the client's fault. */
  readonly isLate: boolean
  readonly #text: string
  readonly #bytes = new Map<string, Buffer>()

  constructor(text: string, isLate: boolean) {
    this.#text = text
    this.isLate = isLate
  }

  /** The notification under an id, in the bytes of a transport. */
  bytes(id: string, encode: (text: string) => Buffer): Buffer {
    const cached = this.#bytes.get(id)
    if (cached) return cached
    const bytes = encode(`{"jsonrpc":"2.0","method":"eth_subscription","params":{"subscription":"${id}","result":${this.#text}}}`)
    if (this.#bytes.size < SHARED_IDS_BOUND) this.#bytes.set(id, bytes)
    return bytes
  }
}
