import {
  type BarsPage,
  type Book,
  book,
  ConnectionError,
  connect,
  type Head,
  type HistoryOptions,
  type RelayClient,
  RelayError,
  type ServiceStatus,
  type StreamItem,
  type StreamOptions,
  type StreamState,
  type Update,
  type ValueFilters,
} from '../../sdk/client/index.ts'
import { followingTypes, namedTypes, readingTypes, stateTypes, updateTypes } from '../../sdk/generated/names.ts'
import type { BoardFilter } from '../shared/board-route.ts'
import { TapeLines } from '../tape/tape-lines.ts'
import { DayBars } from './day-bars.ts'
import { ServerClock } from './server-clock.ts'

/** A break of the connection; `untilMs` is null while it lasts. Times are of the page's clock. */
export type Interruption = { readonly fromMs: number; readonly untilMs: number | null; readonly reason: string | null }

const HEARTBEAT_S = 2
/** Number of messages that are read when the page opens, and when the reader scrolls to the oldest line. */
const [FIRST_PAGE, HISTORY_PAGE] = [250, 500]
const RAW_BOUND = 200
const INTERRUPTIONS_BOUND = 100
const STATUS_INTERVAL_MS = 5_000
/** Wait before the next attempt, where the client has given up. */
const RETRY_MS = 2_000
/** If more messages than this arrived since the last drawing, the next drawing waits for `BUSY_INTERVAL_MS`. */
const BUSY_MESSAGES = 20
const BUSY_INTERVAL_MS = 100

/** Types that the tape lists by default. It omits readings, and which pools the relay follows: they would hide all other lines. */
const unlistedTypes: readonly string[] = [...namedTypes, ...readingTypes, ...followingTypes, 'venue']
const listedTypes = updateTypes.filter((type) => !unlistedTypes.includes(type))

type Type = Update['type']
type HistoryEnd = { readonly through: string } | { readonly before: string }

export class BoardFeed {
  readonly filter: BoardFilter
  readonly client: RelayClient
  /** Headers of every request: the API key, if the relay requires one. */
  readonly headers: Readonly<Record<string, string>>
  readonly clock: ServerClock
  readonly book: Book
  readonly lines = new TapeLines()
  readonly day: DayBars
  /** Whether the bars of the day were read, or could not be. */
  isDayAsked = false
  readonly openedMs = Date.now()
  state: StreamState | null = null
  status: ServiceStatus | null = null
  head: Head | null = null
  /** The newest messages of the stream, newest last. */
  readonly raw: StreamItem[] = []
  readonly interruptions: Interruption[] = []
  /** Time of the last message of each token, by its address. The entry `*` has that of all tokens. */
  readonly lastUpdates = new Map<string, string>()
  /** Whether new lines are not announced, because the reader looks at others. */
  isSilent = false
  /** The newest gap of the stream, until a reader has seen it. */
  gap: { readonly id: string; readonly atMs: number } | null = null
  /** Why the stream has ended permanently; null if it has not. */
  failure: string | null = null
  /** Whether it has ended because the relay asks for an API key. */
  needsKey = false
  readonly #symbols: string | readonly string[]
  readonly #valueFilters: ValueFilters
  readonly #lineTypes: readonly Type[]
  readonly #abort = new AbortController()
  readonly #listeners = new Set<() => void>()
  #unshown = 0
  #isBusy = false
  #isScheduled = false
  isReadingHistory = false
  /** Newest position of the history that has not been read; null before the stream begins. */
  #unread: HistoryEnd | null = null

  constructor(relay: URL, key: string | null, filter: BoardFilter, former: BoardFeed | null) {
    this.filter = filter
    const { symbols, types, minValue, account } = filter
    this.#symbols = symbols.length > 0 ? symbols : '*'
    this.#valueFilters = { ...(minValue !== '' && { minValue }), ...(account.length > 0 && { account }) }
    this.#lineTypes = (types.length > 0 ? types : listedTypes) as readonly Type[]
    this.headers = key === null ? {} : { authorization: `Bearer ${key}` }
    this.client = connect(relay, { heartbeatInterval: 1_000 * HEARTBEAT_S, ...(key !== null && { key }) })
    this.clock = former?.clock ?? new ServerClock()
    const isSameList = former?.filter.symbols.join() === symbols.join()
    this.book = book(undefined, { states: isSameList ? former?.book.all() : [] })
    this.status = former?.status ?? null
    this.head = former?.head ?? null
    this.day = new DayBars((parameters) => this.#readBars(parameters))
    void this.#follow()
    void this.#pollStatus()
  }

  /** Calls `listener` after changes, at most once per animation frame. Returns a function that unsubscribes. */
  subscribe(listener: () => void): () => void {
    this.#listeners.add(listener)
    return () => this.#listeners.delete(listener)
  }

  close(): void {
    this.#abort.abort()
  }

  /** Since when the connection is broken; null while it is not. */
  get lostMs(): number | null {
    const last = this.interruptions.at(-1)
    return last?.untilMs === null ? last.fromMs : null
  }

  dismissGap(): void {
    this.gap = null
    this.#notify()
  }

  async readOlder(limit = HISTORY_PAGE): Promise<void> {
    const end = this.olderEnd
    if (end === null) return
    await this.#readOnce(async () => {
      const page = await this.#readHistory(this.#lineTypes, end, limit)
      this.#prepend(page, page.length === limit)
    })
  }

  /** The place on the tape before which older lines can be read; null if there are none, or no room for them. */
  get olderEnd(): HistoryEnd | null {
    const { droppedBefore, hasOlder, hasRoom } = this.lines
    if (!hasOlder || !hasRoom) return null
    return droppedBefore === null ? this.#unread : { before: droppedBefore }
  }

  /** Reads one page at a time, so that no page is read twice. After a temporary failure, the next scroll reads the page again. */
  async #readOnce(read: () => Promise<void>): Promise<void> {
    if (this.isReadingHistory) return
    this.isReadingHistory = true
    await read().catch((failure: unknown) => {
      // After a permanent refusal, such as that of a position of another tape, nothing older can be read.
      if (failure instanceof RelayError && failure.code < 500 && failure.code !== 429) this.lines.hasOlder = false
    })
    this.isReadingHistory = false
    this.#notify()
  }

  lists(type: string): boolean {
    return this.#lineTypes.includes(type as Type)
  }

  /** A change of the supply alone counts as a reading, because the list reports one every few seconds. */
  #isLine(item: Update): boolean {
    if (followingTypes.includes(item.type)) return true
    // Only movements and trades have a value that the filter can ask for.
    if (this.filter.minValue !== '' && this.filter.types.length === 0 && !('shares' in item)) return false
    const isSupply = item.type === 'token' && item.changed.join() === 'total_supply'
    return this.lists(item.type) && !(isSupply && this.filter.types.length === 0)
  }

  #readHistory(types: readonly Type[], end: HistoryEnd, limit: number): Promise<Update[]> {
    const options: HistoryOptions = { ...this.#valueFilters, ...end, types, limit, order: 'desc', signal: this.#abort.signal }
    return Array.fromAsync(this.client.history(this.#symbols, options))
  }

  async #follow(): Promise<void> {
    const { types } = this.filter
    const options: StreamOptions = {
      ...this.#valueFilters,
      ...(types.length > 0 && { types: [...new Set([...types, ...stateTypes])] as Type[] }),
      signal: this.#abort.signal,
      onState: (state) => this.#setState(state),
    }
    while (!options.signal?.aborted) {
      try {
        for await (const item of this.client.updates(this.#symbols, options)) this.#receive(item)
        return
      } catch (failure) {
        // The page came from this address, so a relay that does not answer will answer again.
        if (failure instanceof ConnectionError && failure.code !== 'bad_url') {
          await new Promise((resolve) => setTimeout(resolve, RETRY_MS))
          continue
        }
        this.failure = failure instanceof Error ? failure.message : String(failure)
        this.needsKey = failure instanceof RelayError && failure.code === 401
        this.#notify()
        return
      }
    }
  }

  #receive(item: StreamItem): void {
    if (item.type === 'quote' || item.type === 'snapshot') {
      const before = this.book.get(item.address)
      if (before) this.day.keepQuote(before)
    }
    this.book.apply(item)
    if (this.#unread === null) void this.#readFirstHistory(item)
    this.raw.push(item)
    if (this.raw.length > RAW_BOUND) this.raw.shift()
    this.#unshown += 1
    this.#notify()
    if (item.type === 'snapshot') return
    if (item.type === 'gap') {
      const times = [this.lastUpdates.get('*'), this.lines.all.at(-1)?.content.time].filter((time) => time !== undefined)
      const time = times.sort().at(-1) ?? new Date(this.openedMs).toISOString()
      this.lines.apply({ ...item, time })
      this.gap = { id: item.id, atMs: this.clock.nowMs() }
      return
    }
    if (this.#isLine(item)) this.lines.apply(item)
    if (item.type === 'token' && typeof item.before?.symbol === 'string') this.day.rename(item.before.symbol, item.symbol)
    this.clock.observe(item.time)
    this.lastUpdates.set('*', item.time)
    if (concernsToken(item)) this.lastUpdates.set(item.address, item.time)
    this.head = headAfter(this.head, item)
  }

  /** Reads the messages before the first item of the stream, so that none is missing between them and the stream. */
  async #readFirstHistory(item: StreamItem): Promise<void> {
    const end: HistoryEnd = item.type === 'snapshot' ? { through: item.as_of } : { before: item.id }
    this.#unread = end
    await this.#readOnce(async () => {
      const page = await this.#readHistory(this.#lineTypes, end, FIRST_PAGE)
      this.#prepend(page, page.length === FIRST_PAGE)
    })
    await this.#pollBars()
  }

  async #readBars(parameters: Readonly<Record<string, string>>): Promise<BarsPage> {
    const url = new URL('v1/bars', this.client.url)
    const { symbols } = this.filter
    const query = { ...parameters, ...(symbols.length > 0 && { symbols: symbols.join() }) }
    url.search = String(new URLSearchParams(query))
    const response = await fetch(url, { headers: this.headers, signal: this.#abort.signal })
    if (!response.ok) throw new Error(`HTTP ${response.status}`)
    return await response.json()
  }

  /** Reads the bars of the day. What cannot be read now is read later. */
  async #pollBars(): Promise<void> {
    const { signal } = this.#abort
    while (!signal.aborted) {
      const stocks = this.book.all()
      await this.day.refresh(stocks.length, stocks[0]?.session?.closed_at ?? null).catch(() => {})
      this.isDayAsked = true
      this.#notify()
      await new Promise((resolve) => setTimeout(resolve, this.day.intervalMs))
    }
  }

  #prepend(page: readonly Update[], hasOlder: boolean): void {
    const oldest = page.at(-1)
    if (oldest) this.#unread = { before: oldest.id }
    // The page is newest first, so the first message of a token in it is the last one of the token.
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
      this.interruptions.push({ fromMs: Date.now(), untilMs: null, reason: state.error?.message ?? null })
    } else if (isOpen && (state.phase === 'live' || state.error !== null)) {
      const untilMs = state.phase === 'live' ? Date.now() : null
      this.interruptions.splice(-1, 1, { ...last, untilMs, reason: last.reason ?? state.error?.message ?? null })
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

/** Whether a message says something about one token. A seal only confirms earlier messages. */
const concernsToken = (update: Update): update is Update & { readonly address: string } =>
  update.address !== null && update.type !== 'seal'

/** Raises the heads by a message, before the next heartbeat reports all of them. */
function headAfter(head: Head | null, item: Update): Head | null {
  if (item.type === 'status') return item.head
  if (head === null || !('block' in item) || !item.block) return head
  const { number } = item.block
  const raise = (name: keyof Head) => ((head[name] ?? 0) < number ? { ...head, [name]: number } : head)
  if (item.type === 'finality') return raise(item.stage)
  if (item.type === 'seal') return raise('sealed')
  return 'stage' in item && item.stage === 'preconfirmed' ? raise('pending') : head
}
