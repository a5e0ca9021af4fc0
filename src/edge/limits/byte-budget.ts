/** So many bytes may be held at once, and so many of them by one; where nobody is named, by whoever it is. */
export class ByteBudget {
  readonly #perClientBytes: number
  readonly #heldByClient = new Map<string, number>()
  #availableBytes: number

  constructor(bytes: number, perClientBytes = bytes) {
    this.#availableBytes = bytes
    this.#perClientBytes = perClientBytes
  }

  /** Sets bytes aside; false if there are not as many left, or not for this one. */
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
