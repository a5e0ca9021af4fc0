import type { Draft } from '../protocol/updates.ts'
import { type Note, Notes } from '../tape/notes.ts'
import type { Tape } from '../tape/tape.ts'

export type BatchOutput = { readonly drafts: readonly Draft[]; readonly notes: Notes }

/** Collects the drafts and notes of one batch, and knows the number that each draft will have on the tape. */
export class Outbox {
  readonly #tape: Pick<Tape, 'end'>
  #drafts: Draft[] = []
  #notes = new Notes()

  constructor(tape: Pick<Tape, 'end'>) {
    this.#tape = tape
  }

  /** The number that the next draft will have. Only the reducer writes updates, so no other takes it. */
  get nextSeq(): number {
    return this.#tape.end() + this.#drafts.length + 1
  }

  publish(draft: Draft): void {
    this.#drafts.push(draft)
  }

  setNote<Value>(note: Note<Value>, value: NoInfer<Value> | null): void {
    this.#notes.set(note, value)
  }

  /** The draft of this batch that will have this number. */
  draftAt(seq: number): Draft | undefined {
    return this.#drafts[seq - this.#tape.end() - 1]
  }

  /** Takes the batch out. */
  take(): BatchOutput {
    const output = { drafts: this.#drafts, notes: this.#notes }
    this.#drafts = []
    this.#notes = new Notes()
    return output
  }
}
