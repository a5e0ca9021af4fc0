/** An item, a range to read before the next entry, or only a position up to which there are no items. */
export type QueueEntry<Item> = {
  /** Position at which a restarted program continues, once the consumer has finished with the entry. */
  readonly position: string | null
  readonly item?: Item
  readonly fill?: () => AsyncGenerator<Item>
}

/** First in, first out, for one consumer. Its owner limits the size. */
export class ItemQueue<Item> {
  #entries: QueueEntry<Item>[] = []
  #wake: () => void = () => {}
  #end: { failure: Error | null } | null = null

  get size(): number {
    return this.#entries.length
  }

  push(entry: QueueEntry<Item>): void {
    if (this.#end) return
    const last = this.#entries.at(-1)
    // A position replaces the one before it, so that heartbeats do not fill the queue.
    if (last && isOnlyPosition(last) && isOnlyPosition(entry)) this.#entries.pop()
    this.#entries.push(entry)
    this.#wake()
  }

  /** Ignores later entries. Once the queue is empty, `take` throws the failure once, then returns null. */
  end(failure: Error | null): void {
    this.#end = { failure }
    this.#wake()
  }

  clear(): void {
    this.#entries = []
  }

  /** Waits for the next entry; null at the end. */
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
