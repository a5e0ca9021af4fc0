import { Observable, type SchedulerLike } from 'rxjs'

/** Rejects with the reason of the signal if it aborts first. */
export const wait = (ms: number, clock: SchedulerLike, signal: AbortSignal): Promise<void> =>
  untilCalled(signal, (done) => {
    const timer = clock.schedule(done, ms)
    return () => timer.unsubscribe()
  })

/** Wakes a loop that waits for work. The loop checks for work right before it waits, so it misses no notification. */
export class WakeUp {
  readonly #waiting = new Set<() => void>()

  notify(): void {
    for (const wake of [...this.#waiting]) wake()
  }

  wait(signal: AbortSignal): Promise<void> {
    return untilCalled(signal, (done) => {
      this.#waiting.add(done)
      return () => this.#waiting.delete(done)
    })
  }
}

/** A subscription starts `run`, which emits values with `emit`. The end of the subscription aborts a run that has not ended. */
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

/** Resolves when `start` calls `done`. The function that `start` returns cancels that call. */
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
