import { setTimeout as delay } from 'node:timers/promises'
import type { Hex } from '../../../lib/hex.ts'
import { messageOf } from '../../../lib/http-fetch.ts'
import type { WriteLine } from '../../log-lines.ts'
import type { BarRow } from '../bars/bar-row.ts'
import { DAY_S } from '../bars/bar-sums.ts'
import { type BarDay, type BarStore, type BarStream, dayOf } from './bar-stream.ts'

const RETRY_MS = 1_000
/** Limit of the time in which a stopping leader writes the waiting days. */
const CLOSE_TIMEOUT_MS = 2_000

type CopiedBars = BarStore & { readonly newestDays: ReadonlyMap<Hex, number> }

/** Keeps the second stream and the bars of this process equal: the leader writes days that changed, a new file reads all. */
export class BarCopy {
  readonly #stream: BarStream
  readonly #store: () => CopiedBars
  readonly #log: WriteLine
  readonly #closing: AbortSignal
  /** The days to write, by token and start: at most two of each token at a time. */
  readonly #due = new Map<string, BarDay>()
  #isLeading = false
  #writing: Promise<void> | null = null

  constructor(stream: BarStream, store: () => CopiedBars, { log, closing }: { log: WriteLine; closing: AbortSignal }) {
    this.#stream = stream
    this.#store = store
    this.#log = log
    this.#closing = closing
  }

  /** Reads what a new file lacks, until it has all. */
  async readAll(onRead: () => void): Promise<void> {
    while (!this.#closing.aborted) {
      try {
        await this.#stream.readAll(this.#store(), this.#closing)
        return onRead()
      } catch (failure) {
        this.#log('nats_silent', { reason: messageOf(failure) })
        await delay(RETRY_MS)
      }
    }
  }

  setLeading(isLeading: boolean): void {
    this.#isLeading = isLeading
    if (!isLeading) return this.#due.clear()
    // The leader before may not have written its last two days.
    for (const [address, day] of this.#store().newestDays) {
      this.#add(address, day - DAY_S)
      this.#add(address, day)
    }
    this.#wake()
  }

  /** Called with the rows of each batch. */
  onRows(rows: readonly BarRow[]): void {
    if (!this.#isLeading || rows.length === 0) return
    for (const [address, start] of rows) this.#add(address, start)
    this.#wake()
  }

  #add(address: Hex, minute: number): void {
    const day = dayOf(address, minute)
    this.#due.set(`${address} ${day.start}`, day)
  }

  /** Writes the waiting days, if NATS answers in time. */
  async close(): Promise<void> {
    const timeout = new Promise((resolve) => setTimeout(resolve, CLOSE_TIMEOUT_MS).unref())
    await Promise.race([this.#writing, timeout])
    this.#due.clear()
  }

  #wake(): void {
    this.#writing ??= this.#write().finally(() => {
      this.#writing = null
    })
  }

  async #write(): Promise<void> {
    let isReady = false
    while (this.#due.size > 0) {
      const [name, day] = [...this.#due][0] ?? []
      if (name === undefined || !day) break
      this.#due.delete(name)
      try {
        if (!isReady) await this.#stream.ensure()
        isReady = true
        await this.#stream.publish(day, this.#store())
      } catch (failure) {
        if (!this.#isLeading) break
        this.#due.set(name, day)
        if (this.#closing.aborted) break
        this.#log('nats_silent', { reason: messageOf(failure) })
        await delay(RETRY_MS)
      }
    }
  }
}
