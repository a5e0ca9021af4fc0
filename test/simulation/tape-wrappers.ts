import { formatPosition } from '../../src/protocol/position.ts'
import type { Draft } from '../../src/protocol/updates.ts'
import type { IngestInputs } from '../../src/relay/ingest/open-ingest.ts'
import type { TapeWriter } from '../../src/relay/tape/tape.ts'
import type { ActiveFaults } from './active-faults.ts'
import type { VirtualClock } from './virtual-clock.ts'

/** Returns a copy of a tape or a writer with some parts replaced. */
export const wrap = <Wrapped extends object>(wrapped: Wrapped, changes: Partial<Wrapped>): Wrapped =>
  new Proxy(wrapped, {
    get: (target, name) => {
      const own = Reflect.get(changes, name) ?? Reflect.get(target, name)
      return typeof own === 'function' ? own.bind(target) : own
    },
  })

/**
 * A writer that alters what is written. The ingest numbers its updates itself, and a lost or added one shifts all later numbers,
 * so an amendment or retraction names the update that really came before it.
 */
export function alterAppends(
  { tape, writer }: Pick<IngestInputs, 'tape' | 'writer'>,
  alter: (drafts: readonly Draft[]) => readonly Draft[],
): TapeWriter {
  const lastSeqs = new Map<string, number>()
  return wrap(writer, {
    append: (batch) => {
      const { updates: drafts } = batch
      const first = tape.next
      const namedByIngest = new Set(drafts.map((draft) => ('fact_id' in draft ? draft.fact_id : null)))
      const updates = alter(drafts).map((draft, index) => {
        const key = 'key' in draft ? draft.key : undefined
        const last = key && 'fact_id' in draft && namedByIngest.has(draft.fact_id) ? lastSeqs.get(key) : undefined
        if (key) lastSeqs.set(key, first + index)
        return last === undefined ? draft : { ...draft, fact_id: formatPosition(tape.epoch, last) }
      })
      return writer.append({ ...batch, first, updates })
    },
  })
}

/**
 * A writer that is slow while the fault is active, as one over a network is. It stays fast while new blocks seem empty or a
 * token is delisted: settling does not know what waits to be written, and cannot doubt the node because of it.
 */
export const slowWriter = (writer: TapeWriter, activeFaults: ActiveFaults, clock: VirtualClock): TapeWriter =>
  wrap(writer, {
    append: async (batch) => {
      const ms =
        activeFaults.isActive('lateIndexing') || activeFaults.isActive('tokenDelisted') ? null : activeFaults.amount('slowTape')
      if (ms !== null) await new Promise<void>((resolve) => clock.runAfter(ms, resolve))
      return writer.append(batch)
    },
  })
