/** What the consumer takes: an item, a range to read first, or nothing but a position that was passed. */
export type QueueEntry<Item> = {
  /** Where a restarted program continues once the entry is finished. */
  readonly position: string | null
  readonly item?: Item
  readonly fill?: () => AsyncGenerator<Item>
}

/** Entries in order, between the connection and one consumer. Its owner bounds it. */
export class ItemQueue<Item> {
  #entries: QueueEntry<Item>[] = []
  #wake: () => void = () => {}
  /** Set at the end: a failure to throw, or null. */
  #end: { failure: Error | null } | null = null

  get size(): number {
    return this.#entries.length
  }

  push(entry: QueueEntry<Item>): void {
    if (this.#end) return
    const last = this.#entries.at(-1)
    // A position replaces the one before it, so that heartbeats do not pile up.
    if (last && isOnlyPosition(last) && isOnlyPosition(entry)) this.#entries.pop()
    this.#entries.push(entry)
    this.#wake()
  }

  /** The queued entries are still taken, and later ones ignored. Then the failure is thrown once, or the stream is over. */
  end(failure: Error | null): void {
    this.#end = { failure }
    this.#wake()
  }

  clear(): void {
    this.#entries = []
  }

  /** The next entry, or null at the end. */
  async take(): Promise<QueueEntry<Item> | null> {
    while (this.#entries.length === 0) {
      if (this.#end) {
        const { failure } = this.#end
        this.#end = { failure: null }
        if (failure) throw failure
        return null
      }
      await new Promise<void>((resolve) => {
        this.#wake = resolve
      })
    }
    return this.#entries.shift() ?? null
  }
}

const isOnlyPosition = <Item>({ item, fill }: QueueEntry<Item>): boolean => !item && !fill
