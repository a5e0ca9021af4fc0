import type { DatabaseSync } from 'node:sqlite'
import { BehaviorSubject } from 'rxjs'
import type { Draft } from '../../../protocol/updates.ts'
import { type BatchMessage, batchMessageOf, type ReadableBatch, readMessage } from '../batch-message.ts'
import { defineNote, Notes } from '../notes.ts'
import { firstSeqOfRun } from '../runs.ts'
import { StoredTape, type StoredTapeOptions } from '../stored-tape.ts'
import { type Entry, REACH_BOUND_MS } from '../tape.ts'
import type { NatsStream, StreamExtent, StreamMessage, StreamPlace } from './nats-stream.ts'
import { StreamWriter } from './stream-writer.ts'

/** Time without a batch after which the tape may lack current updates. */
const SILENCE_BOUND_MS = 5_000
/** Number of messages of the stream above which a process that has not received them is behind. */
const PENDING_BOUND = 50

/** The last message of the stream that this tape contains. */
type StreamPoint = StreamPlace & {
  /** Whether the tape has the notes that were written before its first message. */
  readonly isComplete: boolean
  /** Whether the message is the last one of a leader that stops. */
  readonly hasResigned: boolean
}

const pointNote = defineNote<StreamPoint>('stream-point')

export type JetStreamTapeOptions = StoredTapeOptions & {
  readonly stream: NatsStream
  /** Name of this process in the ids of its messages. */
  readonly writerId: string
  readonly uptime: () => number
  readonly warn: (kind: string, detail: unknown) => void
  /** Called when this process cannot write its copy of the tape. */
  readonly onFailure: (failure: unknown) => void
  /** Called for each message of the stream that this process cannot read. */
  readonly onUnreadable: () => void
  readonly start: StreamPoint
}

/** The tape as a stream in NATS JetStream. One ingester leads and appends; every process reads from its own copy in a file. */
export class JetStreamTape extends StoredTape {
  readonly stream: NatsStream
  /** Emits whether this process leads: first the current value, then each change. */
  readonly leadership = new BehaviorSubject(false)
  readonly #options: JetStreamTapeOptions
  readonly #writer: StreamWriter
  readonly #closing = new AbortController()
  readonly closing = this.#closing.signal
  #point: StreamPoint
  /** Number of the last message that this process received, whether it was a batch or not. */
  #seenSeq: number
  #refusal: string | null = null
  #pending = 0
  /** Uptime at the last sign of a leader with this version of stocktape. */
  #heardAt: number
  /** Uptime at the last batch of a leader with another version of stocktape. */
  #otherHeardAt = Number.NEGATIVE_INFINITY

  constructor(database: DatabaseSync, options: JetStreamTapeOptions) {
    super(database, options)
    const { stream, writerId, uptime, warn, onFailure, start } = options
    this.stream = stream
    this.#options = options
    this.#point = this.note(pointNote) ?? start
    this.#seenSeq = this.#point.seq
    this.#heardAt = uptime()
    this.#writer = new StreamWriter({
      ...{ stream, writerId, uptime, warn, onFailure },
      tape: {
        seenSeq: () => this.#seenSeq,
        number: (drafts) => this.number(drafts),
        batchOf: (entries, notes, keepAfter) => batchMessageOf(this, this.end(), entries, notes, keepAfter),
        checkpoint: () => this.#checkpointBatch(),
        apply: (message, batch, entries) => void this.#apply(message, batch, entries),
      },
      onRefusal: (reason) => this.onRefusal(reason),
      onLeadership: (isLeading) => {
        this.#heardAt = uptime()
        this.leadership.next(isLeading)
      },
    })
  }

  get point(): StreamPoint {
    return this.#point
  }

  get isLeading(): boolean {
    return this.#writer.isLeading
  }

  /** Whether the tape may lack updates or notes: it is incomplete, no process writes, or this one does not receive the batches. */
  get isCut(): boolean {
    return !this.#point.isComplete || this.#silentMs > SILENCE_BOUND_MS || this.#pending > PENDING_BOUND
  }

  /** Time since the last batch of a leader; infinite once that leader has stopped. */
  get #silentMs(): number {
    return this.#point.hasResigned ? Number.POSITIVE_INFINITY : this.#options.uptime() - this.#heardAt
  }

  /** Time since the last sign of any leader, even one with another version of stocktape. */
  get leaderlessMs(): number {
    return Math.min(this.#silentMs, this.#options.uptime() - this.#otherHeardAt)
  }

  /** Whether NATS stores the tape. If so, no update is lost with the copy in this process. */
  override get isDurable(): boolean {
    return this.#refusal === null
  }

  /** Reason for which NATS does not store batches of this process; null until it refuses, and again once it stores a batch. */
  get refusal(): string | null {
    return this.#refusal
  }

  onRefusal(reason: string): void {
    this.#refusal = reason
    this.#options.warn('NATS does not store the tape', { reason })
  }

  /** Applies a message of the stream to the tape. Returns false if the tape cannot continue. */
  receive(message: StreamMessage): boolean {
    this.#seenSeq = Math.max(this.#seenSeq, message.seq)
    this.#pending = message.pending
    // The tape contains the message already, because this process wrote it.
    if (message.seq <= this.#point.seq) return true
    const read = this.read(message)
    if (!read) return true
    try {
      return this.#apply(message, read.batch, read.entries)
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
    const { onUnreadable, warn, uptime } = this.#options
    onUnreadable()
    const version = read.otherVersion
    if (version === null) warn('a message of the stream is no batch, and was skipped', { seq })
    else {
      this.#otherHeardAt = uptime()
      warn('a batch of the stream is of another version of stocktape, and was skipped', { seq, version })
    }
    return null
  }

  override append(drafts: readonly Draft[], notes = new Notes(), keepAfter = Number.POSITIVE_INFINITY) {
    return this.#writer.append(drafts, notes, keepAfter)
  }

  override async reach(seq: number): Promise<boolean> {
    const { promise, resolve } = Promise.withResolvers<void>()
    const timeout = setTimeout(resolve, REACH_BOUND_MS)
    const unfollow = this.follow(() => {
      if (this.end() >= seq) resolve()
    })
    // Unknown as long as NATS does not answer.
    let last: number | null = null
    const onExtent = (extent: StreamExtent | null) => {
      last = extent?.last ?? 0
      // Nothing more is in the stream, so nobody gave out this position.
      if (this.#hasApplied(last)) resolve()
    }
    this.stream.extent().then(onExtent, () => {})
    if (this.end() < seq) await promise
    clearTimeout(timeout)
    unfollow()
    return this.end() >= seq || (last !== null && this.#hasApplied(last))
  }

  /** Whether this tape contains all batches of the stream up to a message. */
  #hasApplied(last: number): boolean {
    return this.#seenSeq >= last && this.#point.isComplete && this.#otherHeardAt < this.#heardAt
  }

  offerCheckpoint(): void {
    this.#writer.offerCheckpoint()
  }

  async lead(): Promise<void> {
    if (this.isLeading || !this.#point.isComplete) return
    const hasWon = await this.#writer.lead()
    // Another ingester won. This process tries again only if it hears nothing of that leader.
    if (!hasWon) {
      this.#point = { ...this.#point, hasResigned: false }
      this.#heardAt = this.#options.uptime()
      return
    }
    const { now, wallTime = now } = this.#options
    this.beginRun(firstSeqOfRun(this.end(), wallTime() - this.epochBeganAt, this.end() === 0))
    this.#writer.start()
  }

  override async close(): Promise<void> {
    this.#closing.abort()
    await this.#writer.close()
    await this.stream.close()
    await this.closeFile()
  }

  /** Closes the file but not the stream, so that another tape can use the stream. */
  async closeFile(): Promise<void> {
    this.#closing.abort()
    await super.close()
  }

  #apply({ seq, id }: StreamPlace, batch: BatchMessage, entries: readonly Entry[]): boolean {
    // The message is applied already: the stream may deliver it before NATS answers its writer.
    if (seq <= this.#point.seq) return true
    if (batch.epoch !== this.epoch || batch.after !== this.end()) return false
    this.#writer.onBatch(id)
    if (this.#refusal !== null) this.#options.warn('NATS stores the tape again', {})
    this.#refusal = null
    const { isComplete } = this.#point
    const { keepAfter, lastSeqs } = batch
    this.#point = { seq, id, isComplete: isComplete || lastSeqs !== null, hasResigned: batch.resigns }
    this.#seenSeq = Math.max(this.#seenSeq, seq)
    this.#heardAt = this.#options.uptime()
    // A complete tape has everything that a checkpoint contains.
    const isKnown = lastSeqs !== null && isComplete
    this.write(entries, new Notes(isKnown ? {} : batch.notes), keepAfter ?? Number.POSITIVE_INFINITY, {
      ownNotes: new Notes().set(pointNote, this.#point),
      lastSeqs: isKnown ? [] : (lastSeqs ?? []),
    })
    return true
  }

  #checkpointBatch(): BatchMessage {
    const { notes, lastSeqs } = this.checkpoint
    const all = new Notes(Object.fromEntries(notes)).set(pointNote, null)
    return { ...batchMessageOf(this, this.end(), [], all, Number.POSITIVE_INFINITY), lastSeqs }
  }
}
