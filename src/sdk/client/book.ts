import { followedKeys, stageAfter } from '../generated/key-life.ts'
import type { AmendMessage, SnapshotMessage, TokenMessage, TradeMessage, Update } from '../generated/messages.ts'
import { comparePositions, isNotAfter } from './position-order.ts'
import type { StreamItem } from './stream-types.ts'

/** The state of one stock. Each change makes a new object, so `===` shows whether a state changed. `supply` is that of the last snapshot. */
export type StockState = Pick<
  SnapshotMessage,
  | 'symbol'
  | 'address'
  | 'token'
  | 'token_warnings'
  | 'multiplier'
  | 'scheduled'
  | 'paused'
  | 'supply'
  | 'nav'
  | 'quote'
  | 'last_trade'
  | 'venues'
  | 'session'
> & {
  /** The newest quote of each pool, of the deepest pool in the state `ok` first. `quote` is the first of them. */
  readonly quotes: readonly NonNullable<SnapshotMessage['quote']>[]
  /** The newest movements of the stock, newest first. */
  readonly movements: readonly MovementState[]
  /** The newest trades of the stock, newest first. */
  readonly trades: readonly TradeState[]
}

type Staged<Fact extends { stage: string }> = Omit<Fact, 'stage'> & { readonly stage: Fact['stage'] | 'retracted' }
/** A movement with its amends applied, and with its present stage. */
export type MovementState = Staged<Extract<Update, { memo: string | null }>>
/** A trade with its amends applied, and with its present stage. */
export type TradeState = Staged<TradeMessage>

export type BookOptions = {
  /** Limit on the movements, and on the trades, kept for each stock; default 20. */
  readonly movements?: number
  /** States that the book contains at its start, such as the states of another book. */
  readonly states?: readonly StockState[]
}

/** The states of many stocks, computed from the items of a stream that sends snapshots. */
export type Book = {
  /** Finds a stock by its symbol or its address. */
  get(symbol: string): StockState | undefined
  /** Returns the same array until a state changes. */
  all(): readonly StockState[]
  /** Calls `listener` after changes, at most once per turn of the event loop. Returns a function that unsubscribes. */
  subscribe(listener: () => void): () => void
  apply(item: StreamItem): void
  /** Resolves when the stream of the items ends, and rejects if that stream fails. */
  readonly done: Promise<void>
  /** Why the stream of the items has failed; null before. Listeners are called when it is set. */
  readonly error: Error | null
}

const MOVEMENTS = 20
/** Limit on the pools whose last quote is kept for one stock. The deepest are kept. */
const POOLS_BOUND = 16

type BookEntry = {
  state: StockState
  /** Position up to which the state includes all messages. */
  asOf: string
  /** Key of the log that scheduled the next multiplier. */
  scheduledBy?: string | undefined
}

export const book = (items?: AsyncIterable<StreamItem>, options: BookOptions = {}): Book => new StockBook(items, options)

class StockBook implements Book {
  readonly done: Promise<void>
  error: Error | null = null
  readonly #movementsBound: number
  readonly #entries = new Map<string, BookEntry>()
  readonly #listeners = new Set<() => void>()
  #list: readonly StockState[] | null = null
  #isNotifying = false
  /** Set by a gap that the relay reports, until the next snapshot. A stream without snapshots leaves it set. */
  #isAfterGap = false
  /** Addresses from before a gap. An address without a new snapshot is no longer listed, and the book removes it. */
  #outdated = new Set<string>()

  constructor(items: AsyncIterable<StreamItem> | undefined, { movements = MOVEMENTS, states = [] }: BookOptions) {
    this.#movementsBound = movements
    for (const state of states) this.#entries.set(state.address, { state, asOf: '' })
    this.done = this.#follow(items ?? [])
    // Without a handler the failure would end a Node process, though `error` shows it.
    this.done.catch((error: Error) => {
      this.error = error
      this.#notify()
    })
  }

  // The methods are bound, because frameworks take them out of the object.
  readonly get = (symbol: string): StockState | undefined =>
    this.all().find((stock) => stock.symbol === symbol || stock.address === symbol)

  readonly all = (): readonly StockState[] => {
    this.#list ??= [...this.#entries.values()].map(({ state }) => state)
    return this.#list
  }

  readonly subscribe = (listener: () => void): (() => void) => {
    this.#listeners.add(listener)
    return () => this.#listeners.delete(listener)
  }

  readonly apply = (item: StreamItem): void => {
    if (item.type === 'snapshot') return this.#applySnapshot(item)
    if (this.#outdated.size > 0) this.#notify()
    for (const address of this.#outdated) this.#entries.delete(address)
    this.#outdated.clear()
    if (item.type === 'gap') this.#isAfterGap = item.reason !== 'missed'
    else this.#applyUpdate(item)
  }

  async #follow(items: AsyncIterable<StreamItem> | []): Promise<void> {
    for await (const item of items) this.apply(item)
  }

  #applySnapshot(snapshot: SnapshotMessage): void {
    const { address, as_of } = snapshot
    if (this.#isAfterGap) this.#outdated = new Set(this.#entries.keys())
    this.#isAfterGap = false
    const { movements, trades, quotes } = this.#entries.get(address)?.state ?? { movements: [], trades: [], quotes: [] }
    const state = { ...snapshot, movements, trades, ...(snapshot.quote ? withQuote(quotes, snapshot.quote) : { quotes: [] }) }
    this.#entries.set(address, { state, asOf: as_of })
    this.#outdated.delete(address)
    this.#notify()
  }

  #applyUpdate(update: Update): void {
    if (update.type === 'session')
      for (const entry of this.#entries.values()) if (!isNotAfter(update.id, entry.asOf)) this.#change(entry, { session: update })
    if (update.address === null) return
    const { address } = update
    if (update.type === 'token' && update.change === 'listed' && !this.#entries.has(address))
      this.#entries.set(address, { state: newStock(update), asOf: '' })
    const entry = this.#entries.get(address)
    if (!entry) return
    for (const list of ['movements', 'trades'] as const) this.#applyToFacts(entry, list, update)
    // The snapshot already includes the effect of each message up to `as_of`.
    if (isNotAfter(update.id, entry.asOf)) return
    if (update.symbol !== entry.state.symbol) this.#change(entry, { symbol: update.symbol })
    this.#applyToLastTrade(entry, update)
    this.#applyToState(entry, update.type === 'amend' ? update.update : update)
  }

  #applyToState(entry: BookEntry, content: Update | AmendMessage['update']): void {
    switch (content.type) {
      case 'nav':
        return this.#change(entry, { nav: content.nav })
      case 'quote':
        return this.#change(entry, withQuote(entry.state.quotes, content))
      case 'venue': {
        const others = entry.state.venues.filter(({ venue }) => venue.pool !== content.venue.pool)
        return this.#change(entry, { venues: content.change === 'followed' ? [...others, content] : others })
      }
      case 'multiplier': {
        const { phase, multiplier, effective_at } = content
        const isScheduled = phase === 'scheduled'
        entry.scheduledBy = isScheduled ? content.key : undefined
        if (phase === 'effective') return this.#change(entry, { multiplier, scheduled: null })
        return this.#change(entry, { scheduled: isScheduled && multiplier !== null ? { multiplier, effective_at } : null })
      }
      case 'pause':
        return this.#change(entry, { paused: content.paused })
      case 'token':
        this.#change(entry, { token: content.token })
        if (content.change === 'delisted') this.#entries.delete(entry.state.address)
        return
      case 'retract':
        if (content.key === entry.scheduledBy) this.#change(entry, { scheduled: null })
        else if (content.restored) this.#change(entry, content.restored)
    }
  }

  #applyToLastTrade(entry: BookEntry, update: Update): void {
    const { last_trade: last, trades } = entry.state
    const fact = update.type === 'amend' ? update.update : update
    const isLast = 'key' in fact && fact.key === last?.key
    if (fact.type === 'trade') {
      if (!last || isLast || isLater(fact, last)) this.#change(entry, { last_trade: fact })
      // It was retracted, or is no trade after all.
    } else if (isLast)
      this.#change(entry, { last_trade: trades.filter(isTrade).sort((a, b) => (isLater(a, b) ? -1 : 1))[0] ?? null })
    else if (update.type === 'seal' && last && update.keys.includes(last.key))
      this.#change(entry, { last_trade: { ...last, stage: 'sealed', block: update.block } })
  }

  #applyToFacts(entry: BookEntry, list: 'movements' | 'trades', update: Update): void {
    const facts: readonly (MovementState | TradeState)[] = entry.state[list]
    const isOther = ({ type }: { readonly type: string }) => (type === 'trade') !== (list === 'trades')
    if ('shares' in update && 'key' in update) {
      if (isOther(update)) return
      const others = facts.filter(({ key }) => key !== update.key)
      // A message that was lost on the way, or is read from the history, follows messages with greater positions.
      const at = others.findIndex(({ id }) => (comparePositions(id, update.id) ?? 0) <= 0)
      return this.#change(entry, {
        [list]: others.toSpliced(at < 0 ? others.length : at, 0, update).slice(0, this.#movementsBound),
      })
    }
    const keys = followedKeys(update)
    if (!facts.some(({ key }) => keys.includes(key))) return
    if (update.type === 'amend' && isOther(update.update))
      return this.#change(entry, { [list]: facts.filter(({ key }) => key !== update.key) })
    const change =
      update.type === 'seal' ? { block: update.block } : update.type === 'amend' && 'shares' in update.update && update.update
    this.#change(entry, {
      [list]: facts.map((fact) => (keys.includes(fact.key) ? { ...fact, ...change, stage: stageAfter(fact.stage, update) } : fact)),
    })
  }

  #change(entry: BookEntry, change: Partial<StockState>): void {
    entry.state = { ...entry.state, ...change }
    this.#notify()
  }

  #notify(): void {
    this.#list = null
    if (this.#isNotifying || this.#listeners.size === 0) return
    this.#isNotifying = true
    setTimeout(() => {
      this.#isNotifying = false
      for (const listener of this.#listeners) listener()
    })
  }
}

/** State of a stock that was listed after the snapshots. Later messages contain its multiplier, its NAV and its quote. */
const newStock = ({ symbol, address, token }: TokenMessage): StockState => ({
  symbol,
  address,
  token,
  token_warnings: [],
  multiplier: null,
  scheduled: null,
  paused: [],
  supply: { tokens: null, shares: null },
  nav: { price: null, updated_at: null, age_s: null, state: 'missing', stale_after_s: 0, frozen: null },
  quote: null,
  quotes: [],
  session: null,
  movements: [],
  trades: [],
  last_trade: null,
  venues: [],
})

/** Compares the places of two trades on the chain. */
const isLater = (a: Placed, b: Placed): boolean => (a.block.number - b.block.number || a.tx.log_index - b.tx.log_index) > 0
type Placed = Pick<TradeMessage, 'block' | 'tx'>

const isTrade = (trade: TradeState): trade is TradeMessage => trade.stage !== 'retracted'

type PoolQuote = NonNullable<StockState['quote']>

/** Replaces the quote of its pool. The deepest pool with a price comes first. If none has a price, the order stays. */
export function withQuote(before: readonly PoolQuote[], quote: PoolQuote): Pick<StockState, 'quote' | 'quotes'> {
  const byPool = new Map([...before, quote].map((each) => [each.venue.pool, each]))
  const quotes = [...byPool.values()].sort((a, b) => depthOf(b) - depthOf(a)).slice(0, POOLS_BOUND)
  return { quote: quotes[0] ?? null, quotes }
}

const depthOf = ({ state, depth }: PoolQuote): number => (state === 'ok' ? Number(depth) : -1)
