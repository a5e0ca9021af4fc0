import { promisify } from 'node:util'
import { constants, gunzip, gzip } from 'node:zlib'
import { AckPolicy, DeliverPolicy, DiscardPolicy, RetentionPolicy, StorageType } from '@nats-io/jetstream'
import { nanos } from '@nats-io/transport-node'
import { BoundedMap } from '../../../lib/bounded-map.ts'
import type { Hex } from '../../../lib/hex.ts'
import { parseJson } from '../../../lib/safe-json.ts'
import { chunk, nextTurn } from '../../../lib/turns.ts'
import type { Config } from '../../config/config.ts'
import { type BarRange, type BarRow, isReadableRow } from '../bars/bar-row.ts'
import { DAY_S } from '../bars/bar-sums.ts'
import { isApiError, type NatsLink, REQUEST_TIMEOUT_MS } from './nats-link.ts'

/** The stream keeps bars longer than the files do, so that a file never lacks what the stream has deleted. */
const EXTRA_AGE_MS = 2 * DAY_S * 1_000
/** Room for the headers of a message, which count towards NATS's limit. */
const HEADERS_BYTES = 512
/** Limit of the rows of one message when they are unpacked: more than a day of minutes of a token has. */
const UNPACKED_BOUND_BYTES = 2 ** 26
/** Limit of the subjects whose last number is remembered. For others, the stored message is read before it is replaced. */
const SUBJECTS_BOUND = 4_096
/** Limit of the rows that one turn of the event loop merges: an hour. */
const ROWS_PER_TURN = 60
/** Limits of the messages that one request for stored ones brings, and of the time that it waits. */
const [READ_AT_ONCE, READ_WAIT_MS] = [64, 2_000]
const STREAM_NOT_FOUND = 10_059
const MESSAGE_NOT_FOUND = 10_037
const WRONG_LAST_SEQUENCE = 10_071

export type BarStreamSettings = Pick<Config['tape'], 'natsReplicas'> & {
  readonly natsStream: string
  readonly barsRetentionMs: number
}

/** The minutes of a token in a UTC day, or in a part of one. `start` and `length` are in seconds. */
export type BarDay = { readonly address: Hex; readonly start: number; readonly length: number }
export const dayOf = (address: Hex, minute: number): BarDay => ({ address, start: minute - (minute % DAY_S), length: DAY_S })

const [zip, unzip] = [promisify(gzip), promisify(gunzip)]

/** The bars in a second stream of NATS: one message for each token and UTC day, which replaces the one before. */
export class BarStream {
  readonly #settings: BarStreamSettings
  readonly #link: NatsLink
  /** Number of the last message of each subject, as this process read or wrote it. */
  readonly #lastSeqs = new BoundedMap<string, number>(SUBJECTS_BOUND)

  constructor(settings: BarStreamSettings, link: NatsLink) {
    this.#settings = settings
    this.#link = link
  }

  async ensure(): Promise<void> {
    const { natsReplicas, barsRetentionMs } = this.#settings
    const { streams } = await this.#link.manager()
    const config = {
      subjects: [`${this.#prefix}.>`],
      num_replicas: natsReplicas,
      max_age: nanos(barsRetentionMs + EXTRA_AGE_MS),
      max_msgs_per_subject: 1,
    }
    const fixed = { storage: StorageType.File, retention: RetentionPolicy.Limits, discard: DiscardPolicy.Old }
    try {
      await streams.update(this.#name, config)
    } catch (failure) {
      if (!isApiError(failure, STREAM_NOT_FOUND)) throw failure
      await streams.add({ name: this.#name, ...config, ...fixed })
    }
  }

  /**
   * Replaces the message of a day by the rows that the store has then. Rows that only the stream has are merged into the store
   * before: so a process that lacks old minutes deletes none.
   */
  async publish(day: BarDay, store: BarStore): Promise<void> {
    const subject = this.#subjectOf(day)
    for (;;) {
      if (!this.#lastSeqs.has(subject)) store.mergeBars(await this.#stored(subject))
      const rows = store.readBars(day.address, { since: day.start, until: day.start + day.length })
      const bytes = await zip(JSON.stringify(rows), { level: constants.Z_BEST_SPEED })
      if (bytes.length > this.#link.limitBytes - HEADERS_BYTES && day.length > 60) {
        for (const half of halvesOf(day)) await this.publish(half, store)
        return
      }
      const expect = { lastSubjectSequence: this.#lastSeqs.get(subject) ?? 0 }
      try {
        const client = await this.#link.client()
        const { seq } = await client.publish(subject, bytes, { timeout: REQUEST_TIMEOUT_MS, retries: 1, expect })
        this.#lastSeqs.refresh(subject, seq)
        return
      } catch (failure) {
        this.#lastSeqs.delete(subject)
        // Another process has replaced the message meanwhile.
        if (!isApiError(failure, WRONG_LAST_SEQUENCE)) throw failure
      }
    }
  }

  /** Merges all stored messages into the store. Ends early if `signal` aborts. */
  async readAll(store: BarStore, signal: AbortSignal): Promise<void> {
    const manager = await this.#link.manager()
    let last: number
    try {
      last = (await manager.streams.info(this.#name)).state.last_seq
    } catch (failure) {
      if (isApiError(failure, STREAM_NOT_FOUND)) return
      throw failure
    }
    const client = await this.#link.client()
    const position = { ack_policy: AckPolicy.None, deliver_policy: DeliverPolicy.All }
    const consumer = await client.consumers.get(this.#name, position)
    for (let seen = 0; seen < last && !signal.aborted; ) {
      let count = 0
      for await (const { data, seq } of await consumer.fetch({ max_messages: READ_AT_ONCE, expires: READ_WAIT_MS })) {
        for (const part of chunk(await rowsIn(data), ROWS_PER_TURN)) {
          store.mergeBars(part)
          await nextTurn()
        }
        seen = seq
        count += 1
      }
      // The rest was replaced while this process read: a batch of the tape contains it.
      if (count === 0) return
    }
  }

  /** Returns the rows of the last message of a subject. */
  async #stored(subject: string): Promise<readonly BarRow[]> {
    const { streams } = await this.#link.manager()
    try {
      const message = await streams.getMessage(this.#name, { last_by_subj: subject })
      this.#lastSeqs.refresh(subject, message?.seq ?? 0)
      return message ? await rowsIn(message.data) : []
    } catch (failure) {
      if (!isApiError(failure, MESSAGE_NOT_FOUND)) throw failure
      this.#lastSeqs.refresh(subject, 0)
      return []
    }
  }

  #subjectOf({ address, start, length }: BarDay): string {
    const day = new Date(start * 1_000).toISOString()
    const part = length === DAY_S ? '' : `.${day.slice(11, 16).replace(':', '')}-${length}`
    return `${this.#prefix}.${address}.${day.slice(0, 10)}${part}`
  }

  get #name(): string {
    return `${this.#settings.natsStream}_BARS`
  }

  get #prefix(): string {
    return this.#name.toLowerCase()
  }
}

/** The bars in the file of this process. */
export type BarStore = {
  /** Writes the rows that are newer than those of the store. */
  mergeBars(rows: readonly BarRow[]): void
  readBars(address: Hex, range: BarRange): readonly BarRow[]
}

/** Splits a stretch in two of whole minutes. */
function halvesOf({ address, start, length }: BarDay): readonly BarDay[] {
  const first = Math.ceil(length / 120) * 60
  return [
    { address, start, length: first },
    { address, start: start + first, length: length - first },
  ]
}

/** Reads a message. Anybody who can reach NATS may have written it, so unreadable rows are left out. */
async function rowsIn(bytes: Uint8Array): Promise<readonly BarRow[]> {
  try {
    const text = (await unzip(bytes, { maxOutputLength: UNPACKED_BOUND_BYTES })).toString('utf8')
    const rows = parseJson(text)
    return Array.isArray(rows) ? rows.filter(isReadableRow) : []
  } catch {
    return []
  }
}
