import { nextTurn } from '../../../lib/turns.ts'
import { Refusal } from '../../../protocol/refusal.ts'

/** Limits of the long tape reads that run at a time: in total, and for one client. The queue refuses further reads. */
const [WORK_BOUND, WORK_PER_CLIENT_BOUND] = [64, 32]

/** Runs long work in slices, one per turn of the event loop over all callers, so that live listeners wait for one slice at most. */
export class LongWorkQueue {
  #last: Promise<unknown> = Promise.resolve()
  #running = 0
  readonly #runningByClient = new Map<string, number>()

  async run<Result>(client: string, work: () => Promise<Result>): Promise<Result> {
    if (this.#running >= WORK_BOUND || (this.#runningByClient.get(client) ?? 0) >= WORK_PER_CLIENT_BOUND) {
      throw new Refusal(503, 'busy', 'Too much of the tape is being read at once; retry in a moment.')
    }
    this.#count(client, 1)
    try {
      await this.nextSlice()
      return await work()
    } finally {
      this.#count(client, -1)
    }
  }

  #count(client: string, change: 1 | -1): void {
    this.#running += change
    const running = (this.#runningByClient.get(client) ?? 0) + change
    if (running > 0) this.#runningByClient.set(client, running)
    else this.#runningByClient.delete(client)
  }

  nextSlice(): Promise<unknown> {
    this.#last = this.#last.then(() => nextTurn())
    return this.#last
  }
}
