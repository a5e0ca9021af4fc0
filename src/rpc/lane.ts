import { codes, Fault } from './fault.ts'

/** Whoever waited for longer has given up, or should. */
const WAIT_BOUND_MS = 10_000

const crowded = new Fault(codes.limit, 'too many questions wait for the upstream; come back in a moment', 503)

type Waiting = { readonly since: number; readonly go: () => void; readonly giveUp: (fault: Fault) => void }

/** Lets so many questions be under way at once, and so many others wait for their turn, in their order. */
export class Lane {
  readonly #bounds: { readonly atOnce: number; readonly waiting: number }
  readonly #uptime: () => number
  readonly #waiting: Waiting[] = []
  #underWay = 0

  constructor(bounds: { readonly atOnce: number; readonly waiting: number }, uptime: () => number) {
    this.#bounds = bounds
    this.#uptime = uptime
  }

  /** Asks when there is room; throws a `Fault` where there is none, or none in time. */
  async pass<Answer>(ask: () => Promise<Answer>): Promise<Answer> {
    if (this.#underWay < this.#bounds.atOnce) this.#underWay += 1
    else await this.#turn()
    try {
      return await ask()
    } finally {
      this.#next()
    }
  }

  #turn(): Promise<void> {
    if (this.#waiting.length >= this.#bounds.waiting) throw crowded
    return new Promise((go, giveUp) => this.#waiting.push({ since: this.#uptime(), go, giveUp }))
  }

  /** Whoever is through hands its place on. */
  #next(): void {
    for (;;) {
      const next = this.#waiting.shift()
      if (!next) break
      if (this.#uptime() - next.since < WAIT_BOUND_MS) return next.go()
      next.giveUp(crowded)
    }
    this.#underWay -= 1
  }
}
