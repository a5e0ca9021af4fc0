import type { ActiveFaults } from './active-faults.ts'
import type { Fault, FaultKind } from './fault-table.ts'
import type { RestartableTape } from './restartable-tape.ts'
import type { VirtualClock } from './virtual-clock.ts'

type Options = {
  readonly clock: VirtualClock
  readonly activeFaults: ActiveFaults
  readonly tape: RestartableTape
  readonly isRunning: () => boolean
  readonly start: () => void
  /** A relay that is stopped properly says goodbye to its clients. */
  readonly stop: (isGraceful: boolean) => void
}

/** What the tape holds after the relay ended in each of these ways. The relay is down as long as the fault lasts. */
const endings = {
  relayKilled: (tape: RestartableTape) => tape.kill(),
  relayStopped: (tape: RestartableTape) => tape.close(),
  powerLost: (tape: RestartableTape) => tape.losePower(),
} as const satisfies Partial<Record<FaultKind, (tape: RestartableTape) => void>>
const endingKinds = Object.keys(endings) as readonly (keyof typeof endings)[]

/** Ends the relay and starts it again as the faults ask. */
export class RelayRestarts {
  readonly #options: Options

  constructor(options: Options) {
    this.#options = options
    const { activeFaults, tape } = options
    for (const kind of endingKinds) {
      activeFaults.onsets(kind).subscribe((fault) => {
        this.#startLater(fault)
        this.#end(kind === 'relayStopped', () => endings[kind](tape))
      })
    }
    activeFaults.onsets('backupRestored').subscribe((fault) => this.#restoreBackup(fault))
  }

  #end(isGraceful: boolean, close: () => void): void {
    const { isRunning, stop } = this.#options
    if (!isRunning()) return
    stop(isGraceful)
    close()
  }

  #startLater({ for: downtimeMs }: Fault): void {
    this.#options.clock.runAfter(downtimeMs, () => this.#start())
  }

  /** A second fault may hit while the relay is down. The one that ends last starts the relay. */
  #start(): void {
    const { isRunning, activeFaults, tape, start } = this.#options
    if (isRunning() || endingKinds.some((kind) => activeFaults.isActive(kind))) return
    tape.reopen()
    start()
  }

  /** At its onset the relay is stopped, copied and started again. At its end the copy takes the place of the tape. */
  #restoreBackup({ for: ageMs }: Fault): void {
    const { tape, clock } = this.#options
    this.#end(true, () => tape.close())
    const restore = tape.backUp()
    this.#start()
    clock.runAfter(ageMs, () => {
      this.#end(true, () => tape.close())
      restore()
      this.#start()
    })
  }
}
