import { Observable, type SchedulerLike } from 'rxjs'

/** Resolves after this time. Rejects with the reason of the signal if the signal aborts before. */
export const wait = (ms: number, clock: SchedulerLike, signal: AbortSignal): Promise<void> =>
  untilCalled(signal, (done) => {
    const timer = clock.schedule(done, ms)
    return () => timer.unsubscribe()
  })

/** Wakes loops that wait for work: `repeatStep` misses no call of `notify`, even if it is made during a step. */
export class WakeUp {
  readonly #waiting = new Set<() => void>()
  #count = 0

  /** Number of calls of `notify` so far. */
  get count(): number {
    return this.#count
  }

  notify(): void {
    this.#count += 1
    for (const wake of [...this.#waiting]) wake()
  }

  wait(signal: AbortSignal): Promise<void> {
    return untilCalled(signal, (done) => {
      this.#waiting.add(done)
      return () => this.#waiting.delete(done)
    })
  }
}

type RepeatOptions = { readonly clock: SchedulerLike; readonly signal: AbortSignal; readonly wakeUp?: WakeUp }

/** Repeats a step without end. The step returns the delay before the next one in milliseconds, or null to wait for `wakeUp`. */
export async function repeatStep(
  step: () => Promise<number | null>,
  { clock, signal, wakeUp = new WakeUp() }: RepeatOptions,
): Promise<never> {
  for (;;) {
    const { count } = wakeUp
    const delayMs = await step()
    if (delayMs === null) {
      if (wakeUp.count === count) await wakeUp.wait(signal)
    } else if (delayMs > 0) await wait(delayMs, clock, signal)
  }
}

/** Makes an Observable that starts `run` at each subscription. Unsubscribing aborts `run`, unless it has resolved. */
export const observe = <T>(run: (emit: (value: T) => void, signal: AbortSignal) => Promise<unknown>): Observable<T> =>
  new Observable((subscriber) => {
    const controller = new AbortController()
    let isComplete = false
    run((value) => subscriber.next(value), controller.signal).then(
      () => {
        isComplete = true
        subscriber.complete()
      },
      (failure: unknown) => subscriber.error(failure),
    )
    return () => {
      // An abort is expensive: it creates an error with a stack.
      if (!isComplete) controller.abort()
    }
  })

/** Resolves when `done` is called. `start` schedules that call, and returns a function that cancels it. */
const untilCalled = (signal: AbortSignal, start: (done: () => void) => () => void): Promise<void> =>
  new Promise((resolve, reject) => {
    if (signal.aborted) return reject(signal.reason)
    const stop = start(() => finish(resolve))
    const abort = () => finish(() => reject(signal.reason))
    const finish = (end: () => void) => {
      stop()
      signal.removeEventListener('abort', abort)
      end()
    }
    signal.addEventListener('abort', abort)
  })
