import { codes, Fault } from './rpc-error.ts'

/** Whoever waited for longer has given up, or should. */
const WAIT_BOUND_MS = 10_000

const crowded = new Fault(codes.limit, 'too many questions wait for the upstream; come back in a moment', 503)

type Waiting = { readonly since: number; readonly go: () => void; readonly giveUp: (fault: Fault) => void }

/** Lets so many questions be under way at once, and so many others wait: whoever asks has its turn in turn. */
export class Lane {
  readonly #bounds: { readonly atOnce: number; readonly waiting: number }
  readonly #uptime: () => number
  /** Those who wait, by who asks; whose turn it is stands first. */
  readonly #rows = new Map<string, Waiting[]>()
  #waiting = 0
  #underWay = 0

  constructor(bounds: { readonly atOnce: number; readonly waiting: number }, uptime: () => number) {
    this.#bounds = bounds
    this.#uptime = uptime
  }

  /** Asks when there is room; throws a `Fault` where there is none, or none in time. */
  async pass<Answer>(ask: () => Promise<Answer>, who: string): Promise<Answer> {
    if (this.#underWay < this.#bounds.atOnce) this.#underWay += 1
    else await this.#turn(who)
    try {
      return await ask()
    } finally {
      this.#next()
    }
  }

  #turn(who: string): Promise<void> {
    const row = this.#rows.get(who) ?? []
    if (this.#waiting >= this.#bounds.waiting) this.#makeRoom(row.length)
    this.#rows.set(who, row)
    this.#waiting += 1
    return new Promise((go, giveUp) => row.push({ since: this.#uptime(), go, giveUp }))
  }

  /** Whoever has most waiting gives a place up to one who has less. */
  #makeRoom(has: number): void {
    const longest = [...this.#rows.values()].reduce((one, other) => (other.length > one.length ? other : one), [])
    if (longest.length <= has + 1) throw crowded
    longest.pop()?.giveUp(crowded)
    this.#waiting -= 1
  }

  /** Whoever is through hands its place on. */
  #next(): void {
    for (const [who, row] of this.#rows) {
      this.#rows.delete(who)
      for (let next = row.shift(); next; next = row.shift()) {
        this.#waiting -= 1
        if (this.#uptime() - next.since >= WAIT_BOUND_MS) {
          next.giveUp(crowded)
          continue
        }
        // The others of this row wait until all other rows had their turn.
        if (row.length > 0) this.#rows.set(who, row)
        return next.go()
      }
    }
    this.#underWay -= 1
  }
}
