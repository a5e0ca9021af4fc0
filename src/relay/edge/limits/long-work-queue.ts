import { nextTurn } from '../../../lib/turns.ts'
import { Budget } from './budget.ts'
import { busy } from './refusals.ts'

/** Limits of the long tape reads that run at a time: in total, and for one client. The queue refuses further reads. */
const [WORK_BOUND, WORK_PER_CLIENT_BOUND] = [64, 32]

/** Runs long work in slices, one per turn of the event loop over all callers, so that live listeners wait for one slice at most. */
export class LongWorkQueue {
  #last: Promise<unknown> = Promise.resolve()
  readonly #running = new Budget(WORK_BOUND, WORK_PER_CLIENT_BOUND)

  async run<Result>(client: string, work: () => Promise<Result>): Promise<Result> {
    if (!this.#running.reserve(1, client)) throw busy
    try {
      await this.nextSlice()
      return await work()
    } finally {
      this.#running.release(1, client)
    }
  }

  readonly nextSlice = (): Promise<unknown> => {
    this.#last = this.#last.then(() => nextTurn())
    return this.#last
  }
}
