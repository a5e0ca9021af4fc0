import { filter, type Observable, Subject } from 'rxjs'
import type { Fault, Kind } from './fault-table.ts'
import type { Clock } from './virtual-clock.ts'

/** Which faults there are now. */
export class Weather {
  readonly #clock: Clock
  readonly #faults = new Map<Kind, Fault[]>()
  readonly #onsets = new Subject<Fault>()

  constructor(faults: readonly Fault[], clock: Clock) {
    this.#clock = clock
    for (const fault of faults) {
      const same = this.#faults.get(fault.kind)
      if (same) same.push(fault)
      else this.#faults.set(fault.kind, [fault])
      clock.after(fault.at, () => this.#onsets.next(fault))
    }
  }

  /** The worst amount of a fault that is going on, or null where none is. */
  amount(kind: Kind): number | null {
    const now = this.#clock.frame
    let worst: number | null = null
    for (const { at, for: lasting, amount } of this.#faults.get(kind) ?? []) {
      if (at <= now && now < at + lasting && (worst === null || amount > worst)) worst = amount
    }
    return worst
  }

  is(kind: Kind): boolean {
    return this.amount(kind) !== null
  }

  /** Whether there was such a fault at some time in the past `ms`, or is now. */
  lately(kind: Kind, ms: number): boolean {
    const now = this.#clock.frame
    return (this.#faults.get(kind) ?? []).some((fault) => fault.at <= now && fault.at + fault.for >= now - ms)
  }

  /** Whether nothing has gone wrong for so long, the list aside. */
  calm(ms: number): boolean {
    const now = this.#clock.frame
    for (const faults of this.#faults.values()) {
      for (const { at, for: lasting, target } of faults) {
        if (target !== 'list' && at <= now && at + lasting >= now - ms) return false
      }
    }
    return true
  }

  /** The faults of a kind, each as it begins. */
  onsets(kind: Kind): Observable<Fault> {
    return this.#onsets.pipe(filter((fault) => fault.kind === kind))
  }
}
