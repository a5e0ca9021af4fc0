import type { Entry, Tape } from '../../../src/relay/tape/tape.ts'
import type { ActiveFaults } from '../active-faults.ts'
import type { SimulatedChain } from '../simulated-chain.ts'
import type { SimulatedList } from '../simulated-list.ts'
import type { SimulatedPool } from '../simulated-pools.ts'
import type { Settings } from '../simulation-settings.ts'
import type { VirtualClock } from '../virtual-clock.ts'

/** A broken law, and how it was broken. */
export type Violation = { readonly law: string; readonly at: number; readonly detail: string }

/** What a law may read: the truth, and nothing that the relay believes. */
export type LawContext = {
  readonly settings: Settings
  readonly chain: SimulatedChain
  readonly list: SimulatedList
  readonly activeFaults: ActiveFaults
  readonly clock: Pick<VirtualClock, 'elapsedMs' | 'now'>
  /** When the relay last connected to a node that pushes: what an earlier connection pushed proves nothing about the new one. */
  readonly connectedAt: () => number
  /** When a log of the pool manager that the relay asks for last reached it before it could know its block as sealed. */
  readonly managerPushedAt: () => number
  /** The same for an event of a pool that is no swap: it shows that the source works, though it is no fact. */
  readonly otherEventPushedAt: () => number
  /** Whether another chain answered in the past `ms`, from an endpoint that did not tell the relay so. */
  readonly wasOfUnnamedChainWithin: (ms: number) => boolean
  /** The pools that the settings of the relay name in its current run. */
  readonly namedPools: () => readonly SimulatedPool[]
  /** The current tape. */
  readonly tape: () => Tape
  readonly violation: (law: string, detail: string) => void
}

/** A rule that must hold for every batch, at every moment, and at the end. */
export interface Law {
  onBatch?(entries: readonly Entry[]): void
  /** Called at least once per virtual second. */
  onTick?(): void
  /** The relay starts a new run on the same tape. */
  onRelayStart?(): void
  /** `recovered`: all faults ended a minute ago. */
  onEnd?(recovered: boolean): void
}
