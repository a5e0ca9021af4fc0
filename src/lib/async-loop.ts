import { Observable, type SchedulerLike } from 'rxjs'

/** Ends after this time. Fails with the signal's reason if that is aborted before. */
export const wait = (ms: number, clock: SchedulerLike, signal: AbortSignal): Promise<void> =>
  untilCalled(signal, (done) => {
    const timer = clock.schedule(done, ms)
    return () => timer.unsubscribe()
  })

/** Wakes a loop that has nothing to do. The loop checks for work right before it waits, so no notification is lost. */
export class WakeUp {
  readonly #waiting = new Set<() => void>()

  notify(): void {
    for (const wake of [...this.#waiting]) wake()
  }

  /** Ends with the next notification. */
  wait(signal: AbortSignal): Promise<void> {
    return untilCalled(signal, (done) => {
      this.#waiting.add(done)
      return () => this.#waiting.delete(done)
    })
  }
}

/** Runs when it is subscribed to, and emits what `run` passes to `emit`. The end of the subscription aborts a run that goes on. */
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
      // Each abort creates an error with a stack.
      if (!isComplete) controller.abort()
    }
  })

/** Ends when `start` calls back. `start` returns what takes its call back. */
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
