/** Runs a limited number of tasks per turn of the event loop, so that a crowd of new connections does not delay listeners. */
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
