/**
 * Does so many things in one turn of the event loop and the others in the next ones, in their order, so that whoever hears
 * already does not wait for a crowd that comes in. What waits is bounded by whoever brings it.
 */
export class Pace {
  readonly #atOnce: number
  readonly #waiting: (() => void)[] = []
  #done = 0

  constructor(atOnce: number) {
    this.#atOnce = atOnce
  }

  do(thing: () => void): void {
    if (this.#done === 0) setImmediate(() => this.#next())
    if (this.#done >= this.#atOnce) this.#waiting.push(thing)
    else {
      this.#done += 1
      thing()
    }
  }

  #next(): void {
    this.#done = 0
    for (const thing of this.#waiting.splice(0, this.#atOnce)) this.do(thing)
  }
}
