import {
  type Book,
  book,
  comparePositions,
  type Gap,
  type StockState,
  type StreamItem,
  type StreamState,
  type Update,
} from '../client/index.ts'
import { selectsStock } from './tape-selection.ts'
import { type TapeUnion, unite } from './tape-union.ts'

/** The state of the connection, and what is missing in spite of it. */
export type TapeFeed = Omit<StreamState, 'queued'> & {
  /** How many gaps came. */
  readonly gaps: number
  readonly lastGap: Gap | null
}

/** What one tab passes on, so that another can continue. */
export type TapeState = {
  readonly stocks: readonly StockState[]
  readonly recent: readonly Update[]
  readonly feed: TapeFeed
  /** What the stocks and the recent updates were selected by. */
  readonly union: TapeUnion
  /** Every stock of the union has come. Snapshots come before the next update. */
  readonly isComplete: boolean
}

/** Movements that are kept of each stock, and updates of all of them. */
const MOVEMENTS_BOUND = 50
const RECENT_BOUND = 1_000

export const initialFeed: TapeFeed = {
  phase: 'connecting',
  transport: null,
  position: null,
  source: null,
  head: null,
  demo: null,
  rejected: [],
  reason: null,
  retryMs: null,
  attempts: 0,
  gaps: 0,
  lastGap: null,
}

/** What was received of a tape: the stocks, the newest updates, and the state of the connection. */
export class TapeMemory {
  #book: Book = book(undefined, { movements: MOVEMENTS_BOUND })
  #state: Omit<TapeState, 'stocks'> = { recent: [], feed: initialFeed, union: unite([]), isComplete: false }
  readonly #onChange: () => void

  constructor(onChange: () => void) {
    this.#onChange = onChange
  }

  get state(): TapeState {
    return { ...this.#state, stocks: this.#book.all() }
  }

  /** Where the stream continues. */
  get position(): string | null {
    return this.#state.feed.position
  }

  take(item: StreamItem): void {
    this.#book.apply(item)
    if (item.type === 'gap') {
      this.#setFeed({ gaps: this.#state.feed.gaps + 1, lastGap: item, position: item.id })
      // Snapshots follow a gap of the relay.
      if (item.reason !== 'missed') this.#change({ isComplete: false })
    } else this.#setFeed({ position: later(item.id, this.position) })
    if ('prev' in item) this.#change({ recent: [...this.#state.recent.slice(1 - RECENT_BOUND), item], isComplete: true })
  }

  takeFeed({ position, queued, ...feed }: StreamState): void {
    this.#setFeed({ ...feed, position: later(position, this.position) })
  }

  load({ stocks, ...state }: TapeState): void {
    this.#book = book(undefined, { movements: MOVEMENTS_BOUND, states: stocks })
    this.#change(state)
  }

  /** Forgets the stocks that the stream does not carry any more. */
  startUnion(union: TapeUnion, isCovered: boolean): void {
    const { stocks, ...state } = this.state
    const kept = stocks.filter((stock) => selectsStock(union.symbols, stock))
    if (kept.length < stocks.length) this.load({ ...state, union, stocks: kept })
    else this.#change({ union })
    if (!isCovered) this.#change({ isComplete: false })
  }

  #setFeed(change: Partial<TapeFeed>): void {
    this.#change({ feed: { ...this.#state.feed, ...change } })
  }

  #change(change: Partial<TapeState>): void {
    this.#state = { ...this.#state, ...change }
    this.#onChange()
  }
}

/** Filled messages have positions that were passed before. */
const later = (a: string | null, b: string | null): string | null =>
  a === null || (b !== null && (comparePositions(a, b) ?? 1) <= 0) ? b : a
