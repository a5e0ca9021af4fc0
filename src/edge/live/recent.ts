import { entryOf, type TapeRow } from '../../tape/row.ts'
import type { Entry } from '../../tape/tape.ts'

/** Bounds of the newest updates in memory. */
const ENTRIES_BOUND = 2_048
const CHARS_BOUND = 4_194_304

/**
 * The newest updates in memory, so that the last step of a join needs no read of the tape. They are kept as
 * text alone and not as encoded bytes: a client that reconnects soon needs few of them.
 */
export class RecentUpdates {
  #rows: TapeRow[] = []
  #chars = 0
  #sinceSeq: number

  constructor(sinceSeq: number) {
    this.#sinceSeq = sinceSeq
  }

  /** The sequence number after which all updates are in memory. */
  get sinceSeq(): number {
    return this.#sinceSeq
  }

  /** The updates after a sequence number, or null if some of them are no longer in memory. */
  after(seq: number): readonly Entry[] | null {
    return seq < this.#sinceSeq ? null : this.#rows.filter((row) => row.seq > seq).map(entryOf)
  }

  add(entries: readonly Entry[]): void {
    for (const { seq, text } of entries) {
      this.#rows.push({ seq, text })
      this.#chars += text.length
    }
    // Trimming waits for twice the bound, so that not every call pays for it.
    if (this.#rows.length > 2 * ENTRIES_BOUND || this.#chars > 2 * CHARS_BOUND) this.#trim()
  }

  #trim(): void {
    let dropped = 0
    for (const { seq, text } of this.#rows) {
      if (this.#rows.length - dropped <= ENTRIES_BOUND && this.#chars <= CHARS_BOUND) break
      this.#chars -= text.length
      this.#sinceSeq = seq
      dropped += 1
    }
    this.#rows = this.#rows.slice(dropped)
  }
}
