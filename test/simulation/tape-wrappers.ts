import type { SearchableTape } from '../../src/tape/tape.ts'
import type { ActiveFaults } from './active-faults.ts'
import type { VirtualClock } from './virtual-clock.ts'

/** The same tape, but for some of its methods. */
export const wrapTape = <Wrapped extends object>(tape: Wrapped, changes: Partial<Wrapped>): Wrapped =>
  new Proxy(tape, {
    get: (target, name) => {
      const own = Reflect.get(changes, name) ?? Reflect.get(target, name)
      return typeof own === 'function' ? own.bind(target) : own
    },
  })

/**
 * A tape that takes its time to write while the weather says so, as one over a network does. Not while new blocks seem
 * empty or a token is delisted: a settling does not know what waits to be written, so it cannot ask or doubt because of it.
 */
export const slowTape = (tape: SearchableTape, activeFaults: ActiveFaults, clock: VirtualClock): SearchableTape =>
  wrapTape(tape, {
    append: async (drafts, notes) => {
      const ms =
        activeFaults.isActive('unindexed') || activeFaults.isActive('delisted') ? null : activeFaults.amount('slowTape')
      if (ms !== null) await new Promise<void>((resolve) => clock.runAfter(ms, resolve))
      return tape.append(drafts, notes)
    },
  })
