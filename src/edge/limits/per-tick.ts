/**
 * Does so many things in one turn of the event loop and the others in the next ones, in their order, so that whoever hears
 * already does not wait for a crowd that comes in. What waits is bounded by whoever brings it.
 */
export class PerTickQueue {
  readonly #perTick: number
  readonly #waiting: (() => void)[] = []
  #doneThisTick = 0

  constructor(perTick: number) {
    this.#perTick = perTick
  }

  run(task: () => void): void {
    if (this.#doneThisTick === 0) setImmediate(() => this.#runNext())
    if (this.#doneThisTick >= this.#perTick) this.#waiting.push(task)
    else {
      this.#doneThisTick += 1
      task()
    }
  }

  #runNext(): void {
    this.#doneThisTick = 0
    for (const task of this.#waiting.splice(0, this.#perTick)) this.run(task)
  }
}
