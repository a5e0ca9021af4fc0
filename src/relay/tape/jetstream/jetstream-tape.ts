import type { DatabaseSync } from 'node:sqlite'
import { BehaviorSubject } from 'rxjs'
import type { Draft } from '../../../protocol/updates.ts'
import { type BatchMessage, batchMessageOf, type ReadableBatch, readMessage } from '../batch-message.ts'
import { defineNote, Notes } from '../notes.ts'
import { firstSeqOfRun } from '../runs.ts'
import { StoredTape, type StoredTapeOptions } from '../stored-tape.ts'
import { type Entry, TapeBehindError } from '../tape.ts'
import type { NatsStream, StreamMessage, StreamPlace } from './nats-stream.ts'
import { StreamWriter } from './stream-writer.ts'

/** After this time without a batch, the tape no longer shows the present. */
const SILENCE_BOUND_MS = 5_000
/** A process is behind if the stream holds more messages than this that it has not received. */
const PENDING_BOUND = 50
/** The time that a client waits for a position that only another process has. */
const REACH_TIMEOUT_MS = 5_000

/** The last message of the stream that this tape contains. */
type StreamPoint = StreamPlace & {
  /** The tape also has the notes from before its first message. */
  readonly isComplete: boolean
  /** The message is the last one of a leader that stops. */
  readonly hasResigned: boolean
}

const pointNote = defineNote<StreamPoint>('stream-point')

export type JetStreamTapeOptions = StoredTapeOptions & {
  readonly stream: NatsStream
  /** Names this process in the ids of its messages. */
  readonly writerId: string
  readonly uptime: () => number
  readonly warn: (kind: string, detail: unknown) => void
  /** Called when the copy in this process cannot be written. */
  readonly onFailure: (failure: unknown) => void
  /** Called for each message of the stream that is no batch. */
  readonly onUnreadable: () => void
  readonly start: StreamPoint
}

/** The tape as a stream in NATS JetStream. One ingester leads and appends; every process reads from its own copy in a file. */
export class JetStreamTape extends StoredTape {
  readonly stream: NatsStream
  /** Whether this process leads: now, and at every change. */
  readonly leadership = new BehaviorSubject(false)
  readonly #options: JetStreamTapeOptions
  readonly #writer: StreamWriter
  readonly #closing = new AbortController()
  readonly closing = this.#closing.signal
  #point: StreamPoint
  /** The last message seen, whether it was a batch or not. */
  #seenSeq: number
  #refusal: string | null = null
  #pending = 0
  /** Uptime at the last batch, and at the last batch of another version. */
  #heardAt: number
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

  /** Whether the tape lacks current updates: no process writes, or this one does not receive the batches. */
  get isCut(): boolean {
    return !this.#point.isComplete || this.#silentMs > SILENCE_BOUND_MS || this.#pending > PENDING_BOUND
  }

  /** Time since the last batch of a leader; infinite once that leader has stopped. */
  get #silentMs(): number {
    return this.#point.hasResigned ? Number.POSITIVE_INFINITY : this.#options.uptime() - this.#heardAt
  }

  /** Time since any leader was heard, even one of another version. */
  get leaderlessMs(): number {
    return Math.min(this.#silentMs, this.#options.uptime() - this.#otherHeardAt)
  }

  /** While NATS stores the tape, it also has what the copy may lose. */
  override get isDurable(): boolean {
    return this.#refusal === null
  }

  /** NATS's own reason not to store batches of this process; null until it refuses, and again once it stores a batch. */
  get refusal(): string | null {
    return this.#refusal
  }

  onRefusal(reason: string): void {
    this.#refusal = reason
    this.#options.warn('NATS does not store the tape', { reason })
  }

  /** Takes over a message of the stream. Returns false if the tape cannot continue with it. */
  receive(message: StreamMessage): boolean {
    this.#seenSeq = Math.max(this.#seenSeq, message.seq)
    this.#pending = message.pending
    // This process has written the message itself.
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

  /** The batch in a message; null to skip it. If the leader's tape has the skipped batch, `receive` refuses the next one. */
  read({ seq, bytes }: StreamMessage): ReadableBatch | null {
    // Without bytes, its writer left the batch unfinished.
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

  async reach(seq: number): Promise<void> {
    const { promise, resolve } = Promise.withResolvers<void>()
    const timeout = setTimeout(resolve, REACH_TIMEOUT_MS)
    const unfollow = this.follow(() => {
      if (this.end() >= seq) resolve()
    })
    if (this.end() < seq) await promise
    clearTimeout(timeout)
    unfollow()
    if (this.end() < seq && this.isCut) throw new TapeBehindError('this process does not receive the tape now')
  }

  offerCheckpoint(): void {
    this.#writer.offerCheckpoint()
  }

  async lead(): Promise<void> {
    if (this.isLeading || !this.#point.isComplete) return
    const hasWon = await this.#writer.lead()
    // Another ingester was faster, and this one receives its messages soon.
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

  /** Closes the file, but not the stream, so that another tape can use it. */
  async closeFile(): Promise<void> {
    this.#closing.abort()
    await super.close()
  }

  #apply({ seq, id }: StreamPlace, batch: BatchMessage, entries: readonly Entry[]): boolean {
    // The stream may deliver a message before NATS answers its writer.
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
    // A complete tape has all that a checkpoint contains.
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
