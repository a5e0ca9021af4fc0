import type { Hex } from '../../protocol/fields.ts'
import { blockOf } from '../../protocol/key.ts'
import type { Update } from '../../protocol/updates.ts'
import type { Entry, TapeHistory } from '../../tape/tape.ts'

type AmendedContent = Extract<Update, { type: 'amend' }>['update']
/** What is told of an on-chain fact. */
type FactUpdate = Exclude<Extract<Update, { key?: string | undefined }>, { type: 'retract' | 'amend' }>
/** What a key was told as: at first, or since an amendment. */
export type FactContent = FactUpdate | AmendedContent

/** A key from its telling on, as long as nothing retracts it: every content that it was told with. */
export type KeyHistory = {
  readonly key: string
  readonly seq: number
  readonly published: FactUpdate
  readonly contents: readonly { readonly seq: number; readonly content: FactContent }[]
}

/** The keys that a seal lists, and its number. */
type SealKeys = { readonly seq: number; readonly keys: ReadonlySet<string> }

/** What is asked of the tape about what it holds. */
export type TapeLookup = Pick<TapeHistory, 'readKey' | 'sealsOfToken'>

/**
 * What the tape holds of the keys that one message names, as it was just before that message: so it is the same whether
 * the message is delivered now or to who comes back tomorrow. Each thing is looked up once, by the first who asks.
 */
export class KeyHistories {
  /** The number of that message. */
  readonly beforeSeq: number
  readonly #tape: TapeLookup
  readonly #histories = new Map<string, KeyHistory | null>()
  readonly #sealsByBlock = new Map<string, readonly SealKeys[]>()

  constructor(entry: Entry, tape: TapeLookup) {
    this.beforeSeq = entry.seq
    this.#tape = tape
  }

  /** The current life of a key; null where its telling is no longer kept. */
  historyOf(key: string): KeyHistory | null {
    let history = this.#histories.get(key)
    if (history === undefined) {
      history = buildHistory(key, this.#tape.readKey(key), this.beforeSeq)
      this.#histories.set(key, history)
    }
    return history
  }

  /**
   * The number at which the sealed view gave this life; null where it has not yet. A block that is sealed again lists the
   * same key again, so the seals of its block are asked, and not only whether there is one now: what gave it is the first
   * seal that lists it after its telling. The tape keeps every such seal for as long as it keeps the telling.
   */
  emittedAt({ key, seq, published }: KeyHistory): number | null {
    if (published.stage !== 'preconfirmed') return seq
    return (
      this.#sealsOf(published.address, blockOf(key)).find((seal) => seal.seq > seq && seal.keys.has(key))?.seq ?? null
    )
  }

  #sealsOf(address: Hex, block: number): readonly SealKeys[] {
    const blockKey = `${address} ${block}`
    let seals = this.#sealsByBlock.get(blockKey)
    if (!seals) {
      seals = this.#tape
        .sealsOfToken(address, block)
        .flatMap(({ seq, update }) =>
          seq < this.beforeSeq && update.type === 'seal' ? [{ seq, keys: new Set(update.keys) }] : [],
        )
      this.#sealsByBlock.set(blockKey, seals)
    }
    return seals
  }
}

function buildHistory(key: string, entries: readonly Entry[], beforeSeq: number): KeyHistory | null {
  let history: (KeyHistory & { readonly contents: { seq: number; content: FactContent }[] }) | null = null
  for (const { seq, update } of entries) {
    if (seq >= beforeSeq) break
    if (update.type === 'retract') history = null
    else if (update.type === 'amend') history?.contents.push({ seq, content: update.update })
    else if ('key' in update) {
      history ??= { key, seq, published: update, contents: [] }
      history.contents.push({ seq, content: update })
    }
  }
  return history
}
