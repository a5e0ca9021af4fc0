import type { Hex } from '../../../lib/hex.ts'
import { blockOf } from '../../../protocol/fields.ts'
import { contentsBefore } from '../../../protocol/key-messages.ts'
import type { Update } from '../../../protocol/updates.ts'
import type { Entry, Tape } from '../../tape/tape.ts'

type AmendedContent = Extract<Update, { type: 'amend' }>['update']
type FactUpdate = Exclude<Extract<Update, { key?: string | undefined }>, { type: 'retract' | 'amend' }>
export type FactContent = FactUpdate | AmendedContent

/** A key since its last publication, with each content that the tape has for it. */
export type KeyHistory = {
  readonly key: string
  readonly seq: number
  readonly published: FactUpdate
  readonly contents: readonly { readonly seq: number; readonly content: FactContent }[]
}

type SealKeys = { readonly seq: number; readonly keys: ReadonlySet<string> }

export type TapeLookup = Pick<Tape, 'find'>

/** Looks up keys on the tape. Updates that are matched together share one lookup, so that a long seal is read only once. */
export class KeyLookup {
  readonly tape: TapeLookup
  readonly #sealsByBlock = new Map<string, readonly SealKeys[]>()

  constructor(tape: TapeLookup) {
    this.tape = tape
  }

  sealsOf(address: Hex, block: number): readonly SealKeys[] {
    const blockKey = `${address} ${block}`
    let seals = this.#sealsByBlock.get(blockKey)
    if (!seals) {
      seals = this.tape
        .find({ sealsOf: block, address })
        .flatMap(({ seq, update }) => (update.type === 'seal' ? [{ seq, keys: new Set(update.keys) }] : []))
      this.#sealsByBlock.set(blockKey, seals)
    }
    return seals
  }
}

/** Histories of the keys of an update, as they were just before the update, so that a live delivery and a later replay agree. */
export class KeyHistories {
  readonly beforeSeq: number
  readonly #lookup: KeyLookup
  readonly #histories = new Map<string, KeyHistory | null>()

  constructor(entry: Entry, lookup: KeyLookup) {
    this.beforeSeq = entry.seq
    this.#lookup = lookup
  }

  /** Returns the history of a key since its last publication; null if the tape no longer keeps that publication. */
  historyOf(key: string): KeyHistory | null {
    let history = this.#histories.get(key)
    if (history === undefined) {
      const contents = contentsBefore(this.#lookup.tape.find({ key }), this.beforeSeq)
      const [first] = contents
      history = first ? { key, seq: first.seq, published: first.content as FactUpdate, contents } : null
      this.#histories.set(key, history)
    }
    return history
  }

  /**
   * Returns the sequence number at which the sealed view emitted a key: that of the first later seal that lists the key, or of its
   * publication, if that was not pre-confirmed. Null before that seal. The tape keeps the seal as long as the publication.
   */
  emittedAt({ key, seq, published }: KeyHistory): number | null {
    if (published.stage !== 'preconfirmed') return seq
    const seals = this.#lookup.sealsOf(published.address, blockOf(key))
    return seals.find((seal) => seal.seq > seq && seal.seq < this.beforeSeq && seal.keys.has(key))?.seq ?? null
  }

  /** Whether an earlier seal on the tape lists this key. */
  wasSealed(key: string, address: Hex): boolean {
    return this.#lookup.sealsOf(address, blockOf(key)).some((seal) => seal.seq < this.beforeSeq && seal.keys.has(key))
  }
}
