import type { Hex } from '../../protocol/fields.ts'
import { blockOf } from '../../protocol/key.ts'
import type { Update } from '../../protocol/updates.ts'
import type { Entry, Tape } from '../../tape/tape.ts'

type Amended = Extract<Update, { type: 'amend' }>['update']
/** What is told of an on-chain fact. */
type Fact = Exclude<Extract<Update, { key?: string | undefined }>, { type: 'retract' | 'amend' }>
/** What a key was told as: at first, or since an amendment. */
export type Content = Fact | Amended

/** A key from its telling on, as long as nothing retracts it: every content that it was told with. */
export type Life = {
  readonly key: string
  readonly seq: number
  readonly telling: Fact
  readonly contents: readonly { readonly seq: number; readonly content: Content }[]
}

/** The keys that a seal lists, and its number. */
type Listing = { readonly seq: number; readonly keys: ReadonlySet<string> }

/** What is asked of the tape about what it holds. */
export type Memory = Pick<Tape, 'about' | 'seals'>

/**
 * What the tape holds of the keys that one message names, as it was just before that message: so it is the same whether
 * the message is delivered now or to who comes back tomorrow. Each thing is looked up once, by the first who asks.
 */
export class Past {
  /** The number of that message. */
  readonly before: number
  readonly #tape: Memory
  readonly #lives = new Map<string, Life | null>()
  readonly #seals = new Map<string, readonly Listing[]>()

  constructor(entry: Entry, tape: Memory) {
    this.before = entry.seq
    this.#tape = tape
  }

  /** The current life of a key; null where its telling is no longer kept. */
  life(key: string): Life | null {
    let life = this.#lives.get(key)
    if (life === undefined) {
      life = lifeOf(key, this.#tape.about(key), this.before)
      this.#lives.set(key, life)
    }
    return life
  }

  /**
   * The number at which the sealed view gave this life; null where it has not yet. A block that is sealed again lists the
   * same key again, so the seals of its block are asked, and not only whether there is one now: what gave it is the first
   * seal that lists it after its telling. The tape keeps every such seal for as long as it keeps the telling.
   */
  givenAt({ key, seq, telling }: Life): number | null {
    if (telling.stage !== 'preconfirmed') return seq
    return (
      this.#sealsOf(telling.address, blockOf(key)).find((seal) => seal.seq > seq && seal.keys.has(key))?.seq ?? null
    )
  }

  #sealsOf(address: Hex, block: number): readonly Listing[] {
    const name = `${address} ${block}`
    let seals = this.#seals.get(name)
    if (!seals) {
      seals = this.#tape
        .seals(address, block)
        .flatMap(({ seq, update }) =>
          seq < this.before && update.type === 'seal' ? [{ seq, keys: new Set(update.keys) }] : [],
        )
      this.#seals.set(name, seals)
    }
    return seals
  }
}

function lifeOf(key: string, entries: readonly Entry[], before: number): Life | null {
  let life: (Life & { readonly contents: { seq: number; content: Content }[] }) | null = null
  for (const { seq, update } of entries) {
    if (seq >= before) break
    if (update.type === 'retract') life = null
    else if (update.type === 'amend') life?.contents.push({ seq, content: update.update })
    else if ('key' in update) {
      life ??= { key, seq, telling: update, contents: [] }
      life.contents.push({ seq, content: update })
    }
  }
  return life
}
