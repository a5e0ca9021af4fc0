import { performance } from 'node:perf_hooks'
import { concat, concatMap, from, type OperatorFunction } from 'rxjs'

/** Time after which long work pauses, so that other work gets a turn of the event loop. */
export const TURN_MS = 8

export const nextTurn = (): Promise<unknown> => new Promise((resolve) => setImmediate(resolve))

/** Work that may pause at each `yield`. Each step is short. */
export type Steps<Result> = Generator<void, Result>

export function runAtOnce<Result>(steps: Steps<Result>): Result {
  for (;;) {
    const { done, value } = steps.next()
    if (done) return value
  }
}

/** Runs steps until a turn has passed. Returns null if steps are left. */
export function runForTurn<Result>(steps: Steps<Result>): { readonly result: Result } | null {
  const startedAt = performance.now()
  do {
    const { done, value } = steps.next()
    if (done) return { result: value }
  } while (performance.now() - startedAt < TURN_MS)
  return null
}

export async function runInTurns<Result>(steps: Steps<Result>): Promise<Result> {
  for (;;) {
    const done = runForTurn(steps)
    if (done) return done.result
    await nextTurn()
  }
}

/** Runs steps, and pauses after each `stepsPerTurn` of them. */
export async function runCounted<Result>(
  steps: Steps<Result>,
  stepsPerTurn: number,
  pause: () => Promise<unknown>,
): Promise<Result> {
  for (let count = 1; ; count += 1) {
    const { done, value } = steps.next()
    if (done) return value
    if (count % stepsPerTurn === 0) await pause()
  }
}

/** Emits the first part of an item at once, and each other part in its own turn, so that no item blocks the event loop. */
export const inTurns = <Item, Part>(partsOf: (item: Item) => readonly Part[]): OperatorFunction<Item, Part> =>
  concatMap((item) => {
    const parts = partsOf(item)
    // Most items have one part. A list is cheaper than a subscription to an Observable of one part.
    return parts.length === 1
      ? [...parts]
      : from(parts).pipe(concatMap((part, index) => (index === 0 ? [part] : nextTurn().then(() => part))))
  })

/**
 * Emits the values that the steps of an item yield and return. Each value but the first is made in its own turn, and what
 * follows an item of several values is too.
 */
export const stepsInTurns = <Item, Part>(stepsOf: (item: Item) => Generator<Part, Part>): OperatorFunction<Item, Part> =>
  concatMap((item) => {
    const steps = stepsOf(item)
    const { done, value } = steps.next()
    return done ? [value] : concat([value], remaining(steps))
  })

async function* remaining<Part>(steps: Generator<Part, Part>): AsyncGenerator<Part> {
  for (;;) {
    await nextTurn()
    const { done, value } = steps.next()
    yield value
    if (done) break
  }
  await nextTurn()
}

export const chunk = <Item>(all: readonly Item[], size: number): readonly (readonly Item[])[] =>
  Array.from({ length: Math.ceil(all.length / size) }, (_, index) => all.slice(index * size, (index + 1) * size))
