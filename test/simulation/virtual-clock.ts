import { type SchedulerAction, type SchedulerLike, Subscription } from 'rxjs'

/** When every world begins. */
export const NOON = Date.parse('2026-11-20T12:00:00Z')

type Work<T> = (this: SchedulerAction<T>, state?: T) => void

/** Something that waits for its time; done again and again where it asks to be, without growing. */
class Act<T> extends Subscription implements SchedulerAction<T> {
  readonly #clock: Clock
  readonly #work: Work<T>
  #state: T | undefined
  #waits = false
  at = 0
  nth = 0

  constructor(clock: Clock, work: Work<T>) {
    super()
    this.#clock = clock
    this.#work = work
  }

  schedule(state?: T, delay = 0): Subscription {
    if (this.closed) return this
    this.#state = state
    this.#waits = true
    this.#clock.put(this, delay)
    return this
  }

  /** Does it; answers what it threw. */
  do(): unknown {
    this.#waits = false
    try {
      this.#work.call(this, this.#state as T)
    } catch (failure) {
      this.unsubscribe()
      return failure
    }
    if (!this.#waits) this.unsubscribe()
    return undefined
  }

  override unsubscribe(): void {
    if (this.#waits) this.#clock.waiting -= 1
    this.#waits = false
    super.unsubscribe()
  }
}

const before = (one: Act<never>, other: Act<never>): boolean =>
  one.at < other.at || (one.at === other.at && one.nth < other.nth)

/**
 * A clock that moves only when it is told to; its time of day is the world's. (The one that rxjs ships grows with every
 * tick of an interval, which no simulated day survives.)
 */
export class Clock implements SchedulerLike {
  /** A heap: the first is due first. What was called off stays in it until its time. */
  readonly #heap: Act<never>[] = []
  #count = 0
  frame = 0
  waiting = 0

  now(): number {
    return NOON + Math.floor(this.frame)
  }

  /** When the next action is due, in milliseconds since the beginning; never is infinite. */
  get due(): number {
    while (this.#heap[0]?.closed) this.#take()
    return this.#heap[0]?.at ?? Number.POSITIVE_INFINITY
  }

  schedule<T>(work: Work<T>, delay = 0, state?: T): Subscription {
    return new Act<T>(this, work).schedule(state, delay)
  }

  put<T>(act: Act<T>, delay: number): void {
    this.#count += 1
    this.waiting += 1
    act.at = this.frame + Math.max(0, delay)
    act.nth = this.#count
    const heap = this.#heap
    let place = heap.push(act as unknown as Act<never>) - 1
    for (let parent = (place - 1) >> 1; place > 0; parent = (place - 1) >> 1) {
      if (!this.#swapIfLater(parent, place)) break
      place = parent
    }
  }

  /** Does one action; answers what it threw. */
  step(): unknown {
    if (this.due === Number.POSITIVE_INFINITY) return undefined
    const act = this.#take()
    if (!act) return undefined
    this.frame = act.at
    this.waiting -= 1
    return act.do()
  }

  /** Does something after a while; the answer takes it back. */
  after(ms: number, act: () => void): () => void {
    const action = this.schedule(act, ms)
    return () => action.unsubscribe()
  }

  #take(): Act<never> | undefined {
    const heap = this.#heap
    const first = heap[0]
    const last = heap.pop()
    if (!last || heap.length === 0) return first
    heap[0] = last
    for (let place = 0; ; ) {
      const child = 2 * place + 1
      const least = child + 1 < heap.length && this.#isBefore(child + 1, child) ? child + 1 : child
      if (least >= heap.length || !this.#swapIfLater(place, least)) return first
      place = least
    }
  }

  #isBefore(one: number, other: number): boolean {
    const [a, b] = [this.#heap[one], this.#heap[other]]
    return a !== undefined && b !== undefined && before(a, b)
  }

  /** Puts the earlier of two in the upper place; whether that changed anything. */
  #swapIfLater(upper: number, lower: number): boolean {
    const [a, b] = [this.#heap[upper], this.#heap[lower]]
    if (!a || !b || before(a, b)) return false
    this.#heap[upper] = b
    this.#heap[lower] = a
    return true
  }
}

/** Steps two clocks as one: the world's goes first where both are due, so that an answer meets a timeout. */
export class Clocks {
  readonly world = new Clock()
  readonly relay = new Clock()

  get due(): number {
    return Math.min(this.world.due, this.relay.due)
  }

  step(): unknown {
    const [next, other] = this.world.due <= this.relay.due ? [this.world, this.relay] : [this.relay, this.world]
    other.frame = next.due
    return next.step()
  }
}
