import type { Draft } from '../../../protocol/updates.ts'
import type { WriteLine } from '../../log-lines.ts'
import { type BatchMessage, encodeBatch } from '../batch-message.ts'
import { defineNote, Notes } from '../notes.ts'
import { type Entry, NotLeadingError } from '../tape.ts'
import { type NatsStream, RefusedError, reasonOf, StreamMovedError, type StreamPlace } from './nats-stream.ts'

/** Interval at which an idle leader writes a batch without updates, to show that it is running. */
export const RENEW_MS = 500
const RETRY_MS = 200
/** Limit of the updates that wait for the stream. Beyond it the leader stops leading; the facts are read from the chain later. */
const QUEUE_BOUND = 50_000
/** Limit of the updates in one message of the stream. A single append with more updates is written in one message. */
const MESSAGE_UPDATES_BOUND = 2_000
/** Limits of the time and updates between two checkpoints. A new process begins at a checkpoint, so the stream must contain one. */
const [CHECKPOINT_MS, CHECKPOINT_UPDATES] = [300_000, 65_536]
/** Least time between the last checkpoint and one that another process requests. */
const CHECKPOINT_REST_MS = 1_000
/** Limit of the time in which a stopping leader writes the waiting updates. */
const RESIGN_TIMEOUT_MS = 2_000

type WrittenTape = {
  /** Number of the stream's last message that this process has received. */
  readonly seenSeq: () => number
  readonly number: (drafts: readonly Draft[]) => readonly Entry[]
  readonly batchOf: (entries: readonly Entry[], notes: Notes, keepAfter: number) => BatchMessage
  readonly checkpoint: () => BatchMessage
  readonly apply: (place: StreamPlace, batch: BatchMessage, entries: readonly Entry[]) => void
}

type Options = {
  readonly stream: NatsStream
  readonly tape: WrittenTape
  readonly writerId: string
  readonly uptime: () => number
  readonly onLeadership: (isLeading: boolean) => void
  readonly onRefusal: (reason: string) => void
  readonly onFailure: (failure: unknown) => void
  readonly log: WriteLine
}

type QueuedAppend = {
  readonly drafts: readonly Draft[]
  readonly notes: Notes
  readonly keepAfter: number
  readonly resolve: (entries: readonly Entry[]) => void
  readonly reject: (failure: Error) => void
}

/**
 * Writes to the stream while this process leads, one message at a time. The next message contains the waiting appends. Each message
 * names the one before it, so NATS refuses it if another process has written.
 */
export class StreamWriter {
  readonly #options: Options
  #isLeading = false
  #isClosing = false
  readonly #queue: QueuedAppend[] = []
  #queuedUpdates = 0
  #wake: () => void = () => {}
  #writing: Promise<void> = Promise.resolve()
  #messageCount = 0
  /** Number of times that this process began to lead. Work that began in an earlier term ends. */
  #term = 0
  #checkpointAt = 0
  #isCheckpointAsked = false
  #updatesSinceCheckpoint = 0

  constructor(options: Options) {
    this.#options = options
  }

  get isLeading(): boolean {
    return this.#isLeading
  }

  append(drafts: readonly Draft[], notes: Notes, keepAfter: number): Promise<readonly Entry[]> {
    return new Promise((resolve, reject) => {
      if (!this.#isLeading) return reject(notLeading())
      this.#queue.push({ drafts, notes, keepAfter, resolve, reject })
      this.#queuedUpdates += drafts.length
      if (this.#queuedUpdates > QUEUE_BOUND) this.#stepDown(`${this.#queuedUpdates} updates wait for NATS`)
      this.#wake()
    })
  }

  /** Tries to become the leader, and returns whether it did. The first process that writes after the last message leads. */
  async lead(): Promise<boolean> {
    if (this.#isLeading || this.#isClosing) return this.#isLeading
    try {
      await this.#publishCheckpoint()
    } catch (failure) {
      if (failure instanceof StreamMovedError) return false
      throw failure
    }
    return !this.#isClosing
  }

  start(): void {
    this.#isLeading = true
    this.#term += 1
    this.#writing = this.#writeQueue()
    this.#options.log('leads')
    this.#options.onLeadership(true)
  }

  /**
   * Ends the lead if another process wrote this batch. A leader that was suspended learns of its loss only here: once it has
   * received the messages of the next leader, NATS accepts its own again.
   */
  onBatch(id: string): void {
    if (!id.startsWith(`${this.#options.writerId}.`)) this.#stepDown('another ingester has written')
  }

  /** Called when another process asks for a checkpoint at which it can begin. */
  offerCheckpoint(): void {
    if (this.#options.uptime() - this.#checkpointAt < CHECKPOINT_REST_MS) return
    this.#isCheckpointAsked = true
    this.#wake()
  }

  /** Writes the waiting updates, and tells other processes that this leader stops. */
  async close(): Promise<void> {
    this.#isClosing = true
    this.#wake()
    const timeout = new Promise((resolve) => setTimeout(resolve, RESIGN_TIMEOUT_MS).unref())
    await Promise.race([this.#writing, timeout])
    this.#isLeading = false
    this.#rejectQueue()
  }

  async #writeQueue(): Promise<void> {
    const term = this.#term
    try {
      for (let isLast = false; this.#isLeading && term === this.#term && !isLast; ) {
        if (this.#queue.length === 0 && !this.#isClosing) await this.#sleep()
        if (!this.#isLeading || term !== this.#term) return
        if (this.#isCheckpointDue) await this.#publishCheckpoint()
        isLast = this.#isClosing && this.#queue.length === 0
        await this.#writeBatch(isLast)
      }
    } catch (failure) {
      if (term === this.#term) this.#stepDown(reasonOf(failure))
      // Every other failure means that the copy of the tape in this process cannot be written.
      if (!(failure instanceof StreamMovedError || failure instanceof NotLeadingError)) this.#options.onFailure(failure)
    }
  }

  /** Writes waiting appends in one message. A message without updates shows other processes that the leader is running. */
  async #writeBatch(resigns: boolean): Promise<void> {
    const taken = this.#takeBatch()
    const encoded = this.#encode(taken, resigns)
    if (!encoded) return
    const { batch, bytes, entries } = encoded
    try {
      await this.#publish(batch, bytes, entries)
    } catch (failure) {
      for (const { reject } of taken) reject(notLeading())
      throw failure
    }
    let from = 0
    for (const { drafts, resolve } of taken) {
      resolve(entries.slice(from, from + drafts.length))
      from += drafts.length
    }
    this.#updatesSinceCheckpoint += entries.length
  }

  /** Returns null if one of the appends cannot be written as JSON. Then all of them fail, and nothing is written. */
  #encode(taken: readonly QueuedAppend[], resigns: boolean) {
    const { tape } = this.#options
    try {
      const notes = new Notes()
      for (const append of taken) for (const [name, value] of append.notes) notes.set(defineNote(name), value)
      const entries = tape.number(taken.flatMap(({ drafts }) => drafts))
      const keepAfter = Math.min(...taken.map((append) => append.keepAfter))
      const batch = { ...tape.batchOf(entries, notes, keepAfter), resigns }
      return { batch, bytes: encodeBatch(batch), entries }
    } catch (failure) {
      for (const { reject } of taken) reject(failure instanceof Error ? failure : new Error(String(failure)))
      return null
    }
  }

  #takeBatch(): readonly QueuedAppend[] {
    let [count, updates] = [0, 0]
    for (const { drafts } of this.#queue) {
      if (count > 0 && updates + drafts.length > MESSAGE_UPDATES_BOUND) break
      count += 1
      updates += drafts.length
    }
    this.#queuedUpdates -= updates
    return this.#queue.splice(0, count)
  }

  async #publishCheckpoint(): Promise<void> {
    const batch = this.#options.tape.checkpoint()
    await this.#publish(batch, encodeBatch(batch), [])
    this.#checkpointAt = this.#options.uptime()
    this.#updatesSinceCheckpoint = 0
    this.#isCheckpointAsked = false
  }

  get #isCheckpointDue(): boolean {
    const isOld = this.#options.uptime() - this.#checkpointAt >= CHECKPOINT_MS
    return isOld || this.#isCheckpointAsked || this.#updatesSinceCheckpoint >= CHECKPOINT_UPDATES
  }

  async #publish(batch: BatchMessage, bytes: Uint8Array, entries: readonly Entry[]): Promise<void> {
    const { tape, writerId } = this.#options
    this.#messageCount += 1
    const id = `${writerId}.${this.#messageCount}`
    tape.apply(await this.#store(id, bytes, tape.seenSeq()), batch, entries)
  }

  /** Repeats a message until NATS stores it: a failed attempt may have stored it too. A process that does not lead tries once. */
  async #store(id: string, bytes: Uint8Array, after: number): Promise<StreamPlace> {
    const { stream, onRefusal, log } = this.#options
    const term = this.#term
    for (;;) {
      try {
        return await stream.publish(id, bytes, after)
      } catch (failure) {
        if (failure instanceof StreamMovedError) throw failure
        if (failure instanceof RefusedError) onRefusal(failure.message)
        else if (stream.isConnected) log('nats_silent', { reason: reasonOf(failure) })
        if (!this.#isLeading || this.#isClosing || term !== this.#term) throw notLeading()
      }
      await new Promise((resolve) => setTimeout(resolve, RETRY_MS))
      if (!this.#isLeading || term !== this.#term) throw notLeading()
    }
  }

  #stepDown(reason: string): void {
    if (!this.#isLeading) return
    this.#isLeading = false
    const why = reason.startsWith('wrong last sequence') ? 'another process has written the tape' : reason
    if (!this.#isClosing) this.#options.log('leads_no_more', { reason: why })
    this.#options.onLeadership(false)
    this.#rejectQueue()
    this.#wake()
  }

  #rejectQueue(): void {
    for (const { reject } of this.#queue.splice(0)) reject(notLeading())
    this.#queuedUpdates = 0
  }

  /** Resolves when there is something to write, or when the leader has to show that it is running. */
  #sleep(): Promise<void> {
    return new Promise((resolve) => {
      const timer = setTimeout(resolve, RENEW_MS)
      this.#wake = () => {
        clearTimeout(timer)
        resolve()
      }
    })
  }
}

const notLeading = () => new NotLeadingError('another ingester writes the tape')
