/** Limit of the conditions that are watched at a time. */
const WATCHED_BOUND = 1_000

/** Lets others wait for a condition without polling: each call of `notify` checks it. */
export class ConditionWatchers {
  readonly #checks = new Set<() => void>()

  notify(): void {
    for (const check of [...this.#checks]) check()
  }

  /** Resolves to true when the condition is true, or to false after `withinMs`. Without it there is no limit. */
  until(condition: () => boolean, withinMs?: number): Promise<boolean> {
    if (this.#checks.size >= WATCHED_BOUND) throw new Error(`only ${WATCHED_BOUND} can wait at a time`)
    return new Promise((resolve) => {
      const finish = (isTrue: boolean) => {
        clearTimeout(timer)
        this.#checks.delete(check)
        resolve(isTrue)
      }
      const check = () => condition() && finish(true)
      const timer = withinMs === undefined ? undefined : setTimeout(() => finish(false), withinMs)
      this.#checks.add(check)
      check()
    })
  }
}
