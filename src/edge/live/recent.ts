import type { Entry } from '../../tape/tape.ts'

/** How much is kept of the newest updates. */
const BOUND = 2_048
const BOUND_CHARS = 4_194_304

/**
 * The newest updates, at hand so that joining needs no question to the tape at its last step. They are kept as the tape has
 * them, not in the bytes of the carriers that they once went out on: who comes back soon is given few of them.
 */
export class Recent {
  #entries: Entry[] = []
  #chars = 0
  #since: number

  constructor(since: number) {
    this.#since = since
  }

  /** The number after which all is at hand. */
  get since(): number {
    return this.#since
  }

  /** What stands after a number, if all of it is at hand, else null. */
  after(seq: number): readonly Entry[] | null {
    return seq < this.#since ? null : this.#entries.filter((entry) => entry.seq > seq)
  }

  add(entries: readonly Entry[]): void {
    for (const entry of entries) {
      this.#entries.push(entry)
      this.#chars += entry.text.length
    }
    // Twice as much may stand there, so that it is not trimmed each time.
    if (this.#entries.length > 2 * BOUND || this.#chars > 2 * BOUND_CHARS) this.#trim()
  }

  #trim(): void {
    let gone = 0
    for (const { seq, text } of this.#entries) {
      if (this.#entries.length - gone <= BOUND && this.#chars <= BOUND_CHARS) break
      this.#chars -= text.length
      this.#since = seq
      gone += 1
    }
    this.#entries = this.#entries.slice(gone)
  }
}
