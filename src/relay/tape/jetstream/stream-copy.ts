import { rmSync } from 'node:fs'
import { join } from 'node:path'
import type { Host } from '../../host.ts'
import type { BarRow } from '../bars/bar-row.ts'
import { type BatchMessage, batchMessageOf, numberedBatchOf, type ReadableBatch, readMessage } from '../batch-message.ts'
import { defineNote, Notes } from '../notes.ts'
import { type Entry, REACH_BOUND_MS, type SharedTapeLink } from '../tape.ts'
import { TAPE_FILE_NAME } from '../tape-database.ts'
import { openTapeStore, type TapeOrigin, type TapeStore, type TapeStoreOptions } from '../tape-store.ts'
import type { NatsStream, StreamMessage, StreamPlace } from './nats-stream.ts'

/** Time without a batch after which the tape may lack current updates. */
const SILENCE_BOUND_MS = 5_000
/** Number of messages of the stream above which a process that has not received them is behind. */
const PENDING_BOUND = 50

/** The last message of the stream that the store contains. */
type StreamPoint = StreamPlace & {
  /** Whether the store has the notes that were written before its first message. */
  readonly isComplete: boolean
  /** Whether the message is the last one of a leader that stops. */
  readonly hasResigned: boolean
  /** Whether the store has the bars that were written before its first message. */
  readonly hasBars: boolean
}

const pointNote = defineNote<StreamPoint>('stream-point')

export type StreamCopyOptions = TapeStoreOptions &
  Pick<Host, 'uptime' | 'log'> & {
    readonly stream: Pick<NatsStream, 'extent'>
    /** Called when this process cannot write its copy of the tape. */
    readonly onFailure: (failure: unknown) => void
    /** Called for each message of the stream that this process cannot read. */
    readonly onUnreadable: () => void
  }

/** The tape in a stream of NATS JetStream, as a copy in the store of this process. One ingester leads, and writes the stream. */
export class StreamCopy implements SharedTapeLink {
  readonly #options: StreamCopyOptions
  #store: TapeStore
  #point: StreamPoint
  /** Number of the last message that this process received, whether it was a batch or not. */
  #seenSeq: number
  #refusal: string | null = null
  /** Number of messages of the stream that this process has not received. */
  lag = 0
  /** Uptime at the last sign of a leader with this version of stocktape. */
  #heardAt: number
  /** Uptime at the last batch of a leader with another version of stocktape. */
  #otherHeardAt = Number.NEGATIVE_INFINITY
  #answer: Promise<number | null> = Promise.resolve(null)
  #nextAnswer: Promise<number | null> | null = null
  /** Called with the id of each batch before it is written. */
  onBatch: (id: string) => void = () => {}
  /** Called with the minutes of each batch after it is written. */
  onBars: (bars: readonly BarRow[]) => void = () => {}

  constructor(options: StreamCopyOptions) {
    this.#options = options
    this.#store = this.#open(options.origin ?? null)
    this.#point = this.#store.notes.note(pointNote) ?? { seq: 0, id: '', isComplete: true, hasResigned: true, hasBars: false }
    this.#seenSeq = this.#point.seq
    this.#heardAt = options.uptime()
  }

  /** The store. It is replaced only while the tape is being opened. */
  get store(): TapeStore {
    return this.#store
  }

  get point(): StreamPoint {
    return this.#point
  }

  /** Records that the store has all bars. The next batch writes it. */
  completeBars(): void {
    this.#point = { ...this.#point, hasBars: true }
  }

  get seenSeq(): number {
    return this.#seenSeq
  }

  /** Replaces the file by one that begins after message `seq` of the stream: at `origin` or, if that is null, with a new epoch. */
  replace(origin: TapeOrigin | null, seq: number): void {
    const { dataDir } = this.#options
    this.#store.close()
    if (dataDir !== ':memory:')
      for (const end of ['', '-wal', '-shm']) rmSync(join(dataDir, `${TAPE_FILE_NAME}${end}`), { force: true })
    this.#store = this.#open(origin)
    this.#point = { seq, id: '', isComplete: origin === null, hasResigned: origin === null, hasBars: false }
    this.#seenSeq = seq
    this.#heardAt = this.#options.uptime()
  }

  #open(origin: TapeOrigin | null): TapeStore {
    // If NATS stores the tape, no update is lost with the copy in this process.
    return openTapeStore({ ...this.#options, origin, isDurable: () => this.#refusal === null })
  }

  /** Whether the tape may lack updates or notes: it is incomplete, no process writes, or this one does not receive the batches. */
  get isCut(): boolean {
    return !this.#point.isComplete || this.#silentMs > SILENCE_BOUND_MS || this.lag > PENDING_BOUND
  }

  /** Time since the last batch of a leader; infinite once that leader has stopped. */
  get #silentMs(): number {
    return this.#point.hasResigned ? Number.POSITIVE_INFINITY : this.#options.uptime() - this.#heardAt
  }

  /** Time since the last sign of any leader, even one with another version of stocktape. */
  get leaderlessMs(): number {
    return Math.min(this.#silentMs, this.#options.uptime() - this.#otherHeardAt)
  }

  /** Waits for a leader again, from now on. */
  expectLeader(): void {
    this.#point = { ...this.#point, hasResigned: false }
    this.#heardAt = this.#options.uptime()
  }

  /** Reason for which NATS does not store batches of this process; null until it refuses, and again once it stores a batch. */
  get refusal(): string | null {
    return this.#refusal
  }

  onRefusal(reason: string): void {
    if (this.#refusal !== reason) this.#options.log('nats_refuses', { reason })
    this.#refusal = reason
  }

  /** Applies a message of the stream to the store. Returns false if the store cannot continue. */
  receive(message: StreamMessage): boolean {
    this.#seenSeq = Math.max(this.#seenSeq, message.seq)
    this.lag = message.pending
    // The store contains the message already, because this process wrote it.
    if (message.seq <= this.#point.seq) return true
    const read = this.read(message)
    if (!read) return true
    try {
      return this.apply(message, read.batch, read.entries)
    } catch (failure) {
      this.#options.onFailure(failure)
      return false
    }
  }

  /** Returns the batch in a message; null to skip the message. If the leader's tape contains it, `receive` refuses the next one. */
  read({ seq, bytes }: StreamMessage): ReadableBatch | null {
    // `bytes` is null for a part that does not complete its message.
    const read = bytes && readMessage(bytes)
    if (!read || read.batch) return read
    const { onUnreadable, log, uptime } = this.#options
    onUnreadable()
    const version = read.otherVersion
    if (version === null) log('stream_unreadable', { seq })
    else {
      this.#otherHeardAt = uptime()
      log('stream_other_version', { seq, version })
    }
    return null
  }

  /** Writes a batch of the stream to the store. Returns false if the batch does not follow the last one. */
  apply({ seq, id }: StreamPlace, batch: BatchMessage, entries: readonly Entry[]): boolean {
    // The message is applied already: the stream may deliver it before NATS answers its writer.
    if (seq <= this.#point.seq) return true
    if (batch.epoch !== this.#store.epoch || batch.after !== this.#store.end()) return false
    this.onBatch(id)
    if (this.#refusal !== null) this.#options.log('nats_stores')
    this.#refusal = null
    const { isComplete, hasBars } = this.#point
    const { lastSeqs } = batch
    this.#point = { seq, id, isComplete: isComplete || lastSeqs !== null, hasResigned: batch.resigns, hasBars }
    this.#seenSeq = Math.max(this.#seenSeq, seq)
    this.#heardAt = this.#options.uptime()
    // A complete store has everything that a checkpoint contains.
    const isKnown = lastSeqs !== null && isComplete
    const news = isKnown ? { ...batch, notes: {}, lastSeqs: [] } : batch
    const ownNotes = new Notes().set(pointNote, this.#point)
    this.#store.write({ ...numberedBatchOf(news, entries), ownNotes, lastSeqs: news.lastSeqs ?? [] })
    this.onBars(batch.bars)
    return true
  }

  /** A batch with everything that a new copy needs besides the updates after this moment. */
  checkpoint(keepAfter: number): BatchMessage {
    const notes = new Notes(Object.fromEntries(this.#store.notes)).set(pointNote, null)
    const batch = { entries: [], notes, bars: [], keepAfter }
    return { ...batchMessageOf(this.#store, batch), lastSeqs: this.#store.lastSeqs }
  }

  async reach(seq: number): Promise<boolean> {
    // Unknown as long as NATS does not answer.
    let last: number | null = null
    // If the stream has nothing more, no process has ever given this position to a client.
    const isReached = () => this.#store.end() >= seq || (last !== null && this.#hasApplied(last))
    const { promise, resolve } = Promise.withResolvers<void>()
    const check = () => {
      if (isReached()) resolve()
    }
    const timeout = setTimeout(resolve, REACH_BOUND_MS)
    const unfollow = this.#store.follow(check)
    void this.#askForLast().then((answer) => {
      last = answer
      check()
    })
    check()
    await promise
    clearTimeout(timeout)
    unfollow()
    return isReached()
  }

  /** Whether the store contains all batches of the stream up to a message. */
  #hasApplied(last: number): boolean {
    return this.#seenSeq >= last && this.#point.isComplete && this.#otherHeardAt < this.#heardAt
  }

  /**
   * Asks NATS for the last number of the stream; null if it does not answer. All who ask while a question is on its way share the
   * next one: the answer to the first may be older than the position for which they ask.
   */
  #askForLast(): Promise<number | null> {
    this.#nextAnswer ??= this.#answer.then(() => {
      this.#nextAnswer = null
      this.#answer = this.#options.stream.extent().then(
        (extent) => extent?.last ?? 0,
        () => null,
      )
      return this.#answer
    })
    return this.#nextAnswer
  }
}
