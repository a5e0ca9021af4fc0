import type { RelayClient, StreamItem, StreamState, Updates } from '../client/index.ts'
import { covers, type TapeUnion } from './tape-selection.ts'
import type { TapeMemory } from './tape-state.ts'

/** Components that mount within this time share one new stream. */
const GROWTH_DELAY_MS = 20
/** Time for which the stream keeps symbols that no component selects, since a component may select them again soon. */
const SHRINK_DELAY_MS = 30_000

type UnionStreamHandlers = {
  readonly onItem: (item: StreamItem) => void
  readonly onFeed: (feed: StreamState) => void
  readonly onUnion: () => void
}

/** One stream of the wanted union. When the union changes, a new stream continues at the position of the old one. */
export class UnionStream {
  readonly #relay: Pick<RelayClient, 'updates'>
  readonly #memory: TapeMemory
  readonly #handlers: UnionStreamHandlers
  #wanted: TapeUnion
  #items: Updates<StreamItem> | null = null
  #timer: ReturnType<typeof setTimeout> | undefined
  #isGrowing = false

  constructor(relay: Pick<RelayClient, 'updates'>, memory: TapeMemory, handlers: UnionStreamHandlers) {
    this.#relay = relay
    this.#memory = memory
    this.#handlers = handlers
    this.#wanted = memory.state.union
  }

  want(union: TapeUnion): void {
    this.#wanted = union
    const { union: open } = this.#memory.state
    if (this.#isGrowing) return
    clearTimeout(this.#timer)
    this.#isGrowing = this.#items === null || !covers(open, union)
    if (this.#isGrowing || !covers(union, open))
      this.#timer = setTimeout(() => this.#restart(), this.#isGrowing ? GROWTH_DELAY_MS : SHRINK_DELAY_MS)
  }

  close(): void {
    clearTimeout(this.#timer)
    const items = this.#items
    this.#items = null
    void items?.close()
  }

  #restart(): void {
    this.close()
    this.#isGrowing = false
    if (this.#wanted.symbols.length === 0) return
    const { union, feed, isComplete } = this.#memory.state
    const isCovered = isComplete && covers(union, this.#wanted)
    this.#memory.startUnion(this.#wanted, isCovered)
    this.#handlers.onUnion()
    const { symbols, isEveryType } = this.#wanted
    const items: Updates<StreamItem> = this.#relay.updates(symbols, {
      ...(isEveryType && { types: '*' }),
      ...(feed.position !== null && { since: feed.position }),
      // Snapshots are needed if a symbol is new, or if not all snapshots were received yet.
      snapshot: isCovered || 'always',
      gaps: 'fill',
      onState: (state) => {
        if (items !== this.#items) return
        this.#memory.takeFeed(state)
        this.#handlers.onFeed(state)
      },
    })
    this.#items = items
    void this.#read(items)
  }

  async #read(items: Updates<StreamItem>): Promise<void> {
    try {
      for await (const item of items) {
        if (items !== this.#items) return
        this.#memory.take(item)
        this.#handlers.onItem(item)
      }
    } catch {
      // The state of the stream contains the reason. The next call of `want` opens a new stream.
      if (items === this.#items) this.#items = null
    }
  }
}
