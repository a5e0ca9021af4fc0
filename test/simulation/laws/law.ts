import type { Entry, Tape } from '../../../src/tape/tape.ts'
import type { Weather } from '../active-faults.ts'
import type { Chain } from '../simulated-chain.ts'
import type { ListModel } from '../simulated-list.ts'
import type { Settings } from '../simulation-settings.ts'
import type { Clock } from '../virtual-clock.ts'

/** A law that was broken, and how. */
export type Broken = { readonly law: string; readonly at: number; readonly said: string }

/** What a law may look at: the truth, and nothing of what the relay believes. */
export type Scene = {
  readonly settings: Settings
  readonly chain: Chain
  readonly list: ListModel
  readonly weather: Weather
  readonly clock: Clock
  /** The tape as it lies now. */
  readonly tape: () => Tape
  readonly broken: (law: string, said: string) => void
}

/** Something that must hold: of every turn that is written, at every moment, and at the end. */
export interface Law {
  turn?(entries: readonly Entry[]): void
  /** A moment passes; called at least every virtual second. */
  moment?(): void
  /** The relay begins a new life on the same tape. */
  born?(): void
  /** `recovered`: all faults stopped a minute ago. */
  end?(recovered: boolean): void
}
