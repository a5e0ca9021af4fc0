import type { SearchableTape } from '../../src/tape/tape.ts'
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
