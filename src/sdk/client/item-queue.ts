import type { StreamItem } from './stream-types.ts'

/** An entry with an item, with a `fill` that yields items, or with only a position. */
export type QueueEntry = {
  /** Position to save once the consumer has finished with the entry: a restarted program continues there. Null saves none. */
  readonly position: string | null
  readonly item?: StreamItem
  readonly fill?: () => AsyncGenerator<StreamItem>
}

/** A queue for one consumer, first in, first out. The stream that fills it limits its size. */
export class ItemQueue {
  #entries: QueueEntry[] = []
  #wake: () => void = () => {}
  #end: { failure: Error | null } | null = null

  get size(): number {
    return this.#entries.length
  }

  push(entry: QueueEntry): void {
    if (this.#end) return
    const last = this.#entries.at(-1)
    // Two entries in a row with only a position become one, so that heartbeats do not fill the queue.
    if (last && isOnlyPosition(last) && isOnlyPosition(entry)) this.#entries.pop()
    this.#entries.push(entry)
    this.#wake()
  }

  /** Ends the queue: it ignores new entries. Once it is empty, `take` throws the failure once, then returns null. */
  end(failure: Error | null): void {
    this.#end = { failure }
    this.#wake()
  }

  clear(): void {
    this.#entries = []
  }

  /** Waits for the next entry. Returns null at the end of the queue. */
  async take(): Promise<QueueEntry | null> {
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

const isOnlyPosition = ({ item, fill }: QueueEntry): boolean => !item && !fill
