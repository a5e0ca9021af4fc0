import type { DatabaseSync } from 'node:sqlite'
import type { Draft } from '../../../protocol/updates.ts'
import type { BatchMessage } from '../batch-message.ts'
import { defineNote, Notes } from '../notes.ts'
import { firstSeqOfRun } from '../runs.ts'
import { type Entry, TapeBehindError } from '../tape.ts'
import { TapeFile, type TapeFileOptions } from '../tape-file.ts'
import type { NatsStream, StreamMessage, StreamPlace } from './nats-stream.ts'
import { type ReadMessage, readMessage } from './readable-batch.ts'
import { StreamWriter } from './stream-writer.ts'

/** Without a batch for this long, nothing on the tape is news any more. */
const SILENCE_BOUND_MS = 5_000
/** A process is behind if more messages of the stream are on their way to it. */
const PENDING_BOUND = 50
/** How long a client waits that was given more by another process than this one has. */
const REACH_TIMEOUT_MS = 5_000

/**
 * The last message of the stream that this tape contains. `isComplete`: it also has the notes from before its first message.
 * `hasResigned`: it is the last one of a leader that stops.
 */
type StreamPoint = StreamPlace & { readonly isComplete: boolean; readonly hasResigned: boolean }

const pointNote = defineNote<StreamPoint>('stream-point')

export type JetStreamTapeOptions = TapeFileOptions & {
  readonly stream: NatsStream
  /** Names this process in the ids of its messages. */
  readonly writerId: string
  readonly uptime: () => number
  readonly warn: (kind: string, detail: unknown) => void
  /** Called when the copy in this process cannot be written. */
  readonly onFailure: (failure: unknown) => void
  /** A message of the stream was no batch. */
  readonly onUnreadable: () => void
  /** What a tape in a new file takes for its last message. */
  readonly start: StreamPoint
}

/**
 * The tape as a stream in NATS JetStream, with a copy in a file of this process that serves all reads. One ingester at a time
 * appends, the leader; every process reads what it wrote from the stream.
 */
export class JetStreamTape extends TapeFile {
  readonly #options: JetStreamTapeOptions
  readonly #writer: StreamWriter
  readonly #leadershipListeners = new Set<(isLeading: boolean) => void>()
  readonly #closing = new AbortController()
  #point: StreamPoint
  /** The last message seen, whether it was a batch or not. */
  #seenSeq: number
  #refusal: string | null = null
  /** Messages of the stream that are on their way to this process. */
  #pending = 0
  /** When the last batch came, in uptime. */
  #heardAt: number
  /** When one of another version came. */
  #otherHeardAt = Number.NEGATIVE_INFINITY

  constructor(database: DatabaseSync, options: JetStreamTapeOptions) {
    super(database, options)
    const { stream, writerId, uptime, warn, onFailure, start } = options
    this.#options = options
    this.#point = this.note(pointNote) ?? start
    this.#seenSeq = this.#point.seq
    this.#heardAt = uptime()
    this.#writer = new StreamWriter({
      ...{ stream, writerId, uptime, warn, onFailure },
      tape: {
        seenSeq: () => this.#seenSeq,
        number: (drafts) => this.number(drafts),
        batchOf: (entries, notes, options) => this.#batchOf(entries, notes, options),
        checkpoint: () => this.#checkpointBatch(),
        apply: (message, batch, entries) => void this.#apply(message, batch, entries),
      },
      onRefusal: (reason) => this.onRefusal(reason),
      onLeadership: (isLeading) => {
        this.#heardAt = uptime()
        for (const listener of this.#leadershipListeners) listener(isLeading)
      },
    })
  }

  /** The last message of the stream that this tape contains. */
  get point(): StreamPoint {
    return this.#point
  }

  /** Aborted when the tape closes. */
  get closing(): AbortSignal {
    return this.#closing.signal
  }

  get isLeading(): boolean {
    return this.#writer.isLeading
  }

  /** Whether the tape lacks what happens now: no process writes, or this one does not receive it. */
  get isCut(): boolean {
    return !this.#point.isComplete || this.silentMs > SILENCE_BOUND_MS || this.#pending > PENDING_BOUND
  }

  /** How long ago the last batch of a leader came; without end where that leader stopped. */
  get silentMs(): number {
    return this.#point.hasResigned ? Number.POSITIVE_INFINITY : this.#options.uptime() - this.#heardAt
  }

  /** How long no leader was heard, not even one whose batches cannot be read here. */
  get leaderlessMs(): number {
    return Math.min(this.silentMs, this.#options.uptime() - this.#otherHeardAt)
  }

  /** Calls back with every change of the leadership. The returned function ends this. */
  onLeadership(listener: (isLeading: boolean) => void): () => void {
    this.#leadershipListeners.add(listener)
    return () => this.#leadershipListeners.delete(listener)
  }

  /** Sends to the processes that share the tape what does not belong on it. Returns false if it is too long. */
  send(topic: string, bytes: Uint8Array): boolean {
    return this.#options.stream.send(topic, bytes)
  }

  /** NATS has what the copy lacks, as long as it stores. */
  override get isDurable(): boolean {
    return this.#refusal === null
  }

  /** Why NATS stores nothing of this process, in its own words; null until it says so, and again once a batch is stored. */
  override get refusal(): string | null {
    return this.#refusal
  }

  onRefusal(reason: string): void {
    this.#refusal = reason
    this.#options.warn('NATS does not store the tape', { reason })
  }

  /** Receives what others send. The returned function ends it. */
  listen(topic: string, receive: (bytes: Uint8Array) => void): Promise<() => void> {
    return this.#options.stream.listen(topic, receive)
  }

  /** Takes over a message of the stream. Returns false if the tape cannot go on with it. */
  receive(message: StreamMessage): boolean {
    this.#seenSeq = Math.max(this.#seenSeq, message.seq)
    this.#pending = message.pending
    // This process wrote the message itself.
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

  /** The batch in a message; null in one to be skipped. Where the leader has it on its tape, its next batch does not follow here. */
  read({ seq, bytes }: StreamMessage): Extract<ReadMessage, { kind: 'batch' }> | null {
    // A writer left the batch unfinished.
    const read = bytes && readMessage(bytes)
    if (!read || read.kind === 'batch') return read
    const { onUnreadable, warn, uptime } = this.#options
    onUnreadable()
    if (read.kind === 'unreadable') warn('a message of the stream is no batch, and was skipped', { seq })
    else {
      this.#otherHeardAt = uptime()
      warn('a batch of the stream is of another version of stocktape, and was skipped', { seq, version: read.version })
    }
    return null
  }

  override append(drafts: readonly Draft[], notes = new Notes(), keepAfter = Number.POSITIVE_INFINITY) {
    return this.#writer.append(drafts, notes, keepAfter)
  }

  override async reach(seq: number): Promise<void> {
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

  /** Another process has no checkpoint to begin with. */
  offerCheckpoint(): void {
    this.#writer.offerCheckpoint()
  }

  /** Tries to become the leader. */
  async lead(): Promise<void> {
    if (this.isLeading || !this.#point.isComplete) return
    const hasWon = await this.#writer.lead()
    // Another one was faster, and its messages come soon.
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
    await this.#options.stream.close()
    await this.closeFile()
  }

  /** Closes the file, and leaves the stream to another tape. */
  async closeFile(): Promise<void> {
    this.#closing.abort()
    await super.close()
  }

  #apply({ seq, id }: StreamPlace, batch: BatchMessage, entries: readonly Entry[]): boolean {
    // The answer to the writer and the message itself come in any order.
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
    // A tape that is complete knows all that is in a checkpoint.
    const isKnown = lastSeqs !== null && isComplete
    this.write(entries, new Notes(isKnown ? {} : batch.notes), keepAfter ?? Number.POSITIVE_INFINITY, {
      ownNotes: new Notes().set(pointNote, this.#point),
      lastSeqs: isKnown ? [] : (lastSeqs ?? []),
    })
    return true
  }

  #batchOf(
    entries: readonly Entry[],
    notes: Notes,
    { keepAfter, resigns }: { readonly keepAfter: number; readonly resigns: boolean },
  ): BatchMessage {
    return {
      ...{ epoch: this.epoch, epochBeganAt: this.epochBeganAt, after: this.end() },
      first: entries[0]?.seq ?? 0,
      texts: entries.map(({ text }) => text),
      notes: Object.fromEntries(notes),
      keepAfter: Number.isFinite(keepAfter) ? keepAfter : null,
      lastSeqs: null,
      resigns,
    }
  }

  #checkpointBatch(): BatchMessage {
    const { notes, lastSeqs } = this.checkpoint
    const all = new Notes(Object.fromEntries(notes)).set(pointNote, null)
    return { ...this.#batchOf([], all, { keepAfter: Number.POSITIVE_INFINITY, resigns: false }), lastSeqs }
  }
}
