import { filter, type Observable, Subject } from 'rxjs'
import type { Fault, FaultKind } from './fault-table.ts'
import type { Settings } from './simulation-settings.ts'
import type { VirtualClock } from './virtual-clock.ts'

/** The faults that are active now. */
export class ActiveFaults {
  readonly #clock: VirtualClock
  readonly #faults = new Map<FaultKind, Fault[]>()
  readonly #onsets = new Subject<Fault>()

  constructor(faults: readonly Fault[], clock: VirtualClock) {
    this.#clock = clock
    for (const fault of faults) {
      const same = this.#faults.get(fault.kind)
      if (same) same.push(fault)
      else this.#faults.set(fault.kind, [fault])
      clock.runAfter(fault.at, () => this.#onsets.next(fault))
    }
  }

  /** The largest amount among the active faults of a kind; null where none is active. */
  amount(kind: FaultKind): number | null {
    const now = this.#clock.elapsedMs
    let worst: number | null = null
    for (const { at, for: durationMs, amount } of this.#faults.get(kind) ?? []) {
      if (at <= now && now < at + durationMs && (worst === null || amount > worst)) worst = amount
    }
    return worst
  }

  isActive(kind: FaultKind): boolean {
    return this.amount(kind) !== null
  }

  /** When the active fault of a kind began that has lasted longest (ms since the start); null where none is active. */
  activeSince(kind: FaultKind): number | null {
    const now = this.#clock.elapsedMs
    const active = (this.#faults.get(kind) ?? []).filter((fault) => fault.at <= now && now < fault.at + fault.for)
    return active.length === 0 ? null : Math.min(...active.map(({ at }) => at))
  }

  /** Whether there is such a fault at any time. */
  occurs(kind: FaultKind): boolean {
    return this.#faults.has(kind)
  }

  /** Whether anything of this target goes wrong at any time. */
  occursAt(target: string): boolean {
    return [...this.#faults.values()].some((faults) => faults.some((fault) => fault.target === target))
  }

  /** Whether such a fault is active now, or was in the past `ms`. */
  wasActiveWithin(kind: FaultKind, ms: number): boolean {
    const now = this.#clock.elapsedMs
    return (this.#faults.get(kind) ?? []).some((fault) => fault.at <= now && fault.at + fault.for >= now - ms)
  }

  /** Whether no fault has been active for `ms`, apart from those that do not count: the list's, and a wall clock that is wrong. */
  isQuietFor(ms: number, counts = ({ target }: Fault): boolean => target !== 'list' && target !== 'clock'): boolean {
    const now = this.#clock.elapsedMs
    return [...this.#faults.values()].every((faults) =>
      faults.every((fault) => !counts(fault) || fault.at > now || fault.at + fault.for < now - ms),
    )
  }

  /** The faults of a kind, each when it begins. */
  onsets(kind: FaultKind): Observable<Fault> {
    return this.#onsets.pipe(filter((fault) => fault.kind === kind))
  }
}

/** The faults that an endpoint has: the first has all of them, the others may have none of their own. */
export const faultsOfEndpoint = (faults: readonly Fault[], { othersHealthy = false }: Settings, nth: number): readonly Fault[] =>
  faults.filter(({ kind, target, amount }) => {
    if (nth > 0 && othersHealthy && (target === 'socket' || target === 'rpc')) return false
    return kind !== 'endpointFrozen' || amount === nth
  })
