/** Numbers by name. `SharedUsage` has those of all processes that serve one port. */
export interface UsageCounts {
  count(name: string): number
  change(name: string, delta: number): void
  /** Runs a check, and the change that depends on it, without a change by another process in between. */
  exclusively<Result>(run: () => Result): Result
}

/** The numbers of one process. */
export class LocalCounts implements UsageCounts {
  readonly #counts = new Map<string, number>()

  count(name: string): number {
    return this.#counts.get(name) ?? 0
  }

  change(name: string, delta: number): void {
    const count = this.count(name) + delta
    if (count > 0) this.#counts.set(name, count)
    else this.#counts.delete(name)
  }

  exclusively<Result>(run: () => Result): Result {
    return run()
  }
}
