import type { DatabaseSync, StatementSync } from 'node:sqlite'
import { movementTypes, type Update, type UpdateType } from '../../protocol/updates.ts'
import { entryOf, type Row } from '../row.ts'
import type { Entry, Extent, Reader, Wanted } from '../tape.ts'
import { Channels, followers } from './channels.ts'
import { Lives } from './key-types.ts'
import { Catalogue, type Filed } from './shelves.ts'

/** Text that one reading takes at most, and one message more. */
const TEXT_BOUND_CHARS = 1_048_576

/** What is known of a tape as it is opened. */
type Opened = {
  readonly oldest: number
  readonly end: number
  /** Every kept message about a key. */
  readonly about: (key: string) => readonly Entry[]
}

/** Files what is written, so that history finds what is wanted and reads only that. */
export class Filing {
  readonly #channels: Channels
  readonly #catalogue: Catalogue
  readonly #lives: Lives
  readonly #row: StatementSync
  readonly #rows: Readonly<Record<'asc' | 'desc', StatementSync>>
  #filed: Filed[] = []
  #oldest: number

  constructor(database: DatabaseSync, { oldest, end, about }: Opened) {
    this.#channels = new Channels(database)
    this.#catalogue = new Catalogue(database, this.#channels, oldest, end)
    this.#lives = new Lives(about)
    this.#row = database.prepare('SELECT seq, text FROM tape WHERE seq = ?')
    const between = 'SELECT seq, text FROM tape WHERE seq BETWEEN ? AND ? ORDER BY seq'
    this.#rows = { asc: database.prepare(between), desc: database.prepare(`${between} DESC`) }
    this.#oldest = oldest
  }

  /** Files a message within a stroke, before it is written itself; whether the count may take it. */
  file(entry: Entry): boolean {
    const { seq, update } = entry
    const { types: told, since } = this.#lives.follow(entry)
    const evictable = isEvictable(update)
    const channel = this.#channels.numberOf({ address: update.address, type: update.type, told, evictable })
    this.#filed.push({ seq, channel, since })
    return evictable
  }

  /** Writes within a stroke what was not written yet. */
  save(): void {
    this.#channels.save()
    this.#catalogue.save()
  }

  /** The stroke held, and took these with it. */
  held(gone: readonly number[], oldest: number): void {
    this.#channels.saved()
    this.#catalogue.add(this.#filed)
    this.#catalogue.remove(gone)
    this.#filed = []
    this.#oldest = oldest
  }

  /** The stroke failed. */
  undone(): void {
    this.#filed = []
    this.#lives.forget()
  }

  reader(wanted: Wanted): Reader {
    let looks = this.#channels.looksOf(wanted)
    return (stretch) => {
      if (looks.length < this.#channels.bound) looks = this.#channels.looksOf(wanted)
      const { seqs, reached } = this.#catalogue.find(looks, stretch, this.#oldest)
      const entries: Entry[] = []
      let chars = 0
      for (const row of this.#rowsAt(seqs)) {
        const entry = entryOf(row)
        if (isWanted(wanted, entry)) entries.push(entry)
        chars += row.text.length
        if (chars > TEXT_BOUND_CHARS) return { entries, reached: row.seq }
      }
      return { entries, reached }
    }
  }

  /** The messages with these numbers, in their order; in one go where they stand beside each other. */
  *#rowsAt(seqs: readonly number[]): Iterable<Row> {
    const [first = 0, last = first] = [seqs[0], seqs.at(-1)]
    if (seqs.length > 1 && Math.abs(last - first) === seqs.length - 1) {
      const [from, to, rows] = first < last ? [first, last, this.#rows.asc] : [last, first, this.#rows.desc]
      yield* rows.iterate(from, to) as Iterable<Row>
      return
    }
    for (const seq of seqs) {
      const row = this.#row.get(seq) as Row | undefined
      if (row) yield row
    }
  }

  extent(wanted: Wanted, after: number, enough: number): Extent {
    return this.#catalogue.extent(this.#channels.looksOf(wanted), after, enough, this.#oldest)
  }
}

const isPlenty = (type: UpdateType | 'part'): boolean =>
  type === 'part' || type === 'approval' || type === 'log' || movementTypes.has(type)

/**
 * Whether the count may take a message. A seal goes only with all that it seals: as long as a telling is kept, so is every
 * seal that lists it, and it can be said whether it had been sealed before.
 */
const isEvictable = (update: Update): boolean =>
  update.type === 'seal' ? update.types.every(isPlenty) : isPlenty(update.type)

/** What has no channel of its own is found by whoever looks. */
const isWanted = ({ tokens, types, followersOf }: Wanted, { update: { address, type } }: Entry): boolean =>
  (types.has(type) || (followersOf !== undefined && followers.has(type))) &&
  (tokens === null || address === null || tokens.has(address))
