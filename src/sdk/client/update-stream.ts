// The declarations name Symbol.asyncDispose, which programs that compile without this library do not have.
/// <reference lib="esnext.disposable" preserve="true" />

import type { LiveMessage, Message, Update } from '../generated/messages.ts'
import { updateTypes } from '../generated/names.ts'
import { CompletenessProof, GapError, gapOf, type Loss } from './completeness-proof.ts'
import { Connection, type Environment } from './connection.ts'
import { type StocktapeError, shownError } from './errors.ts'
import { readBackfill } from './history-reader.ts'
import { type Http, selectionQuery, setGiven } from './http-requests.ts'
import { isNotAfter } from './position-order.ts'
import {
  type Gap,
  initialState,
  type PositionStore,
  type StreamItem,
  type StreamOptions,
  type StreamState,
} from './stream-types.ts'

const DEFAULT_HIGH_WATER_MARK = 10_000
const FILLED_IDS_BOUND = 100_000

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

type QueueEntry = {
  /** Position to save once the consumer has finished with the entry: a restarted program continues there. Null saves none. */
  readonly position: string | null
  readonly items: Iterable<StreamItem> | AsyncIterable<StreamItem> | undefined
}

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
  readonly #highWaterMark: number
  readonly #abort = new AbortController()
  #state = initialState
  readonly #items = this.#iterate()
  /** Entries that wait for the consumer, first in, first out. */
  #queue: QueueEntry[] = []
  #wake: () => void = () => {}
  #failure: Error | null = null
  #received: string | null = null
  /** Set while snapshots must precede the next update. If the connection ends earlier, the next connection requests them. */
  #awaitsSnapshots = false
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
    return { ...this.#state, position: this.#finished, queued: this.#queue.length }
  }

  get position(): string | null {
    return this.#finished
  }

  [Symbol.asyncIterator](): this {
    return this
  }

  /** Calls run one after another. */
  next(): Promise<IteratorResult<StreamItem, undefined>> {
    return this.#items.next()
  }

  async return(): Promise<IteratorResult<StreamItem, undefined>> {
    await this.close()
    return { done: true, value: undefined }
  }

  async close(): Promise<void> {
    this.#queue = []
    this.#end(null)
    this.#abort.abort()
    await this.#saving
  }

  [Symbol.asyncDispose](): Promise<void> {
    return this.close()
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
      since: this.#received === null ? since : this.#proof.resumeFrom(this.#received),
      snapshot: this.#awaitsSnapshots && snapshot !== false ? 'always' : snapshot,
    })
  }

  #receive(message: Message): void {
    if ('head' in message) this.#setState({ source: message.source, head: message.head })
    switch (message.type) {
      case 'hello':
        return this.#setState({ demo: message.demo })
      case 'subscribed':
        this.#proof.startConnection(message.id)
        if (message.id !== null) this.#advance(message.id)
        this.#awaitsSnapshots ||= message.resume !== 'full'
        return this.#setState({ rejected: message.rejected })
      case 'snapshot':
        return this.#push(null, [message])
      case 'gap': {
        const received = this.#proof.seen
        const due = this.#proof.restart(message.after, message.id)
        if (!due) this.#received = null
        this.#advance(message.id)
        this.#awaitsSnapshots = true
        return this.#pushGap(message, { received, due })
      }
      case 'live': {
        this.#awaitsSnapshots = false
        this.#setState({ phase: 'live', error: null })
        const loss = this.#proof.receiveLive(message.replayed, message.id)
        this.#enqueue(null, this.#verify(message, this.#proof.replayed))
        return this.#prove(loss, message.id)
      }
      case 'heartbeat':
        return this.#prove(this.#proof.receiveCount(message.sent, message.id), message.id)
    }
    if ('prev' in message) this.#receiveUpdate(message)
  }

  #receiveUpdate(update: Update): void {
    if (this.#proof.isRepeat(update, this.#received)) return
    const loss = this.#proof.receive(update)
    if (loss) this.#pushGap(gapOf(loss, this.#received ?? loss.after), loss)
    this.#awaitsSnapshots = false
    this.#advance(update.id)
    const position = this.#proof.hasDue ? null : this.#received
    this.#push(position, updateTypes.includes(update.type) ? [update] : [])
  }

  /** Called when the relay reports that it has sent every message up to `id`. */
  #prove(loss: Loss | null, id: string): void {
    // If the tape has lost messages, new snapshots are needed. The relay sends them only on a new connection.
    const needsSnapshots = loss?.query === null
    this.#awaitsSnapshots ||= needsSnapshots
    if (loss) this.#pushGap(gapOf(loss, id), loss)
    this.#advance(id)
    if (needsSnapshots && this.#state.phase !== 'closed') this.#connection.open()
    if (!this.#awaitsSnapshots) this.#enqueue(this.#received)
  }

  #advance(id: string): void {
    if (this.#received === null || !isNotAfter(id, this.#received)) this.#received = id
  }

  #pushGap(gap: Gap, loss: Partial<Loss>): void {
    // A position saved at a gap of the relay would let a restarted program miss the snapshots after the gap.
    const position = gap.reason === 'missed' ? gap.id : null
    if (this.#options.gaps === 'throw') this.#end(new GapError(gap))
    else this.#push(position, this.#report(gap, loss))
  }

  async *#report(gap: Gap, loss: Partial<Loss>): AsyncGenerator<StreamItem> {
    const { gaps } = this.#options
    if (gaps === 'throw') throw new GapError(gap)
    // Without the received ids, `#fill` would yield received messages again.
    if (gaps === 'fill' && gap.backfill !== null && loss.received) yield* this.#fill(gap, gap.backfill, loss)
    else yield gap
  }

  /** Compares a replay with its receipt, before any later message is yielded. */
  async *#verify({ after, through, digest }: LiveMessage, ids: readonly string[] | null): AsyncGenerator<StreamItem> {
    const found = ids && (await this.#source.http.digestOf(ids))
    this.#setState({ verified: found === digest })
    if (found === null || found === digest) return
    const loss = { after, through, query: this.#query, received: new Set(ids) }
    yield* this.#report(gapOf(loss, through), loss)
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

  #push(position: string | null, items: Iterable<StreamItem> | AsyncIterable<StreamItem>): void {
    this.#enqueue(position, items)
    if (this.#queue.length < this.#highWaterMark || this.#awaitsSnapshots || this.#state.phase === 'closed') return
    // A WebSocket cannot be slowed down. The tape keeps the messages, and a later connection receives them.
    this.#connection.close()
    this.#setState({ phase: 'paused' })
  }

  #enqueue(position: string | null, items?: QueueEntry['items']): void {
    if (this.#state.phase === 'closed') return
    // Two entries in a row with only a position become one, so that heartbeats do not fill the queue.
    if (!items && this.#queue.at(-1)?.items === undefined) this.#queue.pop()
    this.#queue.push({ position, items })
    this.#wake()
  }

  /** Yields the items. Requesting an item means that the consumer has finished with the one before it. */
  async *#iterate(): AsyncGenerator<StreamItem, undefined> {
    try {
      await this.#start()
      for (;;) {
        const entry = this.#queue.shift()
        if (!entry) {
          if (this.#failure) throw this.#failure
          if (this.#state.phase === 'closed') return
          await new Promise<void>((resolve) => {
            this.#wake = resolve
          })
          continue
        }
        if (this.#state.phase === 'paused' && this.#queue.length <= this.#highWaterMark / 2) this.#connection.open()
        const { position, items } = entry
        for await (const item of items ?? []) {
          yield item
          if (this.#abort.signal.aborted) return
        }
        if (position !== null) this.#finish(position)
        if (!items) this.#setState({})
      }
    } catch (failure) {
      this.#end(failure as Error)
      throw failure
    } finally {
      await this.close()
    }
  }

  #finish(position: string): void {
    this.#finished = position
    const { store } = this.#options
    if (store)
      this.#saving ??= this.#save(store).finally(() => {
        this.#saving = null
      })
  }

  /** Saves one position at a time, always the newest. */
  async #save(store: PositionStore): Promise<void> {
    try {
      while (this.#finished !== null && this.#saved !== this.#finished) {
        const position = this.#finished
        await store.save(position)
        this.#saved = position
      }
    } catch (failure) {
      this.#end(failure as Error)
    }
  }

  #fail(error: StocktapeError, isFinal: boolean): void {
    if (isFinal) this.#end(error)
    this.#options.onError?.(error)
  }

  #end(failure: Error | null): void {
    if (this.#state.phase === 'closed') return
    this.#connection.close()
    this.#failure = failure
    this.#setState({ phase: 'closed', source: null, error: failure && shownError(failure), retryAt: null })
    this.#wake()
  }

  #setState(change: Partial<StreamState>): void {
    this.#state = { ...this.#state, ...change }
    this.#options.onState?.(this.state)
  }
}
