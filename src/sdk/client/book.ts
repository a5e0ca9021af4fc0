import { followedKeys, stageAfter } from '../generated/key-life.ts'
import type { AmendMessage, QuoteMessage, RetractMessage, SnapshotMessage, TokenMessage, Update } from '../generated/messages.ts'
import type { StreamItem } from './options.ts'
import { isNotAfter } from './position-order.ts'

/** The state of one stock. Every change makes a new object, so that two states compare by identity. */
export type StockState = Pick<
  SnapshotMessage,
  'symbol' | 'address' | 'token' | 'token_warnings' | 'multiplier' | 'scheduled' | 'paused' | 'nav' | 'quote' | 'session'
> & {
  /** The newest movements, newest first. */
  readonly movements: readonly MovementState[]
}

/** A movement as it is known now: amended, and with the stage that it has reached. */
export type MovementState = Omit<MovementUpdate, 'stage'> & { readonly stage: MovementUpdate['stage'] | 'retracted' }
type MovementUpdate = Extract<Update, { shares: string | null }>

export type BookOptions = {
  /** Movements that are kept of each stock (20). */
  readonly movements?: number
  /** What another book knew. The items continue there. */
  readonly states?: readonly StockState[]
}

/** The state of many stocks, folded from the items of a stream that sends snapshots. */
export type Book = {
  /** By symbol or address. */
  get(symbol: string): StockState | undefined
  /** The same array until something changes. */
  all(): readonly StockState[]
  /** Calls back after changes, at most once per turn of the event loop. Returns what ends that. */
  subscribe(listener: () => void): () => void
  apply(item: StreamItem): void
  /** Settles when the stream that was given has ended. */
  readonly done: Promise<void>
}

const MOVEMENTS = 20
/** Pools whose last quote is kept for one stock. */
const POOLS_BOUND = 16

/** What the book keeps of a stock beside its state. */
type BookEntry = {
  state: StockState
  /** The state includes everything up to here. */
  asOf: string
  readonly quotes: Map<string, NonNullable<StockState['quote']>>
  /** The log that scheduled the next multiplier. */
  scheduledBy?: string | undefined
}

/** A change, as it stands on the tape or inside of an amend. */
type StateChange = Update | AmendMessage['update']

export const book = (items?: AsyncIterable<StreamItem>, options: BookOptions = {}): Book => new StockBook(items, options)

class StockBook implements Book {
  readonly done: Promise<void>
  readonly #movementsBound: number
  readonly #entries = new Map<string, BookEntry>()
  readonly #listeners = new Set<() => void>()
  #list: readonly StockState[] | null = null
  #isNotifying = false
  /** A gap came. New snapshots follow, unless the stream has none. */
  #isAfterGap = false
  /** The stocks of which no new snapshot has come yet. Without one they are not listed any more. */
  #outdated = new Set<string>()

  constructor(items: AsyncIterable<StreamItem> | undefined, { movements = MOVEMENTS, states = [] }: BookOptions) {
    this.#movementsBound = movements
    for (const state of states) this.#entries.set(state.address, newEntry(state))
    this.done = this.#follow(items ?? [])
  }

  get(symbol: string): StockState | undefined {
    return this.all().find((stock) => stock.symbol === symbol || stock.address === symbol)
  }

  all(): readonly StockState[] {
    this.#list ??= [...this.#entries.values()].map(({ state }) => state)
    return this.#list
  }

  subscribe(listener: () => void): () => void {
    this.#listeners.add(listener)
    return () => this.#listeners.delete(listener)
  }

  apply(item: StreamItem): void {
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
    const movements = this.#entries.get(address)?.state.movements ?? []
    this.#entries.set(address, { ...newEntry({ ...snapshot, movements }), asOf: as_of })
    this.#outdated.delete(address)
    this.#notify()
  }

  #applyUpdate(update: Update): void {
    if (update.type === 'session')
      for (const entry of this.#entries.values()) if (!isNotAfter(update.id, entry.asOf)) this.#change(entry, { session: update })
    if (update.address === null) return
    const { address } = update
    if (update.type === 'token' && update.change === 'listed' && !this.#entries.has(address))
      this.#entries.set(address, newEntry(newStock(update)))
    const entry = this.#entries.get(address)
    if (!entry) return
    this.#applyToMovements(entry, update)
    // Older messages show history. Their effect is in the snapshot.
    if (isNotAfter(update.id, entry.asOf)) return
    if (update.symbol !== entry.state.symbol) this.#change(entry, { symbol: update.symbol })
    if (update.type === 'nav') this.#change(entry, { nav: update.nav })
    else if (update.type === 'quote') this.#change(entry, { quote: deepest(entry.quotes, update) })
    else if (update.type === 'retract') this.#applyRetract(entry, update)
    else this.#applyContent(entry, update.type === 'amend' ? update.update : update)
  }

  #applyContent(entry: BookEntry, content: StateChange): void {
    switch (content.type) {
      case 'multiplier': {
        const { phase, multiplier, effective_at } = content
        entry.scheduledBy = phase === 'scheduled' ? content.key : undefined
        if (phase === 'effective') return this.#change(entry, { multiplier, scheduled: null })
        return this.#change(entry, {
          scheduled: phase === 'scheduled' && multiplier !== null ? { multiplier, effective_at } : null,
        })
      }
      case 'pause':
        return this.#change(entry, { paused: content.paused })
      case 'token':
        this.#change(entry, { token: content.token })
        if (content.change === 'delisted') this.#entries.delete(entry.state.address)
    }
  }

  #applyRetract(entry: BookEntry, { key, restored }: RetractMessage): void {
    if (key === entry.scheduledBy) this.#change(entry, { scheduled: null })
    else if (restored) this.#change(entry, restored)
  }

  #applyToMovements(entry: BookEntry, update: Update): void {
    const { movements } = entry.state
    if ('shares' in update) {
      const others = movements.filter(({ key }) => key !== update.key)
      return this.#change(entry, { movements: [update, ...others].slice(0, this.#movementsBound) })
    }
    const keys = followedKeys(update)
    if (!movements.some(({ key }) => keys.includes(key))) return
    const change =
      update.type === 'seal' ? { block: update.block } : update.type === 'amend' && 'shares' in update.update && update.update
    this.#change(entry, {
      movements: movements.map((movement) =>
        keys.includes(movement.key) ? { ...movement, ...change, stage: stageAfter(movement.stage, update) } : movement,
      ),
    })
  }

  #change(entry: BookEntry, change: Partial<StockState>): void {
    entry.state = { ...entry.state, ...change }
    this.#notify()
  }

  /** A burst of items is one call of each listener. */
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

const newEntry = (state: StockState): BookEntry => ({
  state,
  asOf: '',
  quotes: new Map(state.quote ? [[state.quote.venue.pool, state.quote]] : []),
})

/** A stock that was listed after the snapshots. What is not known yet follows in messages of its own. */
const newStock = ({ symbol, address, token }: TokenMessage): StockState => ({
  symbol,
  address,
  token,
  token_warnings: [],
  multiplier: null,
  scheduled: null,
  paused: [],
  nav: { price: null, updated_at: null, age_s: null, state: 'missing', stale_after_s: 0, frozen: null },
  quote: null,
  session: null,
  movements: [],
})

/** The quote that stands for a stock: of the deepest pool that has a price, else of the first pool. */
function deepest(quotes: BookEntry['quotes'], quote: QuoteMessage): StockState['quote'] {
  if (quotes.size < POOLS_BOUND || quotes.has(quote.venue.pool)) quotes.set(quote.venue.pool, quote)
  const priced = [...quotes.values()].filter(({ state }) => state === 'ok')
  const [first] = priced.sort((a, b) => Number(b.depth) - Number(a.depth))
  return first ?? [...quotes.values()][0] ?? null
}
