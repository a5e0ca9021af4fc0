import { book, type Gap, type StockState, type StreamItem, type StreamState, type Update } from '../client/index.ts'
import { isNotAfter } from '../client/position-order.ts'
import { initialState } from '../client/stream-types.ts'
import { selectsStock, type TapeUnion, unite } from './tape-selection.ts'

/** State of the connection, with the number of gaps in its stream and the last gap. */
export type TapeFeed = Omit<StreamState, 'queued'> & { readonly gaps: number; readonly lastGap: Gap | null }

/** State that one tab sends to another, so that the other tab can continue the stream. */
export type TapeState = {
  readonly stocks: readonly StockState[]
  readonly recent: readonly Update[]
  readonly feed: TapeFeed
  /** The union of selections from which the stocks and the recent updates are. */
  readonly union: TapeUnion
  /** Whether the snapshots of all stocks of the union were received. */
  readonly isComplete: boolean
}

const MOVEMENTS_PER_STOCK_BOUND = 50
const UPDATES_BOUND = 1_000

export const initialFeed: TapeFeed = { ...initialState, gaps: 0, lastGap: null }

export class TapeMemory {
  #book = book(undefined, { movements: MOVEMENTS_PER_STOCK_BOUND })
  #state: Omit<TapeState, 'stocks'> = { recent: [], feed: initialFeed, union: unite([]), isComplete: false }
  readonly #onChange: () => void

  constructor(onChange: () => void) {
    this.#onChange = onChange
  }

  get state(): TapeState {
    return { ...this.#state, stocks: this.#book.all() }
  }

  get position(): string | null {
    return this.#state.feed.position
  }

  take(item: StreamItem): void {
    this.#book.apply(item)
    if (item.type === 'gap') {
      this.#setFeed({ gaps: this.#state.feed.gaps + 1, lastGap: item, position: item.id })
      // Snapshots follow a gap only if the relay reported it. The client itself found a gap with the reason `missed`.
      if (item.reason !== 'missed') this.#change({ isComplete: false })
    } else this.#setFeed({ position: later(item.id, this.position) })
    if ('prev' in item) this.#change({ recent: [...this.#state.recent.slice(1 - UPDATES_BOUND), item], isComplete: true })
  }

  takeFeed({ position, queued, ...feed }: StreamState): void {
    this.#setFeed({ ...feed, position: later(position, this.position) })
  }

  load({ stocks, ...state }: TapeState): void {
    this.#book = book(undefined, { movements: MOVEMENTS_PER_STOCK_BOUND, states: stocks })
    this.#change(state)
  }

  /** Changes the union, and removes the stocks that are not in it. `isCovered`: no stock needs a new snapshot. */
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

/** Returns the later of two positions, because a filled message may be older than the newest one. */
const later = (a: string | null, b: string | null): string | null => (a === null || (b !== null && isNotAfter(a, b)) ? b : a)
