import { Refusal } from '../../protocol/refusal.ts'
import { nextTurn } from '../../turns.ts'

/** Long tape reads that may run at once; more are refused. */
const WORK_BOUND = 64

/**
 * Runs long work in slices, one slice per turn of the event loop over all callers. Live listeners therefore wait for
 * one slice at most, however many long reads run.
 */
export class WorkQueue {
  #last: Promise<unknown> = Promise.resolve()
  #running = 0

  /** Runs a piece of work; refuses when too many run already. */
  async run<Result>(work: () => Promise<Result>): Promise<Result> {
    if (this.#running >= WORK_BOUND) {
      throw new Refusal(503, 'busy', 'Too much of the tape is being read at once; come back in a moment.')
    }
    this.#running += 1
    try {
      await this.nextSlice()
      return await work()
    } finally {
      this.#running -= 1
    }
  }

  /** Resolves when the next slice may run. */
  nextSlice(): Promise<unknown> {
    this.#last = this.#last.then(() => nextTurn())
    return this.#last
  }
}
