import { comparePositions, type Gap, type StockState, type StreamItem, type StreamState, type Update } from '../client/index.ts'
import { initialState } from '../client/stream-types.ts'
import { type TapeUnion, unite } from './tape-selection.ts'

/** State of the connection, with the number of gaps in its stream and the last gap. */
export type TapeFeed = Omit<StreamState, 'queued'> & { readonly gaps: number; readonly lastGap: Gap | null }

/** State that one tab sends to another, so that the other tab can continue the stream. */
export type TapeState = {
  readonly stocks: readonly StockState[]
  /** The newest updates, in the order of the tape. */
  readonly recent: readonly Update[]
  readonly feed: TapeFeed
  /** The union of selections from which the stocks and the recent updates are. */
  readonly union: TapeUnion
  /** Whether the snapshots of all stocks of the union, and its pasts, were received. */
  readonly isComplete: boolean
  /** Why a past of the union could not be read. */
  readonly failures: Readonly<Record<string, TapeFeed['error']>>
}

export const emptyState: TapeState = {
  stocks: [],
  recent: [],
  feed: { ...initialState, gaps: 0, lastGap: null },
  union: unite([]),
  isComplete: true,
  failures: {},
}

/** Returns each update once, in the order of the tape. */
export const inOrder = <Item extends Update>(updates: readonly Item[]): readonly Item[] =>
  [...new Map(updates.map((update) => [update.id, update])).values()].sort((a, b) => comparePositions(a.id, b.id) ?? 0)

/** A tape as the stream changes it. */
export type TapeMemory = {
  readonly state: TapeState
  /** Takes an item. `past` has the updates up to a snapshot, in the order of the tape. */
  take(item: StreamItem, past?: readonly Update[]): void
  takeFeed(feed: StreamState): void
  /** Adds stored updates to the recent ones. Returns all of them, in the order of the tape. */
  takePast(updates: readonly Update[], failures: TapeState['failures']): readonly Update[]
  load(state: TapeState): void
  /** Changes the union, and removes the stocks that are not in it. `isComplete`: no stock needs a new snapshot. */
  startUnion(union: TapeUnion, isComplete: boolean): void
  change(change: Partial<TapeState>): void
}

/** One of these: the leader posts items, and states of its stream and of its tape; each tab posts the union that it wants. */
export type TabNews = {
  readonly item?: StreamItem
  readonly feed?: StreamState
  readonly state?: TapeState
  readonly union?: TapeUnion
}
