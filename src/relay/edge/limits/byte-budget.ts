/** Limits the bytes that are reserved at a time, in total and by one client. Without a client name, all callers are one client. */
export class ByteBudget {
  readonly #perClientBytes: number
  readonly #heldByClient = new Map<string, number>()
  #availableBytes: number

  constructor(bytes: number, perClientBytes = bytes) {
    this.#availableBytes = bytes
    this.#perClientBytes = perClientBytes
  }

  /** Returns false if the budget or the client's share has fewer bytes left. */
  reserve(bytes: number, client = ''): boolean {
    if (bytes === 0) return true
    const held = (this.#heldByClient.get(client) ?? 0) + bytes
    if (bytes > this.#availableBytes || held > this.#perClientBytes) return false
    this.#availableBytes -= bytes
    this.#heldByClient.set(client, held)
    return true
  }

  release(bytes: number, client = ''): void {
    const held = (this.#heldByClient.get(client) ?? 0) - bytes
    this.#availableBytes += bytes
    if (held > 0) this.#heldByClient.set(client, held)
    else this.#heldByClient.delete(client)
  }
}
