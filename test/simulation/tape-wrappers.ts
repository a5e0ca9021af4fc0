import { formatPosition } from '../../src/protocol/position.ts'
import type { Draft } from '../../src/protocol/updates.ts'
import type { SearchableTape, Tape } from '../../src/relay/tape/tape.ts'
import type { ActiveFaults } from './active-faults.ts'
import type { VirtualClock } from './virtual-clock.ts'

/** The same tape with some methods replaced. */
export const wrapTape = <Wrapped extends object>(tape: Wrapped, changes: Partial<Wrapped>): Wrapped =>
  new Proxy(tape, {
    get: (target, name) => {
      const own = Reflect.get(changes, name) ?? Reflect.get(target, name)
      return typeof own === 'function' ? own.bind(target) : own
    },
  })

/**
 * A tape that alters what is written. The ingest numbers its updates itself, and a lost or added one shifts all later numbers,
 * so an amendment or retraction names the update that really came before it.
 */
export function alterAppends(tape: Tape, alter: (drafts: readonly Draft[]) => readonly Draft[]): Tape {
  const lastSeqs = new Map<string, number>()
  return wrapTape(tape, {
    append: (drafts, notes, keepAfter) => {
      const namedByIngest = new Set(drafts.map((draft) => ('fact_id' in draft ? draft.fact_id : null)))
      const placed = alter(drafts).map((draft, index) => {
        const key = 'key' in draft ? draft.key : undefined
        const last = key && 'fact_id' in draft && namedByIngest.has(draft.fact_id) ? lastSeqs.get(key) : undefined
        if (key) lastSeqs.set(key, tape.next() + index)
        return last === undefined ? draft : { ...draft, fact_id: formatPosition(tape.epoch, last) }
      })
      return tape.append(placed, notes, keepAfter)
    },
  })
}

/**
 * A tape that is slow to write while the fault is active, as one over a network is. It stays fast while new blocks seem empty or a
 * token is delisted: settling does not know what waits to be written, and cannot doubt the node because of it.
 */
export const slowTape = (tape: SearchableTape, activeFaults: ActiveFaults, clock: VirtualClock): SearchableTape =>
  wrapTape(tape, {
    append: async (drafts, notes, keepAfter) => {
      const ms =
        activeFaults.isActive('lateIndexing') || activeFaults.isActive('tokenDelisted') ? null : activeFaults.amount('slowTape')
      if (ms !== null) await new Promise<void>((resolve) => clock.runAfter(ms, resolve))
      return tape.append(drafts, notes, keepAfter)
    },
  })
