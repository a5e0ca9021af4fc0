import { type ConsumerMessages, DeliverPolicy, DiscardPolicy, type JsMsg, RetentionPolicy, StorageType } from '@nats-io/jetstream'
import { headers, nanos } from '@nats-io/transport-node'
import type { Config } from '../../config/config.ts'
import { isApiError, type NatsLink, REQUEST_TIMEOUT_MS } from './nats-link.ts'

/** Used instead of the NATS library's defaults, with which a consumer stalls after a restart of the server. */
const [IDLE_HEARTBEAT_MS, PULL_EXPIRES_MS] = [1_000, 5_000]
/** Time without message or heartbeat after which this process follows the stream again. The server sends one each second. */
const SILENCE_BOUND_MS = 3_000
/** Number of messages that the consumer asks for in one request. */
const PULLED_MESSAGES = 500
/** Time within which the server drops a second message with the same id. */
const DUPLICATE_WINDOW_MS = 120_000
/** Limit of one part of a batch. By default NATS accepts messages of up to 1 MiB. */
const PART_BYTES = 768 * 1_024
/** Room for the headers of a part, which count towards NATS's limit on a message. */
const HEADERS_BYTES = 256
/** Least size of a message that NATS must accept. With less, a checkpoint would take thousands of messages. */
const LEAST_LIMIT_BYTES = 16_384
/** Limit of a message in parts. A longer one does not fit into one string, and is dropped. */
const MESSAGE_BOUND_BYTES = 2 ** 28
const PART_HEADER = 'Stocktape-Part'
const ID_HEADER = 'Nats-Msg-Id'
const WRONG_LAST_SEQUENCE = 10_071
const MESSAGE_TOO_LARGE = 10_054
const STREAM_NOT_FOUND = 10_059
const MESSAGE_NOT_FOUND = 10_037

export type StreamSettings = Pick<Config['tape'], 'natsReplicas'> & {
  /** Name of the stream. The subject of its messages is this name in lower case. */
  readonly natsStream: string
  readonly maxAgeMs: number
  readonly maxMessages: number
}

export type StreamExtent = { readonly first: number; readonly last: number }

/** Number and id of a message. For a message in parts, they are those of its last part. */
export type StreamPlace = { readonly seq: number; readonly id: string }

/** A message joined from its parts. `bytes` is null until all are received; `pending` counts the stream's later messages. */
export type StreamMessage = StreamPlace & { readonly bytes: Uint8Array | null; readonly pending: number }

export class StreamMovedError extends Error {}

/** NATS does not store a message, or refuses the settings of the stream. The text says why. */
export class RefusedError extends Error {}

/** A stream in NATS JetStream. Reading and storing fail while the server cannot be reached. */
export class NatsStream {
  readonly #settings: StreamSettings
  readonly link: NatsLink
  /** Limit of the stream on the size of a message, as of the last `extent`. */
  #streamLimitBytes = Number.POSITIVE_INFINITY

  constructor(settings: StreamSettings, link: NatsLink) {
    this.#settings = settings
    this.link = link
  }

  /** Returns the first and the last number of the stream; null if there is no stream. */
  async extent(): Promise<StreamExtent | null> {
    try {
      const { state, config } = await (await this.link.manager()).streams.info(this.#settings.natsStream)
      this.#streamLimitBytes = config.max_msg_size > 0 ? config.max_msg_size : Number.POSITIVE_INFINITY
      return { first: state.first_seq, last: state.last_seq }
    } catch (failure) {
      if (isApiError(failure, STREAM_NOT_FOUND)) return null
      throw failure
    }
  }

  /** Error text if the limit on messages is too low for the tape; otherwise null. Each server of NATS may have another limit. */
  get limitFault(): string | null {
    const limit = this.#messageLimitBytes
    if (limit >= LEAST_LIMIT_BYTES) return null
    const isOfStream = this.#streamLimitBytes < this.link.limitBytes
    const setting = isOfStream ? `max_msg_size of the stream ${this.#settings.natsStream}` : 'max_payload of NATS'
    return `${setting} is ${limit} bytes, and the tape needs at least ${LEAST_LIMIT_BYTES}: raise it`
  }

  async ensure(): Promise<void> {
    const { natsStream: name, natsReplicas, maxAgeMs, maxMessages } = this.#settings
    const { streams } = await this.link.manager()
    const limits = {
      max_age: nanos(maxAgeMs),
      max_msgs: maxMessages,
      duplicate_window: nanos(Math.min(DUPLICATE_WINDOW_MS, maxAgeMs)),
    }
    const config = { subjects: [this.#subject], num_replicas: natsReplicas, ...limits }
    const fixed = { storage: StorageType.File, retention: RetentionPolicy.Limits, discard: DiscardPolicy.Old }
    try {
      if ((await this.extent()) === null) await streams.add({ name, ...config, ...fixed })
      else await streams.update(name, config)
    } catch (failure) {
      const refusal = this.link.refusalOf(failure, this.#subject)
      throw refusal ? new RefusedError(`the settings of the stream ${name}: ${refusal}`) : failure
    }
  }

  /** Returns a stored message or a part of one; null if the stream has deleted it. */
  async stored(seq: number): Promise<{ readonly id: string; readonly bytes: Uint8Array } | null> {
    try {
      const message = await (await this.link.manager()).streams.getMessage(this.#settings.natsStream, { seq })
      return message && { id: message.header.get(ID_HEADER), bytes: message.data }
    } catch (failure) {
      if (isApiError(failure, MESSAGE_NOT_FOUND)) return null
      throw failure
    }
  }

  /** Stores a message if the stream's last number is `after`. Returns the place of its last part. NATS stores an id only once. */
  async publish(id: string, bytes: Uint8Array, after: number): Promise<StreamPlace> {
    const fault = this.limitFault
    if (fault) throw new RefusedError(fault)
    const partCount = Math.ceil(bytes.length / this.#partBytes)
    if (partCount <= 1) return this.#publishPart({ seq: after, id }, bytes)
    // All parts have equal sizes, so a retry with as many parts repeats them exactly, even if the limit on messages has changed.
    const partBytes = Math.ceil(bytes.length / partCount)
    let last: StreamPlace = { seq: after, id }
    for (let part = 1; part <= partCount; part += 1) {
      const data = bytes.subarray((part - 1) * partBytes, part * partBytes)
      last = await this.#publishPart({ seq: last.seq, id: `${id}.${partCount}.${part}` }, data, `${part}/${partCount}`)
    }
    return last
  }

  async #publishPart({ seq, id }: StreamPlace, data: Uint8Array, part?: string): Promise<StreamPlace> {
    const partHeaders = headers()
    if (part) partHeaders.set(PART_HEADER, part)
    const options = { headers: partHeaders, timeout: REQUEST_TIMEOUT_MS, retries: 1, msgID: id, expect: { lastSequence: seq } }
    const limit = this.#partBytes
    try {
      return { seq: (await (await this.link.client()).publish(this.#subject, data, options)).seq, id }
    } catch (failure) {
      if (isApiError(failure, WRONG_LAST_SEQUENCE)) throw new StreamMovedError(failure.message)
      // If the stream's limit has become lower, the next attempt uses smaller parts.
      if (isApiError(failure, MESSAGE_TOO_LARGE) && (await this.extent()) && this.#partBytes < limit) throw failure
      const refusal = this.link.refusalOf(failure, this.#subject)
      throw refusal ? new RefusedError(refusal) : failure
    }
  }

  /**
   * Calls `receive` with every message after the number `after`. Ends if `receive` returns false, the signal aborts, the library
   * stops, or the server is silent: the library does not notice every stall.
   */
  async follow(after: number, receive: (message: StreamMessage) => boolean, signal: AbortSignal): Promise<void> {
    const start = { deliver_policy: DeliverPolicy.StartSequence, opt_start_seq: after + 1 }
    const consumer = await (await this.link.client()).consumers.get(this.#settings.natsStream, start)
    const assembler = new PartAssembler()
    const ended = Promise.withResolvers<void>()
    let isEnded = false
    const end = () => {
      isEnded = true
      ended.resolve()
    }
    const silence = setTimeout(end, SILENCE_BOUND_MS)
    signal.addEventListener('abort', end)
    try {
      const messages = await consumer.consume({
        ...{ max_messages: PULLED_MESSAGES, idle_heartbeat: IDLE_HEARTBEAT_MS, expires: PULL_EXPIRES_MS },
        callback: (part) => {
          if (isEnded) return
          silence.refresh()
          if (!receive(assembler.add(part))) end()
        },
      })
      void watchStatus(messages, () => silence.refresh(), end)
      await ended.promise
      // The end of the consumer is not awaited, because the server may never answer.
      void messages.close().catch(() => {})
    } finally {
      end()
      clearTimeout(silence)
      signal.removeEventListener('abort', end)
    }
  }

  get #messageLimitBytes(): number {
    return Math.min(this.link.limitBytes, this.#streamLimitBytes)
  }

  get #partBytes(): number {
    return Math.min(PART_BYTES, this.#messageLimitBytes - HEADERS_BYTES)
  }

  get #subject(): string {
    return this.#settings.natsStream.toLowerCase()
  }
}

const inProgress: ReadonlySet<string> = new Set(['next', 'debug', 'discard', 'flow_control'])

/** Calls `end` when the NATS library reports that it no longer follows the stream. */
async function watchStatus(messages: ConsumerMessages, onHeard: () => void, end: () => void): Promise<void> {
  for await (const { type } of messages.status()) {
    if (type === 'heartbeat') onHeard()
    else if (!inProgress.has(type)) end()
  }
  end()
}

/** Joins the parts of messages. A message that lacks a part is dropped. */
class PartAssembler {
  #id = ''
  #parts: Uint8Array[] = []
  #bytes = 0

  add({ seq, data, headers: partHeaders, info: { pending } }: JsMsg): StreamMessage {
    const id = partHeaders?.get(ID_HEADER) ?? ''
    const [part, count] = (partHeaders?.get(PART_HEADER) || '1/1').split('/').map(Number)
    const whole = id.slice(0, id.lastIndexOf('.'))
    if (part === 1 || whole !== this.#id || this.#bytes + data.length > MESSAGE_BOUND_BYTES) this.#clear()
    this.#id = whole
    if (part === this.#parts.length + 1) {
      this.#parts.push(data)
      this.#bytes += data.length
    }
    if (part !== count || count !== this.#parts.length) return { seq, id, bytes: null, pending }
    const bytes = this.#parts.length === 1 ? data : Buffer.concat(this.#parts)
    this.#clear()
    return { seq, id, bytes, pending }
  }

  #clear(): void {
    this.#parts = []
    this.#bytes = 0
  }
}
