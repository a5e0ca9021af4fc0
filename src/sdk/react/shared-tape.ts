import { book, type SnapshotMessage, type StockState, type StreamItem, type StreamState, type Update } from '../client/index.ts'
import { isNotAfter } from '../client/position-order.ts'
import { selectsStock, type TapeUnion, unionOf, unite } from './tape-selection.ts'
import { emptyState, inOrder, type TapeFeed, type TapeMemory, type TapeState } from './tape-state.ts'

/** Time that the connection stays open after the last component unmounts, since another component may mount soon. */
const RELEASE_GRACE_MS = 2_000
/** Changes within this time cause one rendering. */
const RENDER_INTERVAL_MS = 16
const UPDATES_BOUND = 1_000
/** Limit on the updates while pasts that were read exceed `UPDATES_BOUND`. */
const PASTS_BOUND = 20_000
/** Limit on the movements of one stock. */
const MOVEMENTS_BOUND = 200

/** Fills a tape with a union, until it is closed. */
type OpenTape = { want(union: TapeUnion): void; close(): void }

/** The tape of one relay, shared by all components of a page. Connected while a component shows a part of it. */
export class SharedTape implements TapeMemory {
  readonly #open: (tape: TapeMemory) => OpenTape
  readonly #initial: readonly SnapshotMessage[]
  readonly #interests = new Map<() => void, TapeUnion>()
  #book = book()
  #state = emptyState
  #opened: OpenTape | null = null
  #releaseTimer: ReturnType<typeof setTimeout> | undefined
  #renderTimer: ReturnType<typeof setTimeout> | undefined

  /** `initial` is what the tape has before it is connected. */
  constructor(open: (tape: TapeMemory) => OpenTape, initial: readonly SnapshotMessage[] = []) {
    this.#open = open
    this.#initial = initial
    this.#reset()
  }

  /** Remains the same object until the tape changes. */
  get state(): TapeState {
    const stocks = this.#book.all()
    if (stocks !== this.#state.stocks) this.#state = { ...this.#state, stocks }
    return this.#state
  }

  /** Calls `onChange` after changes. Opens a connection unless all unions are empty. Returns a function that ends the watch. */
  watch(union: TapeUnion, onChange: () => void): () => void {
    this.#interests.set(onChange, union)
    this.#setUnion()
    return () => {
      this.#interests.delete(onChange)
      this.#setUnion()
    }
  }

  close(): void {
    this.#opened?.close()
    this.#opened = null
    this.#reset()
  }

  take(item: StreamItem, past: readonly Update[] = []): void {
    const { feed, recent } = this.#state
    this.#book.apply(item)
    if (item.type === 'snapshot') for (const update of past) if (update.address === item.address) this.#book.apply(update)
    this.#setFeed({ position: later(item.id, feed.position) })
    // Each update removes the oldest one, or several while a past that was read exceeds the limit. Views keep what they show.
    if ('prev' in item) return this.change({ recent: [...recent.slice(recent.length / UPDATES_BOUND), item] })
    if (item.type !== 'gap') return
    this.#setFeed({ gaps: feed.gaps + 1, lastGap: item })
    // Snapshots follow a gap only if the relay reported it. The client itself found a gap with the reason `missed`.
    if (item.reason !== 'missed') this.change({ isComplete: false })
  }

  takeFeed({ position, queued, ...feed }: StreamState): void {
    this.#setFeed({ ...feed, position: later(position, this.#state.feed.position) })
  }

  takePast(updates: readonly Update[], failures: TapeState['failures']): readonly Update[] {
    const recent = inOrder([...updates, ...this.#state.recent])
    this.change({ recent: recent.slice(-PASTS_BOUND), failures })
    return recent
  }

  load(state: TapeState): void {
    this.#loadBook(state.stocks)
    this.change(state)
  }

  startUnion(union: TapeUnion, isComplete: boolean): void {
    const { stocks } = this.state
    const kept = stocks.filter((stock) => selectsStock(union.symbols, stock))
    if (stocks.length > kept.length) this.#loadBook(kept)
    this.change({ union, isComplete })
  }

  change(change: Partial<TapeState>): void {
    this.#state = { ...this.#state, ...change }
    if (this.#interests.size === 0) return
    this.#renderTimer ??= setTimeout(() => {
      this.#renderTimer = undefined
      for (const listener of this.#interests.keys()) listener()
    }, RENDER_INTERVAL_MS)
  }

  #setUnion(): void {
    const union = unite([...this.#interests.values()])
    clearTimeout(this.#releaseTimer)
    if (union.symbols.length > 0) {
      this.#opened ??= this.#open(this)
      this.#opened.want(union)
    } else this.#releaseTimer = setTimeout(() => this.close(), RELEASE_GRACE_MS)
  }

  #reset(): void {
    const symbols = this.#initial.map(({ symbol }) => symbol)
    this.load({ ...emptyState, union: unionOf({ symbols }) })
    for (const snapshot of this.#initial) this.take(snapshot)
  }

  #setFeed(change: Partial<TapeFeed>): void {
    this.change({ feed: { ...this.#state.feed, ...change } })
  }

  #loadBook(states: readonly StockState[]): void {
    this.#book = book(undefined, { movements: MOVEMENTS_BOUND, states })
  }
}

/** Returns the later of two positions, because a filled message may be older than the newest one. */
const later = (a: string | null, b: string | null): string | null => (a && !(b && isNotAfter(a, b)) ? a : b)
