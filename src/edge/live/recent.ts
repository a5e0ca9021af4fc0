import type { Entry } from '../../tape/tape.ts'

/** How much is kept of the newest updates. */
const ENTRIES_BOUND = 2_048
const CHARS_BOUND = 4_194_304

/**
 * The newest updates, at hand so that joining needs no question to the tape at its last step. They are kept as the tape has
 * them, not in the bytes of the carriers that they once went out on: who comes back soon is given few of them.
 */
export class RecentUpdates {
  #entries: Entry[] = []
  #chars = 0
  #sinceSeq: number

  constructor(sinceSeq: number) {
    this.#sinceSeq = sinceSeq
  }

  /** The number after which all is at hand. */
  get sinceSeq(): number {
    return this.#sinceSeq
  }

  /** What stands after a number, if all of it is at hand, else null. */
  after(seq: number): readonly Entry[] | null {
    return seq < this.#sinceSeq ? null : this.#entries.filter((entry) => entry.seq > seq)
  }

  add(entries: readonly Entry[]): void {
    for (const entry of entries) {
      this.#entries.push(entry)
      this.#chars += entry.text.length
    }
    // Twice as much may stand there, so that it is not trimmed each time.
    if (this.#entries.length > 2 * ENTRIES_BOUND || this.#chars > 2 * CHARS_BOUND) this.#trim()
  }

  #trim(): void {
    let dropped = 0
    for (const { seq, text } of this.#entries) {
      if (this.#entries.length - dropped <= ENTRIES_BOUND && this.#chars <= CHARS_BOUND) break
      this.#chars -= text.length
      this.#sinceSeq = seq
      dropped += 1
    }
    this.#entries = this.#entries.slice(dropped)
  }
}
