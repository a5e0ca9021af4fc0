import { randomBytes } from 'node:crypto'
import { BehaviorSubject } from 'rxjs'
import { messageOf } from '../../../lib/http-fetch.ts'
import type { Host } from '../../host.ts'
import { type BatchMessage, batchMessageOf, encodeBatch } from '../batch-message.ts'
import { Notes } from '../notes.ts'
import { type Entry, NotLeadingError, type TapeBatch, type TapeWriter } from '../tape.ts'
import { type NatsStream, RefusedError, StreamMovedError, type StreamPlace } from './nats-stream.ts'
import type { StreamCopy } from './stream-copy.ts'

/** Interval at which an idle leader writes a batch without updates, to show that it is running. */
export const RENEW_MS = 500
const RETRY_MS = 200
const WRITER_ID_BYTES = 6
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

type Options = Pick<Host, 'uptime' | 'log'> & {
  readonly stream: NatsStream
  readonly copy: StreamCopy
  readonly onFailure: (failure: unknown) => void
}

type QueuedBatch = TapeBatch & {
  readonly resolve: (entries: readonly Entry[]) => void
  readonly reject: (failure: unknown) => void
}

/**
 * Writes to the stream while this process leads, one message at a time. The next message contains the waiting batches. Each message
 * names the one before it, so NATS refuses it if another process has written.
 */
export class StreamWriter implements TapeWriter {
  readonly #options: Options
  /** Whether this process leads: now, and at every change. */
  readonly leadership = new BehaviorSubject(false)
  /** Called when this process begins or ceases to lead. */
  onLead: (isLeading: boolean) => void = () => {}
  /** Begins the ids of the messages of this process. */
  readonly #writerId = randomBytes(WRITER_ID_BYTES).toString('hex')
  #isClosing = false
  readonly #queue: QueuedBatch[] = []
  #queuedUpdates = 0
  /** That of the last batches: a message without any, such as a sign of life, must not evict more. None are evicted before the first. */
  #keepAfter = 0
  #wake: () => void = () => {}
  #writing: Promise<void> = Promise.resolve()
  #messageCount = 0
  /** The time in which this process leads; null while it does not. Work that began in an earlier term ends. */
  #term: object | null = null
  #checkpointAt = 0
  #isCheckpointAsked = false
  #updatesSinceCheckpoint = 0

  constructor(options: Options) {
    this.#options = options
    // A leader that was suspended learns of its loss only here: once it has received the messages of the next leader, NATS accepts
    // its own again.
    options.copy.onBatch = (id) => {
      if (!id.startsWith(`${this.#writerId}.`)) this.#stepDown('another ingester has written')
    }
  }

  get isLeading(): boolean {
    return this.#term !== null
  }

  append(batch: TapeBatch): Promise<readonly Entry[]> {
    return new Promise((resolve, reject) => {
      if (!this.isLeading) return reject(notLeading())
      this.#queue.push({ ...batch, resolve, reject })
      this.#queuedUpdates += batch.updates.length
      if (this.#queuedUpdates > QUEUE_BOUND) this.#stepDown(`${this.#queuedUpdates} updates wait for NATS`)
      this.#wake()
    })
  }

  /** Tries to become the leader. The first process that writes after the last message leads. */
  async lead(): Promise<void> {
    const { copy, log } = this.#options
    if (this.isLeading || this.#isClosing || !copy.point.isComplete) return
    this.#keepAfter = 0
    try {
      await this.#publishCheckpoint()
    } catch (failure) {
      if (!(failure instanceof StreamMovedError)) throw failure
      // Another ingester won. This process tries again only if it hears nothing of that leader.
      return copy.expectLeader()
    }
    if (this.#isClosing) return
    copy.store.beginRun()
    this.#term = {}
    this.#writing = this.#writeQueue(this.#term)
    log('leads')
    copy.expectLeader()
    this.onLead(true)
    this.leadership.next(true)
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
    this.#term = null
    this.#rejectQueue()
  }

  async #writeQueue(term: object): Promise<void> {
    try {
      for (let isLast = false; this.#term === term && !isLast; ) {
        if (this.#queue.length === 0 && !this.#isClosing) await this.#sleep()
        if (this.#term !== term) return
        if (this.#isCheckpointDue) await this.#publishCheckpoint()
        isLast = this.#isClosing && this.#queue.length === 0
        await this.#writeWaiting(isLast)
      }
    } catch (failure) {
      if (this.#term === term) this.#stepDown(messageOf(failure))
      // Every other failure means that the copy of the tape in this process cannot be written.
      if (!(failure instanceof StreamMovedError || failure instanceof NotLeadingError)) this.#options.onFailure(failure)
    }
  }

  /** Writes waiting batches in one message. A message without updates shows other processes that the leader is running. */
  async #writeWaiting(resigns: boolean): Promise<void> {
    const taken = this.#take()
    const encoded = this.#encode(taken, resigns)
    if (!encoded) return
    const { message, bytes, entries } = encoded
    try {
      await this.#publish(message, bytes, entries)
    } catch (failure) {
      for (const { reject } of taken) reject(notLeading())
      throw failure
    }
    let from = 0
    for (const { updates, resolve } of taken) {
      resolve(entries.slice(from, from + updates.length))
      from += updates.length
    }
    this.#updatesSinceCheckpoint += entries.length
  }

  /** Numbers and encodes batches. Returns null if one of them cannot be written: then all of them fail, and nothing is written. */
  #encode(taken: readonly QueuedBatch[], resigns: boolean) {
    const { store } = this.#options.copy
    try {
      const entries = store.number(taken)
      const notes = new Notes(Object.fromEntries(taken.flatMap((batch) => [...batch.notes])))
      const bars = taken.flatMap((batch) => batch.bars ?? [])
      const keepAfter = taken.length === 0 ? this.#keepAfter : Math.min(...taken.map((batch) => batch.keepAfter))
      const message = { ...batchMessageOf(store, { entries, notes, bars, keepAfter }), resigns }
      const bytes = encodeBatch(message)
      this.#keepAfter = keepAfter
      return { message, bytes, entries }
    } catch (failure) {
      for (const { reject } of taken) reject(failure)
      return null
    }
  }

  #take(): readonly QueuedBatch[] {
    let [count, length] = [0, 0]
    for (const { updates } of this.#queue) {
      if (count > 0 && length + updates.length > MESSAGE_UPDATES_BOUND) break
      count += 1
      length += updates.length
    }
    this.#queuedUpdates -= length
    return this.#queue.splice(0, count)
  }

  async #publishCheckpoint(): Promise<void> {
    const checkpoint = this.#options.copy.checkpoint(this.#keepAfter)
    await this.#publish(checkpoint, encodeBatch(checkpoint), [])
    this.#checkpointAt = this.#options.uptime()
    this.#updatesSinceCheckpoint = 0
    this.#isCheckpointAsked = false
  }

  get #isCheckpointDue(): boolean {
    const isOld = this.#options.uptime() - this.#checkpointAt >= CHECKPOINT_MS
    return isOld || this.#isCheckpointAsked || this.#updatesSinceCheckpoint >= CHECKPOINT_UPDATES
  }

  async #publish(batch: BatchMessage, bytes: Uint8Array, entries: readonly Entry[]): Promise<void> {
    const { copy } = this.#options
    this.#messageCount += 1
    const id = `${this.#writerId}.${this.#messageCount}`
    copy.apply(await this.#store(id, bytes, copy.seenSeq), batch, entries)
  }

  /** Repeats a message until NATS stores it: a failed attempt may have stored it too. A process that does not lead tries once. */
  async #store(id: string, bytes: Uint8Array, after: number): Promise<StreamPlace> {
    const { stream, copy, log } = this.#options
    const term = this.#term
    for (;;) {
      try {
        return await stream.publish(id, bytes, after)
      } catch (failure) {
        if (failure instanceof StreamMovedError) throw failure
        if (failure instanceof RefusedError) copy.onRefusal(failure.message)
        else if (stream.link.isConnected) log('nats_silent', { reason: messageOf(failure) })
        if (term === null || this.#isClosing || term !== this.#term) throw notLeading()
      }
      await new Promise((resolve) => setTimeout(resolve, RETRY_MS))
      if (term !== this.#term) throw notLeading()
    }
  }

  #stepDown(reason: string): void {
    if (!this.isLeading) return
    this.#term = null
    const why = reason.startsWith('wrong last sequence') ? 'another process has written the tape' : reason
    if (!this.#isClosing) this.#options.log('leads_no_more', { reason: why })
    this.#options.copy.expectLeader()
    this.onLead(false)
    this.leadership.next(false)
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
