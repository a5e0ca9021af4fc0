import type { DatabaseSync } from 'node:sqlite'
import type { Draft, Update } from '../../protocol/updates.ts'
import { channelOf, prepareRows, type TapeRow } from './tape-row.ts'

/** Updates between two saves. Opening the tape reads the updates after the last save. */
const SAVE_INTERVAL = 4_096
const ALL_TOKENS = '*'

/** The last numbers by channel: the address and the type, with a space between. */
export type ChannelSeqs = readonly (readonly [channel: string, seq: number])[]

/** The last number of each token and type, which makes `prev`. It outlives the updates themselves. */
export class LastSeqs {
  readonly #seqs = new SeqMap()
  readonly #pending = new SeqMap()
  /** Numbers that changed since the last save. */
  readonly #unsaved = new SeqMap()
  readonly #statements: ReturnType<typeof prepareStatements>
  /** The end of the tape at the last save, and at the save in the open transaction. */
  #saved: number
  #savedNext: number | null = null

  constructor(database: DatabaseSync, saved: number) {
    this.#statements = prepareStatements(database)
    this.#saved = saved
    for (const { address, type, seq } of this.#statements.read.iterate()) this.#seqs.set(String(address), String(type), Number(seq))
    for (const [seq, text] of this.#statements.readTape.iterate(saved) as unknown as Iterable<TapeRow>) {
      const { address, type } = channelOf(text)
      this.#setCommitted(address ?? ALL_TOKENS, type, Number(seq))
    }
  }

  /** Begins to number a batch. The returned function takes a draft and its number, and returns the number before it. */
  openNumbering(): (draft: Draft, seq: number) => number | undefined {
    const given = new SeqMap()
    return ({ address: token, type }, seq) => {
      const address = token ?? ALL_TOKENS
      const previous = given.get(address, type) ?? this.#seqs.get(address, type)
      given.set(address, type, seq)
      return previous
    }
  }

  add({ address, type }: Pick<Update, 'address' | 'type'>, seq: number): void {
    this.#pending.set(address ?? ALL_TOKENS, type, seq)
  }

  /** Takes over the last numbers of another tape if they are higher. */
  addAll(seqs: ChannelSeqs): void {
    for (const [channel, seq] of seqs) {
      const [address = '', type = ''] = channel.split(' ')
      if (seq > (this.#seqs.get(address, type) ?? 0)) this.#pending.set(address, type, seq)
    }
  }

  get all(): ChannelSeqs {
    return Array.from(this.#seqs, ([address, type, seq]) => [`${address} ${type}`, seq])
  }

  /** Whether a tape with this end needs a save. No update after `oldest` is evicted. */
  isSaveDue(end: number, oldest: number): boolean {
    return end - this.#saved >= SAVE_INTERVAL || oldest > this.#saved
  }

  /** Writes all changed numbers inside the transaction after which the tape ends at `end`. */
  save(end: number): void {
    // If a channel is in both, the pending number is newer.
    for (const changed of [this.#unsaved, this.#pending])
      for (const [address, type, seq] of changed) this.#statements.write.run(address, type, seq)
    this.#statements.writeEnd.run(String(end))
    this.#savedNext = end
  }

  onCommit(): void {
    for (const [address, type, seq] of this.#pending) this.#setCommitted(address, type, seq)
    this.#pending.clear()
    if (this.#savedNext === null) return
    this.#unsaved.clear()
    this.#saved = this.#savedNext
    this.#savedNext = null
  }

  onRollback(): void {
    this.#pending.clear()
    this.#savedNext = null
  }

  #setCommitted(address: string, type: string, seq: number): void {
    this.#seqs.set(address, type, seq)
    this.#unsaved.set(address, type, seq)
  }
}

/** A number for each token and type. A map for each type needs no joined keys, and stays so small that growing does not block. */
class SeqMap {
  readonly #byType = new Map<string, Map<string, number>>()

  get(address: string, type: string): number | undefined {
    return this.#byType.get(type)?.get(address)
  }

  set(address: string, type: string, seq: number): void {
    const known = this.#byType.get(type)
    if (known) known.set(address, seq)
    else this.#byType.set(type, new Map([[address, seq]]))
  }

  *[Symbol.iterator](): Generator<readonly [address: string, type: string, seq: number]> {
    for (const [type, seqs] of this.#byType) for (const [address, seq] of seqs) yield [address, type, seq]
  }

  clear(): void {
    this.#byType.clear()
  }
}

const prepareStatements = (database: DatabaseSync) => ({
  read: database.prepare('SELECT address, type, seq FROM last_seqs'),
  readTape: prepareRows(database, 'SELECT seq, text FROM tape WHERE seq > ? ORDER BY seq'),
  write: database.prepare('INSERT OR REPLACE INTO last_seqs (address, type, seq) VALUES (?, ?, ?)'),
  writeEnd: database.prepare("INSERT OR REPLACE INTO meta (name, value) VALUES ('end', ?)"),
})
