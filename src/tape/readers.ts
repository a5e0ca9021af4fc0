import type { DatabaseSync, StatementSync } from 'node:sqlite'
import type { Hex } from '../protocol/parts.ts'
import { movementTypes, type UpdateType } from '../protocol/updates.ts'
import { channelOf, UNFILED } from './channel.ts'
import { SHELF } from './database.ts'
import { entryOf, type Row } from './row.ts'
import type { Entry, Found, Reader, Wanted } from './tape.ts'

/** Shelves that one reading looks through at most. */
const SHELVES_BOUND = 16
/** Text that one reading takes at most, and one message more. */
const TEXT_BOUND_CHARS = 1_048_576

/** Makes a reader; `heads` are the channels that there are, each as its address and type. */
export type Readers = (wanted: Wanted, heads: Iterable<string>) => Reader

/** Reads the embedded tape's history: all of a stretch row by row, few of many by the shelves that they are filed on. */
export function openReaders(database: DatabaseSync): Readers {
  const inOrder = (sql: (direction: string) => string) => ({
    asc: database.prepare(sql('ASC')),
    desc: database.prepare(sql('DESC')),
  })
  const within = 'seq > ? AND seq < ?'
  const rows = inOrder((way) => `SELECT seq, text FROM tape WHERE ${within} ORDER BY seq ${way} LIMIT ?`)
  const first = inOrder((way) => `SELECT seq FROM tape WHERE ${within} ORDER BY seq ${way} LIMIT 1`)
  const filed = inOrder(
    (way) =>
      `SELECT seq, text FROM tape WHERE seq / ${SHELF} = ? AND channel IN (SELECT value FROM json_each(?))
       AND ${within} ORDER BY seq ${way} LIMIT ?`,
  )
  return (wanted, heads) => {
    const isWanted = ({ update: { address, type } }: Entry) => wants(wanted, address, type)
    if (isMost(wanted)) {
      return ({ after, before, order, limit }) => {
        const { entries, reached } = take(rows[order], limit, [after, before])
        return { entries: entries.filter(isWanted), reached }
      }
    }
    const channels = JSON.stringify(channelsOf(wanted, heads))
    return (stretch) => {
      const { order, limit } = stretch
      let { after, before } = stretch
      const entries: Entry[] = []
      for (let shelves = 0; shelves < SHELVES_BOUND; shelves += 1) {
        // Numbers have holes, some of them wide: the next shelf is the one that holds something.
        const at = first[order].get(after, before)?.seq
        if (at === undefined) return { entries, reached: null }
        const shelf = Math.floor(Number(at) / SHELF)
        const found = take(filed[order], limit - entries.length, [shelf, channels, after, before])
        entries.push(...found.entries.filter(isWanted))
        if (found.reached !== null) return { entries, reached: found.reached }
        if (order === 'asc') after = shelf * SHELF + SHELF - 1
        else before = shelf * SHELF
      }
      return { entries, reached: order === 'asc' ? after : before }
    }
  }
}

/** Takes the rows of a question up to a limit and a bound; says how far it came where there may be more. */
function take(question: StatementSync, limit: number, given: readonly (number | string)[]): Found {
  const entries: Entry[] = []
  let chars = 0
  for (const row of question.iterate(...given, limit) as Iterable<Row>) {
    entries.push(entryOf(row))
    chars += row.text.length
    if (chars > TEXT_BOUND_CHARS) break
  }
  const last = entries.at(-1)
  return { entries, reached: last && (entries.length === limit || chars > TEXT_BOUND_CHARS) ? last.seq : null }
}

/** Movements are most of what a tape holds: who wants those of all tokens wants most rows. */
const isMost = ({ tokens, types }: Wanted): boolean =>
  tokens === null && [...movementTypes].some((type) => types.has(type))

const wants = ({ tokens, types }: Wanted, address: Hex | null, type: UpdateType): boolean =>
  types.has(type) && (tokens === null || address === null || tokens.has(address))

function channelsOf(wanted: Wanted, heads: Iterable<string>): readonly number[] {
  const channels: number[] = [UNFILED]
  for (const head of heads) {
    const [name, type] = head.split(' ') as [Hex | '*', UpdateType]
    const address = name === '*' ? null : name
    if (wants(wanted, address, type)) channels.push(channelOf(address, type))
  }
  return channels
}
