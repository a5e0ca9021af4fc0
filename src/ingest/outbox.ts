import type { Draft } from '../protocol/updates.ts'
import { type Note, Notes } from '../tape/notes.ts'
import type { Tape } from '../tape/tape.ts'

/** What a turn amounts to: what is told, and what is kept beside it. */
export type BatchOutput = { readonly drafts: readonly Draft[]; readonly notes: Notes }

/** What is written of a turn before the tape has it: each draft under the number that it will have. */
export class Outbox {
  readonly #tape: Pick<Tape, 'end'>
  #drafts: Draft[] = []
  #notes = new Notes()

  constructor(tape: Pick<Tape, 'end'>) {
    this.#tape = tape
  }

  /** The number that the next draft will have: one teller writes a tape, and nothing comes between. */
  get nextSeq(): number {
    return this.#tape.end() + this.#drafts.length + 1
  }

  publish(draft: Draft): void {
    this.#drafts.push(draft)
  }

  setNote<Value>(note: Note<Value>, value: NoInfer<Value> | null): void {
    this.#notes.set(note, value)
  }

  /** What will have a number, if it is of this turn. */
  draftAt(seq: number): Draft | undefined {
    return this.#drafts[seq - this.#tape.end() - 1]
  }

  /** All of it, for the tape. */
  take(): BatchOutput {
    const output = { drafts: this.#drafts, notes: this.#notes }
    this.#drafts = []
    this.#notes = new Notes()
    return output
  }
}
