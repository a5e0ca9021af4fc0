import type { DatabaseSync } from 'node:sqlite'
import type { Draft } from '../../protocol/updates.ts'
import type { Entry } from './tape.ts'
import { channelOf, prepareRows, type TapeRow } from './tape-row.ts'

/** Number of updates between two saves. Opening the tape reads all updates after the last save. */
const SAVE_INTERVAL = 4_096
const ALL_TOKENS = '*'

/** Number of the last update in each channel. The name of a channel is its address, a space and its type. */
export type ChannelSeqs = readonly (readonly [channel: string, seq: number])[]

/** Number of the last update of each token and type, which the next update has as `prev`. Kept even if that update is evicted. */
export class LastSeqs {
  readonly #seqs = new SeqMap()
  /** Numbers that changed since the last save. */
  readonly #unsaved = new SeqMap()
  readonly #statements: ReturnType<typeof prepareStatements>
  /** End of the tape at the last save. */
  #saved: number

  constructor(database: DatabaseSync, saved: number) {
    this.#statements = prepareStatements(database)
    this.#saved = saved
    for (const { address, type, seq } of this.#statements.read.iterate()) this.#seqs.set(String(address), String(type), Number(seq))
    for (const [seq, text] of this.#statements.readTape.iterate(saved) as unknown as Iterable<TapeRow>) {
      const { address, type } = channelOf(text)
      for (const seqs of [this.#seqs, this.#unsaved]) seqs.set(address ?? ALL_TOKENS, type, Number(seq))
    }
  }

  /** Begins to number a batch. The returned function records a draft's number, and returns the previous one of its channel. */
  openNumbering(): (draft: Draft, seq: number) => number | undefined {
    const given = new SeqMap()
    return ({ address: token, type }, seq) => {
      const address = token ?? ALL_TOKENS
      const previous = given.get(address, type) ?? this.#seqs.get(address, type)
      given.set(address, type, seq)
      return previous
    }
  }

  /** Returns the numbers that change with these updates and with a checkpoint, whose numbers count only if they are higher. */
  changesBy(entries: readonly Entry[], checkpoint: ChannelSeqs = []): SeqMap {
    const changes = new SeqMap()
    for (const { seq, update } of entries) changes.set(update.address ?? ALL_TOKENS, update.type, seq)
    for (const [channel, seq] of checkpoint) {
      const [address = '', type = ''] = channel.split(' ')
      if (seq > (this.#seqs.get(address, type) ?? 0)) changes.set(address, type, seq)
    }
    return changes
  }

  get all(): ChannelSeqs {
    return Array.from(this.#seqs, ([address, type, seq]) => [`${address} ${type}`, seq])
  }

  /** Whether a save is due for a tape with this end. `oldest` is the highest evicted number: it must not be above the last save. */
  isSaveDue(end: number, oldest: number): boolean {
    return end - this.#saved >= SAVE_INTERVAL || oldest > this.#saved
  }

  /** Writes the numbers that changed since the last save, in the transaction after which the tape ends at `end`. */
  save(changes: SeqMap, end: number): void {
    // The changes of the transaction are written last, because they are newer.
    for (const changed of [this.#unsaved, changes])
      for (const [address, type, seq] of changed) this.#statements.write.run(address, type, seq)
    this.#statements.writeEnd.run(String(end))
  }

  /** Takes over the changes of a committed transaction. `saved` is the end that it saved; null if it saved nothing. */
  adopt(changes: SeqMap, saved: number | null): void {
    for (const [address, type, seq] of changes) for (const seqs of [this.#seqs, this.#unsaved]) seqs.set(address, type, seq)
    if (saved === null) return
    this.#unsaved.clear()
    this.#saved = saved
  }
}

/** A number for each token and type, in one map for each type: no keys need to be joined, and a small map grows without delay. */
export class SeqMap {
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
