import type { Hex } from '../../../lib/hex.ts'
import { blockOf } from '../../../protocol/fields.ts'
import { contentsBefore } from '../../../protocol/key-life.ts'
import type { Update } from '../../../protocol/updates.ts'
import type { Entry, TapeHistory } from '../../tape/tape.ts'

type AmendedContent = Extract<Update, { type: 'amend' }>['update']
/** An update that publishes an on-chain fact. */
type FactUpdate = Exclude<Extract<Update, { key?: string | undefined }>, { type: 'retract' | 'amend' }>
/** The content of a key: as published, or as amended. */
export type FactContent = FactUpdate | AmendedContent

/** A key from its publication until a retract, with every content that it had. */
export type KeyHistory = {
  readonly key: string
  readonly seq: number
  readonly published: FactUpdate
  readonly contents: readonly { readonly seq: number; readonly content: FactContent }[]
}

/** The keys that a seal lists, and the seal's sequence number. */
type SealKeys = { readonly seq: number; readonly keys: ReadonlySet<string> }

export type TapeLookup = Pick<TapeHistory, 'readKey' | 'sealsOfToken'>

/** What the tape keeps about keys. Updates that are matched together share one: the seal of a large block is long. */
export class KeyLookup {
  readonly #tape: TapeLookup
  readonly #sealsByBlock = new Map<string, readonly SealKeys[]>()

  constructor(tape: TapeLookup) {
    this.#tape = tape
  }

  readKey(key: string): readonly Entry[] {
    return this.#tape.readKey(key)
  }

  sealsOf(address: Hex, block: number): readonly SealKeys[] {
    const blockKey = `${address} ${block}`
    let seals = this.#sealsByBlock.get(blockKey)
    if (!seals) {
      seals = this.#tape
        .sealsOfToken(address, block)
        .flatMap(({ seq, update }) => (update.type === 'seal' ? [{ seq, keys: new Set(update.keys) }] : []))
      this.#sealsByBlock.set(blockKey, seals)
    }
    return seals
  }
}

/**
 * The histories of the keys that one update names, as they were just before it. A live delivery and a replay tomorrow
 * therefore see the same. Each lookup is made once, on first use.
 */
export class KeyHistories {
  /** The sequence number of that update. */
  readonly beforeSeq: number
  readonly #lookup: KeyLookup
  readonly #histories = new Map<string, KeyHistory | null>()

  constructor(entry: Entry, lookup: KeyLookup) {
    this.beforeSeq = entry.seq
    this.#lookup = lookup
  }

  /** The history of a key since its last publication; null where the tape no longer keeps the publication. */
  historyOf(key: string): KeyHistory | null {
    let history = this.#histories.get(key)
    if (history === undefined) {
      history = buildHistory(key, this.#lookup.readKey(key), this.beforeSeq)
      this.#histories.set(key, history)
    }
    return history
  }

  /**
   * The sequence number at which the sealed view emitted this history; null where it has not yet. That is the first
   * seal that lists the key after its publication: a block that is sealed again lists the same key again. The tape
   * keeps every such seal as long as it keeps the publication.
   */
  emittedAt({ key, seq, published }: KeyHistory): number | null {
    if (published.stage !== 'preconfirmed') return seq
    const seals = this.#lookup.sealsOf(published.address, blockOf(key))
    return seals.find((seal) => seal.seq > seq && seal.seq < this.beforeSeq && seal.keys.has(key))?.seq ?? null
  }

  /** Whether an earlier seal that the tape keeps lists this key. */
  wasSealed(key: string, address: Hex): boolean {
    return this.#lookup.sealsOf(address, blockOf(key)).some((seal) => seal.seq < this.beforeSeq && seal.keys.has(key))
  }
}

function buildHistory(key: string, entries: readonly Entry[], beforeSeq: number): KeyHistory | null {
  const contents = contentsBefore(entries, beforeSeq)
  const [first] = contents
  return first ? { key, seq: first.seq, published: first.content as FactUpdate, contents } : null
}
