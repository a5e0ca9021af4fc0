// The declarations name Symbol.asyncDispose, which programs that compile without this library do not have.
/// <reference lib="esnext.disposable" preserve="true" />

import type { Message, Update } from '../generated/messages.ts'
import { updateTypes } from '../generated/names.ts'
import { CompletenessProof, gapOf, type Loss } from './completeness-proof.ts'
import { Connection, type Environment } from './connection.ts'
import { StocktapeError, shownError } from './errors.ts'
import { readBackfill } from './history-reader.ts'
import { type Http, selectionQuery, setGiven, timeText } from './http-requests.ts'
import { ItemQueue, type QueueEntry } from './item-queue.ts'
import { isNotAfter } from './position-order.ts'
import { type Gap, initialState, type StreamItem, type StreamOptions, type StreamState } from './stream-types.ts'

const DEFAULT_HIGH_WATER_MARK = 10_000
const FILLED_IDS_BOUND = 100_000

/** Messages are missing. A stream with `gaps: 'throw'` throws it. If a gap cannot be filled, `cause` says why. */
export class GapError extends StocktapeError {
  readonly gap: Gap

  constructor(gap: Gap, cause: unknown = null) {
    super('GapError', 'gap', 'gap', `messages are missing after ${gap.after} through ${gap.through}: ${gap.reason}`, cause)
    this.gap = gap
  }
}

/** A stream that one consumer iterates over. */
export type Updates<Item> = AsyncIterableIterator<Item, undefined> & {
  readonly state: StreamState
  /** Position up to which the consumer has finished: a new stream can continue there. */
  readonly position: string | null
  /** Ends the stream, and waits until the position is saved. */
  close(): Promise<void>
  [Symbol.asyncDispose](): Promise<void>
}

export type StreamSource = Environment & { readonly http: Http; readonly heartbeatS: number }

/**
 * A stream of the messages of a selection. It connects when the consumer requests the first message, resumes by itself,
 * drops repeated messages and proves that nothing is missing. It throws if no later attempt can succeed.
 */
export class UpdateStream implements Updates<StreamItem> {
  readonly #source: StreamSource
  readonly #options: StreamOptions
  readonly #query: URLSearchParams
  readonly #proof: CompletenessProof
  readonly #connection: Connection
  readonly #queue = new ItemQueue()
  readonly #highWaterMark: number
  readonly #abort = new AbortController()
  #state = initialState
  #started: Promise<void> | null = null
  /** Resolves after all calls of `next` so far, which run one after another. */
  #turn: Promise<unknown> = Promise.resolve()
  #received: string | null = null
  /** Set while snapshots must precede the next update. If the connection ends earlier, the next connection requests them. */
  #awaitsSnapshots = false
  #current: QueueEntry | null = null
  #filling: AsyncGenerator<StreamItem> | null = null
  /** Ids of filled messages. One loss may be found twice: by a chain, and by the number in a heartbeat. */
  readonly #filled = new Set<string>()
  #finished: string | null = null
  #saved: string | null = null
  #saving: Promise<void> | null = null

  constructor(source: StreamSource, symbols: string | readonly string[], options: StreamOptions) {
    this.#source = source
    this.#options = options
    this.#highWaterMark = options.highWaterMark ?? DEFAULT_HIGH_WATER_MARK
    this.#query = selectionQuery(symbols, options)
    this.#proof = new CompletenessProof(this.#query)
    this.#connection = new Connection(source, {
      query: () => this.#connectionQuery(),
      onMessage: (message) => this.#receive(message),
      onState: (change) => this.#setState(change),
      onError: (error, isFinal) => this.#fail(error, isFinal),
    })
    options.signal?.addEventListener('abort', () => void this.close(), { signal: this.#abort.signal })
  }

  get state(): StreamState {
    return { ...this.#state, position: this.#finished, queued: this.#queue.size }
  }

  get position(): string | null {
    return this.#finished
  }

  [Symbol.asyncIterator](): this {
    return this
  }

  /** Requesting an item means that the consumer has finished with the one before it. */
  next(): Promise<IteratorResult<StreamItem, undefined>> {
    const turn = this.#turn.then(() => this.#take())
    this.#turn = turn.catch(() => {})
    return turn
  }

  async return(): Promise<IteratorResult<StreamItem, undefined>> {
    await this.close()
    return { done: true, value: undefined }
  }

  async close(): Promise<void> {
    this.#queue.clear()
    this.#current = null
    this.#filling = null
    this.#end(null)
    this.#abort.abort()
    await this.#saving
  }

  async [Symbol.asyncDispose](): Promise<void> {
    await this.close()
  }

  async #start(): Promise<void> {
    const { store, signal } = this.#options
    this.#received = (await store?.load()) ?? null
    this.#saved = this.#received
    this.#finished = this.#received
    if (signal?.aborted) return this.#end(null)
    if (!this.#abort.signal.aborted) this.#connection.open()
  }

  #connectionQuery(): URLSearchParams {
    const { since, snapshot } = this.#options
    return setGiven(new URLSearchParams(this.#query), {
      heartbeat: this.#source.heartbeatS,
      since: this.#received === null ? timeText(since) : this.#proof.resumeFrom(this.#received),
      snapshot: this.#awaitsSnapshots && snapshot !== false ? 'always' : snapshot,
    })
  }

  #receive(message: Message): void {
    switch (message.type) {
      case 'hello':
        return this.#setState({ source: message.source, head: message.head, demo: message.demo })
      case 'subscribed':
        this.#proof.startConnection(message.id)
        if (message.id !== null) this.#advance(message.id)
        this.#awaitsSnapshots ||= message.resume !== 'full'
        return this.#setState({ rejected: message.rejected })
      case 'snapshot':
        return this.#push({ item: message, position: null })
      case 'gap': {
        const received = this.#proof.seen
        const due = this.#proof.restart(message.after, message.id)
        if (!due) this.#received = null
        this.#advance(message.id)
        this.#awaitsSnapshots = true
        return this.#pushGap(message, { received, due })
      }
      case 'live':
        this.#awaitsSnapshots = false
        this.#setState({ phase: 'live', error: null })
        return this.#prove(this.#proof.receiveLive(message.replayed, message.id), message.id)
      case 'heartbeat':
        this.#prove(this.#proof.receiveCount(message.sent, message.id), message.id)
        return this.#setState({ source: message.source, head: message.head })
    }
    if ('prev' in message) this.#receiveUpdate(message)
  }

  #receiveUpdate(update: Update): void {
    if (this.#proof.isRepeat(update, this.#received)) return
    const loss = this.#proof.receive(update)
    if (loss) this.#pushGap(gapOf(loss, this.#received ?? loss.after), loss)
    if (update.type === 'status') this.#setState({ source: update.source, head: update.head })
    this.#awaitsSnapshots = false
    this.#advance(update.id)
    this.#push({ position: this.#proof.hasDue ? null : this.#received, ...(updateTypes.includes(update.type) && { item: update }) })
  }

  /** Called when the relay reports that it has sent every message up to `id`. */
  #prove(loss: Loss | null, id: string): void {
    // If the tape has lost messages, new snapshots are needed. The relay sends them only on a new connection.
    const needsSnapshots = loss?.query === null
    this.#awaitsSnapshots ||= needsSnapshots
    if (loss) this.#pushGap(gapOf(loss, id), loss)
    this.#advance(id)
    if (needsSnapshots && this.#state.phase !== 'closed') this.#connection.open()
    if (!this.#awaitsSnapshots) this.#queue.push({ position: this.#received })
  }

  #advance(id: string): void {
    if (this.#received === null || !isNotAfter(id, this.#received)) this.#received = id
  }

  #pushGap(gap: Gap, loss: Partial<Loss>): void {
    const { backfill } = gap
    // A position saved at a gap of the relay would let a restarted program miss the snapshots after the gap.
    const position = gap.reason === 'missed' ? gap.id : null
    // Without the received ids, `#fill` would yield received messages again.
    if (this.#options.gaps === 'fill' && backfill !== null && loss.received)
      return this.#push({ position, fill: () => this.#fill(gap, backfill, loss) })
    if (this.#options.gaps === 'throw') this.#end(new GapError(gap))
    else this.#push({ item: gap, position })
  }

  /** Yields the messages that a gap left out, and the gap itself if they cannot be read. */
  async *#fill(gap: Gap, backfill: string, loss: Partial<Loss>): AsyncGenerator<StreamItem> {
    let left = loss.count ?? 0
    const due = new Set(loss.due)
    try {
      for await (const update of readBackfill(this.#source.http, backfill, this.#abort.signal)) {
        const { id, type } = update
        // A repeated message that was lost on the way counts as missing, but the program received it on an earlier connection.
        if (due.delete(id)) left -= 1
        if (loss.received?.has(id) || (loss.type ?? type) !== type || this.#filled.has(id)) continue
        if (this.#filled.size === FILLED_IDS_BOUND) this.#filled.clear()
        this.#filled.add(id)
        left -= 1
        yield update
      }
      // The history of the sealed view omits a fact whose own message is deleted, so messages that are still missing are an error.
      if (due.size > 0 || (left > 0 && this.#options.stage === 'sealed')) throw new Error('messages are missing')
    } catch (failure) {
      if (this.#abort.signal.aborted) return
      this.#options.onError?.(new GapError(gap, failure))
      yield gap
    }
  }

  #push(entry: QueueEntry): void {
    this.#queue.push(entry)
    if (this.#queue.size < this.#highWaterMark || this.#awaitsSnapshots || this.#state.phase === 'closed') return
    // A WebSocket cannot be slowed down. The tape keeps the messages, and a later connection receives them.
    this.#connection.close()
    this.#setState({ phase: 'paused' })
  }

  async #take(): Promise<IteratorResult<StreamItem, undefined>> {
    try {
      this.#started ??= this.#start()
      await this.#started
      for (;;) {
        const filled = await this.#filling?.next()
        if (filled?.done === false) return filled
        this.#filling = null
        this.#finish()
        this.#current = await this.#queue.take()
        if (this.#current === null) return { done: true, value: undefined }
        if (this.#state.phase === 'paused' && this.#queue.size <= this.#highWaterMark / 2) this.#connection.open()
        if (this.#current.item) return { done: false, value: this.#current.item }
        this.#filling = this.#current.fill?.() ?? null
      }
    } catch (failure) {
      await this.close()
      throw failure
    }
  }

  #finish(): void {
    const position = this.#current?.position ?? null
    this.#current = null
    if (position === null) return
    this.#finished = position
    this.#saving ??= this.#save().finally(() => {
      this.#saving = null
    })
  }

  /** Saves one position at a time, always the newest. */
  async #save(): Promise<void> {
    const { store } = this.#options
    try {
      while (store && this.#finished !== null && this.#saved !== this.#finished) {
        const position = this.#finished
        await store.save(position)
        this.#saved = position
      }
    } catch (failure) {
      this.#end(failure instanceof Error ? failure : new Error(String(failure)))
    }
  }

  #fail(error: StocktapeError, isFinal: boolean): void {
    if (isFinal) this.#end(error)
    this.#options.onError?.(error)
  }

  #end(failure: Error | null): void {
    if (this.#state.phase === 'closed') return
    this.#connection.close()
    this.#queue.end(failure)
    this.#setState({ phase: 'closed', source: null, error: failure && shownError(failure), retryAt: null })
  }

  #setState(change: Partial<StreamState>): void {
    this.#state = { ...this.#state, ...change }
    this.#options.onState?.(this.state)
  }
}
