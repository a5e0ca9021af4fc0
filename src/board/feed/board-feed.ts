import {
  type Book,
  book,
  connect,
  type Gap,
  type Head,
  type RelayClient,
  RelayError,
  type ServiceStatus,
  type StreamItem,
  type StreamOptions,
  type StreamState,
  type Update,
} from '../../sdk/client/index.ts'
import { followingTypes, namedTypes, readingTypes, stateTypes, updateTypes } from '../../sdk/generated/names.ts'
import { PriceSeries } from '../chart/price-series.ts'
import type { BoardFilter } from '../shared/board-route.ts'
import { TapeLines } from '../tape/tape-lines.ts'
import { ServerClock } from './server-clock.ts'

/** A break of the connection; it goes on while there is no end. Times are of the page's clock. */
export type Interruption = { readonly fromMs: number; readonly untilMs: number | null; readonly reason: string | null }

const HEARTBEAT_S = 2
/** Messages that are read when the page opens, and when a reader scrolls to the oldest line. */
const HISTORY_PAGE = 500
/** What is read after the first page without being asked for, so that the flow covers more. */
const BACKGROUND_PAGES = [1_000, 1_000, 1_000]
/** Older readings for the small charts. */
const READINGS_PAGE = 1_000
/** Messages that are kept as they came. */
const RAW_BOUND = 200
const INTERRUPTIONS_BOUND = 100
const STATUS_INTERVAL_MS = 5_000
/** With more messages than this since the last frame, the page draws ten times a second. */
const BUSY_MESSAGES = 20
const BUSY_INTERVAL_MS = 100

/** Listed on the tape unless the filter names types: readings would drown the rest. */
const listedTypes = updateTypes.filter((type) => ![...namedTypes, ...readingTypes, ...followingTypes].includes(type))

type Type = Update['type']
type HistoryEnd = { readonly through: string } | { readonly before: string }

/** All that the page shows, from one connection. */
export class BoardFeed {
  readonly filter: BoardFilter
  readonly client: RelayClient
  /** What every request of the page carries: the key, where the relay asks for one. */
  readonly headers: Readonly<Record<string, string>>
  readonly clock: ServerClock
  readonly book: Book
  readonly lines = new TapeLines()
  readonly prices = new PriceSeries()
  readonly openedMs = Date.now()
  state: StreamState | null = null
  status: ServiceStatus | null = null
  head: Head | null = null
  /** The newest messages as they came, newest last. */
  readonly raw: StreamItem[] = []
  readonly interruptions: Interruption[] = []
  /** When each token had its last message, by address; `*` for any. */
  readonly lastUpdates = new Map<string, string>()
  /** Why the stream ended for good. */
  failure: string | null = null
  readonly #abort = new AbortController()
  readonly #listeners = new Set<() => void>()
  #unshown = 0
  #isBusy = false
  #isScheduled = false
  #isReadingHistory = false
  /** Up to where the history has not been read; null before the stream begins. */
  #unread: HistoryEnd | null = null

  constructor(page: URL, filter: BoardFilter, former: BoardFeed | null) {
    this.filter = filter
    const key = page.searchParams.get('key')
    this.headers = key === null ? {} : { authorization: `Bearer ${key}` }
    this.client = connect(new URL('.', page), { heartbeatS: HEARTBEAT_S, ...(key !== null && { key }) })
    this.clock = former?.clock ?? new ServerClock()
    const isSameList = former?.filter.symbols.join() === filter.symbols.join()
    this.book = book(undefined, { states: isSameList ? former?.book.all() : [] })
    this.status = former?.status ?? null
    this.head = former?.head ?? null
    void this.#follow()
    void this.#pollStatus()
  }

  /** Calls back after changes, at most once per frame. Returns what ends that. */
  subscribe(listener: () => void): () => void {
    this.#listeners.add(listener)
    return () => this.#listeners.delete(listener)
  }

  close(): void {
    this.#abort.abort()
  }

  /** Reads the page of history before the oldest line. */
  async readOlder(limit = HISTORY_PAGE): Promise<void> {
    const { droppedBefore, hasOlder, hasRoom } = this.lines
    const end = droppedBefore === null ? this.#unread : { before: droppedBefore }
    if (end === null || !hasOlder || !hasRoom) return
    await this.#readOnce(async () => {
      const page = await this.#readHistory({ types: this.#lineTypes(), ...end, limit })
      this.#prepend(page, page.length === limit)
    })
  }

  /** One page at a time: a second reader would get the same one. What fails for the moment is asked for by the next scroll. */
  async #readOnce(read: () => Promise<void>): Promise<void> {
    if (this.#isReadingHistory) return
    this.#isReadingHistory = true
    await read().catch((failure: unknown) => {
      // Such as a position of another tape: there is nothing older to be had.
      if (failure instanceof RelayError && failure.code < 500 && failure.code !== 429) this.lines.hasOlder = false
    })
    this.#isReadingHistory = false
    this.#notify()
  }

  /** Whether the tape lists messages of this type. */
  lists(type: string): boolean {
    return (this.filter.types.length > 0 ? this.filter.types : listedTypes).includes(type)
  }

  /** A supply that the list reports anew every few seconds is a reading too. */
  #isLine(item: Update | Gap): boolean {
    if (item.type === 'gap' || followingTypes.includes(item.type)) return true
    const isSupply = item.type === 'token' && item.changed.join() === 'total_supply'
    return this.lists(item.type) && !(isSupply && this.filter.types.length === 0)
  }

  #selection() {
    const { minValue, account, symbols } = this.filter
    const filters = { ...(minValue !== '' && { minValue }), ...(account.length > 0 && { account }) }
    return { symbols: symbols.length > 0 ? symbols : '*', filters } as const
  }

  #lineTypes(): Type[] {
    return (this.filter.types.length > 0 ? this.filter.types : listedTypes) as Type[]
  }

  async #readHistory(options: HistoryEnd & { types: readonly Type[]; limit: number }): Promise<Update[]> {
    const { symbols, filters } = this.#selection()
    const updates: Update[] = []
    const signal = this.#abort.signal
    for await (const update of this.client.history(symbols, { ...filters, ...options, order: 'desc', signal })) updates.push(update)
    return updates
  }

  async #follow(): Promise<void> {
    const { symbols, filters } = this.#selection()
    const { types } = this.filter
    const options: StreamOptions = {
      ...filters,
      ...(types.length > 0 && { types: [...new Set([...types, ...stateTypes])] as Type[] }),
      signal: this.#abort.signal,
      onState: (state) => this.#setState(state),
    }
    try {
      for await (const item of this.client.updates(symbols, options)) this.#receive(item)
    } catch (failure) {
      this.failure = failure instanceof Error ? failure.message : String(failure)
      this.#notify()
    }
  }

  #receive(item: StreamItem): void {
    if (this.#unread === null) this.#readFirstHistory(item)
    this.book.apply(item)
    this.raw.push(item)
    if (this.raw.length > RAW_BOUND) this.raw.shift()
    if (item.type !== 'snapshot') this.#receiveChange(item)
    this.#unshown += 1
    this.#notify()
  }

  #receiveChange(item: Exclude<StreamItem, { type: 'snapshot' }>): void {
    if (this.#isLine(item)) this.lines.apply(item)
    if (item.type === 'gap') return
    this.prices.apply(item)
    this.clock.observe(item.time)
    this.lastUpdates.set('*', item.time)
    if (concernsToken(item)) this.lastUpdates.set(item.address, item.time)
    this.head = headAfter(this.head, item)
  }

  /** What was on the tape when the stream began; nothing is between the two. */
  #readFirstHistory(item: StreamItem): void {
    const end: HistoryEnd = item.type === 'snapshot' ? { through: item.as_of } : { before: item.id }
    this.#unread = end
    const readFirst = this.#readOnce(async () => {
      const [page, readings] = await Promise.all([
        this.#readHistory({ types: this.#lineTypes(), ...end, limit: HISTORY_PAGE }),
        this.#readHistory({ types: ['nav', 'quote'], ...end, limit: READINGS_PAGE }),
      ])
      this.#prepend(page, page.length === HISTORY_PAGE)
      this.prices.prepend(readings)
    })
    void readFirst.then(async () => {
      for (const limit of BACKGROUND_PAGES) await this.readOlder(limit)
    })
  }

  #prepend(page: readonly Update[], hasOlder: boolean): void {
    const oldest = page.at(-1)
    if (oldest) this.#unread = { before: oldest.id }
    // Newest first: the first one of a token is its last message.
    for (const update of page)
      if (concernsToken(update) && !this.lastUpdates.has(update.address)) this.lastUpdates.set(update.address, update.time)
    const listed = page.filter((update) => this.#isLine(update))
    this.lines.prepend(listed, hasOlder)
  }

  #setState(state: StreamState): void {
    const wasLive = this.state?.phase === 'live'
    this.state = state
    if (state.head) this.head = state.head
    const last = this.interruptions.at(-1)
    const isOpen = last !== undefined && last.untilMs === null
    if (wasLive && state.phase !== 'live' && state.phase !== 'closed') {
      if (this.interruptions.length === INTERRUPTIONS_BOUND) this.interruptions.shift()
      this.interruptions.push({ fromMs: Date.now(), untilMs: null, reason: state.reason })
    } else if (isOpen && (state.phase === 'live' || state.reason !== last.reason)) {
      const untilMs = state.phase === 'live' ? Date.now() : null
      this.interruptions.splice(-1, 1, { ...last, untilMs, reason: last.reason ?? state.reason })
    }
    this.#notify()
  }

  async #pollStatus(): Promise<void> {
    const { signal } = this.#abort
    while (!signal.aborted) {
      this.status = await this.client.status().catch(() => this.status)
      this.#notify()
      await new Promise((resolve) => setTimeout(resolve, STATUS_INTERVAL_MS))
    }
  }

  #notify(): void {
    if (this.#isScheduled || this.#abort.signal.aborted) return
    this.#isScheduled = true
    const show = () => {
      this.#isScheduled = false
      this.#isBusy = this.#unshown > BUSY_MESSAGES
      this.#unshown = 0
      for (const listener of this.#listeners) listener()
    }
    if (this.#isBusy) setTimeout(() => requestAnimationFrame(show), BUSY_INTERVAL_MS)
    else requestAnimationFrame(show)
  }
}

/** A seal only confirms what came before it. */
const concernsToken = (update: Update): update is Update & { readonly address: string } =>
  update.address !== null && update.type !== 'seal'

/** The heads move with every message, and the next heartbeat has them all. */
function headAfter(head: Head | null, item: Update): Head | null {
  if (item.type === 'status') return item.head
  if (head === null || !('block' in item) || !item.block) return head
  const { number } = item.block
  const raise = (name: keyof Head) => ((head[name] ?? 0) < number ? { ...head, [name]: number } : head)
  if (item.type === 'finality') return raise(item.stage)
  if (item.type === 'seal') return raise('sealed')
  return 'stage' in item && item.stage === 'preconfirmed' ? raise('pending') : head
}
