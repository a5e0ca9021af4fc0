import type { Entry, FoundEntries, SeqRange } from '../../tape/tape.ts'

const ENTRIES_BOUND = 2_048
const CHARS_BOUND = 4_194_304

/** Keeps the newest updates in memory, so that the last step of a join does not read the tape. Few readers need them encoded. */
export class RecentUpdates {
  #entries: Entry[] = []
  #chars = 0
  /** All updates after this sequence number are in memory. */
  sinceSeq: number

  constructor(sinceSeq: number) {
    this.sinceSeq = sinceSeq
  }

  /** Returns the updates after a sequence number; null if some of them are no longer in memory. */
  after(seq: number): readonly Entry[] | null {
    return seq < this.sinceSeq ? null : this.#entries.filter((entry) => entry.seq > seq)
  }

  /** Reads a page like a reader of the tape; null if some of its updates are no longer in memory. */
  read({ after, before, limit }: SeqRange): FoundEntries | null {
    const entries = this.after(after)
      ?.filter(({ seq }) => seq < before)
      .slice(0, limit)
    if (!entries) return null
    return { entries, reached: entries.length < limit ? null : (entries.at(-1)?.seq ?? null) }
  }

  add(entries: readonly Entry[]): void {
    for (const entry of entries) {
      this.#entries.push(entry)
      this.#chars += entry.text.length
    }
    // Old updates are removed only at twice the limit, so that few calls take the time for it.
    if (this.#entries.length > 2 * ENTRIES_BOUND || this.#chars > 2 * CHARS_BOUND) this.#trim()
  }

  #trim(): void {
    let dropped = 0
    for (const { seq, text } of this.#entries) {
      if (this.#entries.length - dropped <= ENTRIES_BOUND && this.#chars <= CHARS_BOUND) break
      this.#chars -= text.length
      this.sinceSeq = seq
      dropped += 1
    }
    this.#entries = this.#entries.slice(dropped)
  }
}
