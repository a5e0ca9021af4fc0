import { type Log, readLogs } from '../../../src/chain/logs/log-schema.ts'
import type { SealedBlock } from '../../../src/chain/sealed/block-logs.ts'
import type { Heard } from '../../../src/chain/source/source.ts'
import { type Arrival, Teller } from '../../../src/ingest/reducer.ts'
import type { Hex } from '../../../src/protocol/fields.ts'
import type { Update } from '../../../src/protocol/updates.ts'
import type { Tape } from '../../../src/tape/tape.ts'
import type { FeedSetting } from '../../../src/tokens/price-feeds.ts'
import { blockHash, pendingLog, secondOf } from '../chain/node-json.ts'
import { APPLE, listOf, NOON, type StockRecord, TESLA } from '../tokens/stock-records.ts'

export type Place = {
  readonly block: number
  readonly index?: number
  readonly address?: Hex
  readonly raw?: bigint
  /** The transaction, where it is not the one that its place names. */
  readonly tx?: Hex
}

const logOf = (wire: Record<string, unknown>): Log => {
  const [log] = readLogs(wire).logs
  if (!log) throw new Error('no log')
  return log
}

/** A log of a token, as a node that pre-confirms it sends it. */
export const logAt = ({ tx, address = APPLE as Hex, ...place }: Place): Log => {
  const wire = pendingLog({ ...place, address })
  return logOf(tx ? { ...wire, transactionHash: tx } : wire)
}

/** A pre-confirmed log on its way down the river. */
export const logHeard = (
  place: Place,
  { via = 'pendingLogs', ...overrides }: { via?: 'pendingLogs' | 'poll' } & Partial<Log> = {},
): Extract<Arrival, { type: 'transaction' }> => transaction([{ ...logAt(place), ...overrides }], via)

/** The same as it comes from the source. */
export const logSent = (place: Place): Extract<Heard, { type: 'log' }> => ({
  type: 'log',
  log: logAt(place),
  via: 'pendingLogs',
  receivedAt: NOON,
})

/** Pre-confirmed logs of one transaction that came together. */
export const transaction = (
  logs: readonly Log[],
  via: 'pendingLogs' | 'poll' = 'pendingLogs',
): Extract<Arrival, { type: 'transaction' }> => ({
  type: 'transaction',
  logs: logs.map((log) => ({ log, via, receivedAt: NOON })),
})

type Sealing = Partial<Pick<SealedBlock, 'hash' | 'asked' | 'via' | 'timestamp'>> & {
  readonly newest?: number
  readonly cursor?: number
}

/** A block's settling on its way down the river: it holds these logs and no others of the tokens asked for. */
export const sealedHeard = (
  number: number,
  places: readonly Omit<Place, 'block'>[],
  {
    hash = blockHash(number),
    asked = [APPLE as Hex, TESLA as Hex],
    via = 'sealed',
    timestamp = secondOf(number),
    newest = number,
    cursor = number,
  }: Sealing = {},
): Extract<Heard, { type: 'sealed' }> => {
  const logs = places.map((place) => logAt({ ...place, block: number }))
  return sealedWith(number, logs, { hash, asked, via, timestamp, newest, cursor })
}

/** The same, with the logs themselves. */
export const sealedWith = (
  number: number,
  logs: readonly Log[],
  {
    hash = blockHash(number),
    asked = [APPLE as Hex, TESLA as Hex],
    via = 'sealed',
    timestamp = secondOf(number),
    newest = number,
    cursor = number,
  }: Sealing = {},
): Extract<Heard, { type: 'sealed' }> => {
  const block: SealedBlock = {
    number,
    hash,
    timestamp,
    logs: logs.map((log) => ({ ...log, blockHash: hash })),
    asked,
    via,
  }
  return { type: 'sealed', blocks: [block], newest, cursor: { number: cursor, hash: cursor === number ? hash : null } }
}

export const listed = (...records: readonly StockRecord[]): Arrival => ({ type: 'list', tokens: listOf(...records) })
export const hearing: Arrival = { type: 'hearing', addresses: [APPLE as Hex, TESLA as Hex] }
export const status = (source: 'pendingLogs' | 'poll' | 'sealed' | 'down'): Arrival => ({
  type: 'status',
  source,
  reason: source === 'sealed' ? 'no_pending' : source === 'down' ? 'unreachable' : 'ok',
})

/** A teller at the end of a tape, and what it counts. */
export const restore = async (tape: Tape, clock = { now: NOON }, feeds: readonly FeedSetting[] = []) => {
  const counted = { repeated: 0, foreign: 0, unreadable: 0 }
  const teller = await Teller.restore({
    tape,
    staleMs: 93_600_000,
    feeds,
    now: () => clock.now,
    count: {
      repeated: () => {
        counted.repeated += 1
      },
      foreign: () => {
        counted.foreign += 1
      },
      unreadable: (n) => {
        counted.unreadable += n
      },
    },
  })
  const tell = async (...turn: readonly Arrival[]) => {
    const { drafts, notes } = teller.tell(turn)
    return tape.append(drafts, notes)
  }
  return { teller, counted, tell, clock }
}

/** Every update on a tape. */
export const updatesOf = async (tape: Tape): Promise<readonly Update[]> =>
  (await tape.since(0, 100_000)).map(({ update }) => update)

/** The keys told, in order, each as often as it was. */
export const keysOf = async (tape: Tape): Promise<readonly string[]> =>
  (await updatesOf(tape)).flatMap((update) => ('key' in update && 'stage' in update && update.key ? [update.key] : []))
