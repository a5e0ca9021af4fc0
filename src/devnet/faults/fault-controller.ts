import type { Hex } from '../../lib/hex.ts'
import type { TransactionOutcome } from '../chain/chain-types.ts'
import { type Faults, noFaults } from './faults.ts'

/** Limit of transactions that may be marked to be dropped, moved or changed. */
const OUTCOMES_BOUND = 10_000

/** Makes the faults, and the functions that decide by a counter whether a fault happens. */
export const createFaultController = (cutSockets: () => void) => {
  const outcomes = new Map<Hex, TransactionOutcome>()
  const counts = { dropEvery: 0, lagEvery: 0 }
  const setOutcome = (hash: Hex, outcome: TransactionOutcome) => {
    if (outcomes.size >= OUTCOMES_BOUND) throw new Error(`no more than ${OUTCOMES_BOUND} transactions can be marked`)
    outcomes.set(hash, outcome)
  }
  const faults: Faults = {
    ...noFaults,
    cutSockets,
    dropSockets: () => {
      faults.sockets = { status: 503 }
      cutSockets()
    },
    drop: (hash) => setOutcome(hash, 'dropped'),
    move: (hash) => setOutcome(hash, 'moved'),
    change: (hash, logs) => setOutcome(hash, { logs }),
    clear: () => {
      outcomes.clear()
      Object.assign(faults, noFaults)
    },
  }
  /** Returns true on every n-th call. If the fault is off it returns false, and the count restarts. */
  const isNth = (fault: keyof typeof counts, isOn = true): boolean => {
    counts[fault] = isOn && faults[fault] > 0 ? counts[fault] + 1 : 0
    return counts[fault] > 0 && counts[fault] % faults[fault] === 0
  }
  /** Lowers the counter of a fault by one. Returns false if the counter is 0. */
  const consume = (counter: 'lostFlashes' | 'emptyLogs' | 'missingByHash'): boolean => {
    if (faults[counter] <= 0) return false
    faults[counter] -= 1
    return true
  }
  return {
    faults,
    consume,
    outcomeOf: ({ hash }: { hash: Hex }): TransactionOutcome => {
      const outcome = outcomes.get(hash)
      outcomes.delete(hash)
      const isDropped = isNth('dropEvery')
      return outcome ?? (isDropped ? 'dropped' : 'kept')
    },
    isForLaggingReplica: (): boolean => {
      const isOn = faults.lagBlocks > 0
      return isNth('lagEvery', isOn) || (isOn && faults.lagEvery === 0)
    },
  }
}
export type FaultController = ReturnType<typeof createFaultController>
