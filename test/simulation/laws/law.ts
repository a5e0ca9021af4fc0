import type { Entry, Tape } from '../../../src/tape/tape.ts'
import type { ActiveFaults } from '../active-faults.ts'
import type { SimulatedChain } from '../simulated-chain.ts'
import type { SimulatedList } from '../simulated-list.ts'
import type { Settings } from '../simulation-settings.ts'
import type { VirtualClock } from '../virtual-clock.ts'

/** A law that was broken, and how. */
export type Violation = { readonly law: string; readonly at: number; readonly detail: string }

/** What a law may look at: the truth, and nothing of what the relay believes. */
export type LawContext = {
  readonly settings: Settings
  readonly chain: SimulatedChain
  readonly list: SimulatedList
  readonly activeFaults: ActiveFaults
  readonly clock: VirtualClock
  /** The tape as it lies now. */
  readonly tape: () => Tape
  readonly violation: (law: string, said: string) => void
}

/** Something that must hold: of every turn that is written, at every moment, and at the end. */
export interface Law {
  onBatch?(entries: readonly Entry[]): void
  /** A moment passes; called at least every virtual second. */
  onTick?(): void
  /** The relay begins a new life on the same tape. */
  onRelayStart?(): void
  /** `recovered`: all faults stopped a minute ago. */
  onEnd?(recovered: boolean): void
}
