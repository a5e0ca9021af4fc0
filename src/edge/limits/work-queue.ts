import { setImmediate as yieldToEventLoop } from 'node:timers/promises'
import { Refusal } from '../../protocol/refusal.ts'

/** Pieces of long work that may be under way at once; who comes then is asked to come back. */
const WORK_BOUND = 64

/**
 * Lets long work go on slice by slice, one slice in a turn of the event loop, whoever's it is: so those who listen live
 * wait for one slice and never for all that is asked at once.
 */
export class WorkQueue {
  #last: Promise<unknown> = Promise.resolve()
  #running = 0

  /** Does a piece of work, unless there is too much of it. */
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

  /** Resolves when it is the next slice's turn. */
  nextSlice(): Promise<unknown> {
    this.#last = this.#last.then(() => yieldToEventLoop())
    return this.#last
  }
}
