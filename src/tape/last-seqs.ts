import type { DatabaseSync } from 'node:sqlite'
import type { Draft, Update } from '../protocol/updates.ts'
import { channelOf, prepareRows, type TapeRow } from './row.ts'

/** Saved once in this many updates. Opening reads the updates after the last save. */
const SAVE_INTERVAL = 4_096
/** Stands for the address of updates that concern all tokens. */
const ALL_TOKENS = '*'

/** The last number of tokens and types, by both. */
export type ChannelSeqs = readonly (readonly [channel: string, seq: number])[]

/** The last number of each token and type, from which `prev` is made. It outlives the updates themselves. */
export class LastSeqs {
  readonly #seqs = new Map<string, number>()
  /** Written in the open transaction. */
  readonly #pending = new Map<string, number>()
  /** Changed since the last save. */
  readonly #unsaved = new Set<string>()
  readonly #statements: ReturnType<typeof prepareStatements>
  /** The end of the tape at the last save, and at the save in the open transaction. */
  #saved: number
  #savedNext: number | null = null

  constructor(database: DatabaseSync, saved: number) {
    this.#statements = prepareStatements(database)
    this.#saved = saved
    for (const { address, type, seq } of this.#statements.read.iterate()) this.#seqs.set(`${address} ${type}`, Number(seq))
    for (const [seq, text] of this.#statements.readTape.iterate(saved) as unknown as Iterable<TapeRow>) {
      const channel = channelNameOf(channelOf(text))
      this.#seqs.set(channel, Number(seq))
      this.#unsaved.add(channel)
    }
  }

  /** Begins to number a batch. The function takes each draft with its number, and returns the number before it. */
  openNumbering(): (draft: Draft, seq: number) => number | undefined {
    const given = new Map<string, number>()
    return (draft, seq) => {
      const channel = channelNameOf(draft)
      const previous = given.get(channel) ?? this.#seqs.get(channel)
      given.set(channel, seq)
      return previous
    }
  }

  /** An update is written in the open transaction. */
  add(update: Update, seq: number): void {
    this.#pending.set(channelNameOf(update), seq)
  }

  /** The last numbers as another tape knew them, unless they are known better here. */
  addAll(seqs: ChannelSeqs): void {
    for (const [channel, seq] of seqs) if (seq > (this.#seqs.get(channel) ?? 0)) this.#pending.set(channel, seq)
  }

  /** The last number of each channel. */
  get all(): ChannelSeqs {
    return [...this.#seqs]
  }

  /** Whether a tape with this end needs a save. No update after `oldest` is evicted. */
  isSaveDue(end: number, oldest: number): boolean {
    return end - this.#saved >= SAVE_INTERVAL || oldest > this.#saved
  }

  /** Writes all changed numbers inside the transaction after which the tape ends at `end`. */
  save(end: number): void {
    for (const channel of new Set([...this.#unsaved, ...this.#pending.keys()])) {
      const [address = '', type = ''] = channel.split(' ')
      this.#statements.write.run(address, type, this.#pending.get(channel) ?? this.#seqs.get(channel) ?? 0)
    }
    this.#statements.writeEnd.run(String(end))
    this.#savedNext = end
  }

  /** The transaction was committed. */
  onCommit(): void {
    for (const [channel, seq] of this.#pending) {
      this.#seqs.set(channel, seq)
      this.#unsaved.add(channel)
    }
    this.#pending.clear()
    if (this.#savedNext === null) return
    this.#unsaved.clear()
    this.#saved = this.#savedNext
    this.#savedNext = null
  }

  /** The transaction failed. */
  onRollback(): void {
    this.#pending.clear()
    this.#savedNext = null
  }
}

const channelNameOf = ({ address, type }: Pick<Update, 'address' | 'type'>): string => `${address ?? ALL_TOKENS} ${type}`

const prepareStatements = (database: DatabaseSync) => ({
  read: database.prepare('SELECT address, type, seq FROM last_seqs'),
  readTape: prepareRows(database, 'SELECT seq, text FROM tape WHERE seq > ? ORDER BY seq'),
  write: database.prepare('INSERT OR REPLACE INTO last_seqs (address, type, seq) VALUES (?, ?, ?)'),
  writeEnd: database.prepare("INSERT OR REPLACE INTO meta (name, value) VALUES ('end', ?)"),
})
