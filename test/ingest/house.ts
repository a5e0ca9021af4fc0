import { type Log, readLogs } from '../../src/chain/log.ts'
import type { Heard } from '../../src/chain/source.ts'
import { type Arrival, Teller } from '../../src/ingest/teller.ts'
import type { Ingest } from '../../src/protocol/parts.ts'
import type { Update } from '../../src/protocol/updates.ts'
import type { Tape } from '../../src/tape/tape.ts'
import { pendingLog, sealedLog } from '../chain/wire.ts'
import { listOf, NOON, type StockRecord } from '../stocks/records.ts'

type Place = { readonly block: number; readonly index?: number; readonly address?: `0x${string}` }

const logOf = (wire: Record<string, unknown>): Log => {
  const [log] = readLogs(wire).logs
  if (!log) throw new Error('no log')
  return log
}

/** A log on its way down the river, pre-confirmed or sealed. */
export const logHeard = (
  place: Place,
  {
    via = 'pendingLogs',
    sealed = false,
    ...overrides
  }: { via?: Ingest['source']; sealed?: boolean } & Partial<Log> = {},
): Extract<Heard, { type: 'log' }> => ({
  type: 'log',
  log: { ...logOf(sealed ? sealedLog(place) : pendingLog(place)), ...overrides },
  via,
  sealed,
  receivedAt: NOON,
})

export const listed = (...records: readonly StockRecord[]): Arrival => ({ type: 'list', tokens: listOf(...records) })

/** A teller at the end of a tape, and what it counts. */
export const restore = async (tape: Tape, clock = { now: NOON }) => {
  const counted = { repeated: 0, foreign: 0, unreadable: 0 }
  const teller = await Teller.restore({
    tape,
    staleMs: 93_600_000,
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
  (await updatesOf(tape)).flatMap((update) => ('key' in update && update.key ? [update.key] : []))
