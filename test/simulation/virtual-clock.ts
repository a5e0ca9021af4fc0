import { type SchedulerAction, type SchedulerLike, Subscription } from 'rxjs'

/** When a simulation begins, unless its settings name a later second of this minute. */
export const NOON = Date.parse('2026-11-20T12:00:00Z')

type ActionCallback<T> = (this: SchedulerAction<T>, state?: T) => void

/** A scheduled action. It may schedule itself again, without growing. */
class ScheduledAction<T> extends Subscription implements SchedulerAction<T> {
  readonly #clock: VirtualClock
  readonly #callback: ActionCallback<T>
  #state: T | undefined
  #isScheduled = false
  dueAt = 0
  order = 0

  constructor(clock: VirtualClock, callback: ActionCallback<T>) {
    super()
    this.#clock = clock
    this.#callback = callback
  }

  schedule(state?: T, delay = 0): Subscription {
    if (this.closed) return this
    this.#state = state
    this.#isScheduled = true
    this.#clock.enqueue(this, delay)
    return this
  }

  /** Runs the action. Returns what it threw. */
  run(): unknown {
    this.#isScheduled = false
    try {
      this.#callback.call(this, this.#state as T)
    } catch (failure) {
      this.unsubscribe()
      return failure
    }
    if (!this.#isScheduled) this.unsubscribe()
    return undefined
  }

  override unsubscribe(): void {
    if (this.#isScheduled) this.#clock.waitingCount -= 1
    this.#isScheduled = false
    super.unsubscribe()
  }
}

const isDueBefore = (first: ScheduledAction<never>, second: ScheduledAction<never>): boolean =>
  first.dueAt < second.dueAt || (first.dueAt === second.dueAt && first.order < second.order)

/**
 * A clock that moves only when `step` is called; its time of day is the simulation's. (rxjs's own virtual scheduler
 * grows with every tick of an interval, and does not survive a simulated day.)
 */
export class VirtualClock implements SchedulerLike {
  /** A heap, the earliest action first. Cancelled actions stay until their time. */
  readonly #heap: ScheduledAction<never>[] = []
  readonly startsAt: number
  #enqueuedCount = 0
  elapsedMs = 0
  waitingCount = 0

  constructor(startsAt = NOON) {
    this.startsAt = startsAt
  }

  now(): number {
    return this.startsAt + Math.floor(this.elapsedMs)
  }

  /** When the next action is due, in milliseconds since the beginning; infinite where there is none. */
  get nextDueAt(): number {
    while (this.#heap[0]?.closed) this.#dequeue()
    return this.#heap[0]?.dueAt ?? Number.POSITIVE_INFINITY
  }

  schedule<T>(callback: ActionCallback<T>, delay = 0, state?: T): Subscription {
    return new ScheduledAction<T>(this, callback).schedule(state, delay)
  }

  enqueue<T>(scheduled: ScheduledAction<T>, delay: number): void {
    this.#enqueuedCount += 1
    this.waitingCount += 1
    scheduled.dueAt = this.elapsedMs + Math.max(0, delay)
    scheduled.order = this.#enqueuedCount
    const heap = this.#heap
    let index = heap.push(scheduled as unknown as ScheduledAction<never>) - 1
    for (let parent = (index - 1) >> 1; index > 0; parent = (index - 1) >> 1) {
      if (!this.#swapIfLater(parent, index)) break
      index = parent
    }
  }

  /** Runs one action. Returns what it threw. */
  step(): unknown {
    if (this.nextDueAt === Number.POSITIVE_INFINITY) return undefined
    const scheduled = this.#dequeue()
    if (!scheduled) return undefined
    this.elapsedMs = scheduled.dueAt
    this.waitingCount -= 1
    return scheduled.run()
  }

  /** Runs a callback later. The returned function cancels it. */
  runAfter(ms: number, scheduled: () => void): () => void {
    const action = this.schedule(scheduled, ms)
    return () => action.unsubscribe()
  }

  #dequeue(): ScheduledAction<never> | undefined {
    const heap = this.#heap
    const first = heap[0]
    const last = heap.pop()
    if (!last || heap.length === 0) return first
    heap[0] = last
    for (let index = 0; ; ) {
      const child = 2 * index + 1
      const least = child + 1 < heap.length && this.#isBefore(child + 1, child) ? child + 1 : child
      if (least >= heap.length || !this.#swapIfLater(index, least)) return first
      index = least
    }
  }

  #isBefore(first: number, second: number): boolean {
    const [a, b] = [this.#heap[first], this.#heap[second]]
    return a !== undefined && b !== undefined && isDueBefore(a, b)
  }

  /** Puts the earlier of two actions into the upper place. Returns whether that changed anything. */
  #swapIfLater(upper: number, lower: number): boolean {
    const [a, b] = [this.#heap[upper], this.#heap[lower]]
    if (!a || !b || isDueBefore(a, b)) return false
    this.#heap[upper] = b
    this.#heap[lower] = a
    return true
  }
}

/** Steps two clocks as one. The environment's goes first where both are due, so that an answer beats a timeout. */
export class SimulationClocks {
  readonly environment: VirtualClock
  readonly relay: VirtualClock

  constructor(startsAt?: number) {
    this.environment = new VirtualClock(startsAt)
    this.relay = new VirtualClock(startsAt)
  }

  get nextDueAt(): number {
    return Math.min(this.environment.nextDueAt, this.relay.nextDueAt)
  }

  step(): unknown {
    const [next, other] =
      this.environment.nextDueAt <= this.relay.nextDueAt ? [this.environment, this.relay] : [this.relay, this.environment]
    other.elapsedMs = next.nextDueAt
    return next.step()
  }
}
