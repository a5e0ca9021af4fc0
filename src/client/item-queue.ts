/** What the consumer takes: an item, a range to read first, or nothing but a position that was passed. */
export type QueueEntry<Item> = {
  /** Where a restarted program goes on once the entry is finished. */
  readonly position: string | null
  readonly item?: Item
  readonly fill?: () => AsyncGenerator<Item>
}

/** Entries in order, between the connection and one consumer. */
export class ItemQueue<Item> {
  #entries: QueueEntry<Item>[] = []
  #taken = 0
  #wake: (() => void) | null = null
  #failure: Error | null = null
  #isEnded = false

  /** Entries with content. */
  get size(): number {
    return this.#entries.length - this.#taken
  }

  push(entry: QueueEntry<Item>): void {
    const last = this.#entries.length - 1
    // A position replaces the one before it, so that heartbeats do not pile up.
    if (this.size > 0 && isOnlyPosition(entry) && isOnlyPosition(this.#entries[last])) this.#entries[last] = entry
    else this.#entries.push(entry)
    this.#wake?.()
  }

  /** The queued entries are still taken; then the failure is thrown, or the stream is over. */
  end(failure: Error | null): void {
    if (this.#isEnded) return
    this.#isEnded = true
    this.#failure = failure
    this.#wake?.()
  }

  clear(): void {
    this.#entries = []
    this.#taken = 0
  }

  /** The next entry, or null at the end. */
  async take(): Promise<QueueEntry<Item> | null> {
    while (this.size === 0) {
      if (this.#failure) {
        const failure = this.#failure
        this.#failure = null
        throw failure
      }
      if (this.#isEnded) return null
      await new Promise<void>((resolve) => {
        this.#wake = resolve
      })
      this.#wake = null
    }
    const entry = this.#entries[this.#taken]
    this.#taken += 1
    // Cutting the front off at every entry would copy the rest each time.
    if (this.#taken === this.#entries.length) this.clear()
    else if (this.#taken === COMPACTED_AT) {
      this.#entries = this.#entries.slice(this.#taken)
      this.#taken = 0
    }
    return entry ?? null
  }
}

const COMPACTED_AT = 1_024
const isOnlyPosition = (entry: QueueEntry<unknown> | undefined): boolean => entry !== undefined && !('item' in entry) && !entry.fill
