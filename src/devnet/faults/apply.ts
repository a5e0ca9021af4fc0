import type { TransactionOutcome } from '../chain/block.ts'
import type { HexString } from '../chain/hex.ts'
import { type Faults, noFaults } from './faults.ts'

/** How many transactions may be named to be dropped, moved or changed. */
const OUTCOMES_BOUND = 10_000

/** The weather, and what the rest of the devnet asks of it where that is more than to look. */
export const createFaultController = (cutSockets: () => void) => {
  const outcomes = new Map<HexString, TransactionOutcome>()
  const [isNthFlashblock, isNthTransaction, isNthSeal, isNthRequest] = [
    createNthCounter(),
    createNthCounter(),
    createNthCounter(),
    createNthCounter(),
  ]
  const setOutcome = (hash: HexString, outcome: TransactionOutcome) => {
    if (outcomes.size >= OUTCOMES_BOUND) throw new Error(`no more than ${OUTCOMES_BOUND} transactions can be named`)
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
  /** Whether there is one left of those that were ordered; then there is one less. */
  const consume = (counter: 'lostFlashes' | 'emptyLogs' | 'missingByHash'): boolean => {
    if (faults[counter] <= 0) return false
    faults[counter] -= 1
    return true
  }
  return {
    faults,
    consume,
    /** What becomes of a transaction. */
    outcomeOf: ({ hash }: { hash: HexString }): TransactionOutcome => {
      const outcome = outcomes.get(hash)
      outcomes.delete(hash)
      const isDropped = isNthTransaction(faults.dropEvery)
      return outcome ?? (isDropped ? 'dropped' : 'kept')
    },
    /** Whether a flashblock is lost on its way to the subscribers. */
    losesFlashblock: (): boolean => {
      const isLost = isNthFlashblock(faults.loseEvery)
      return consume('lostFlashes') || isLost
    },
    /** Whether the block that was just sealed, and those before it, are replaced. */
    shouldReorg: (): boolean => isNthSeal(faults.reorgEvery),
    /** Whether a request over HTTP comes to the replica that lags. */
    isForLaggingReplica: (): boolean => {
      const isOn = faults.lagBlocks > 0
      const isNth = isNthRequest(isOn ? faults.lagEvery : 0)
      return isOn && (faults.lagEvery === 0 || isNth)
    },
  }
}
export type FaultController = ReturnType<typeof createFaultController>

/** Says yes every so many-th time that it is asked; 0 is never, and lets it begin to count anew. */
const createNthCounter = () => {
  let count = 0
  return (every: number): boolean => {
    count = every > 0 ? count + 1 : 0
    return every > 0 && count % every === 0
  }
}
