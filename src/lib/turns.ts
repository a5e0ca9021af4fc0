import { performance } from 'node:perf_hooks'
import { concat, concatMap, from, type OperatorFunction } from 'rxjs'

/** Work in turns gives way to others after this time. */
export const TURN_MS = 8

/** Resolves in the next turn of the event loop. */
export const nextTurn = (): Promise<unknown> => new Promise((resolve) => setImmediate(resolve))

/** Work that may pause wherever it yields. Each step is short. */
export type Steps<Result> = Generator<void, Result>

export function runAtOnce<Result>(steps: Steps<Result>): Result {
  for (;;) {
    const { done, value } = steps.next()
    if (done) return value
  }
}

/** Runs steps until they took long enough for one turn of the event loop. Returns the result, or null if steps are left. */
export function runForTurn<Result>(steps: Steps<Result>): { readonly result: Result } | null {
  const startedAt = performance.now()
  do {
    const { done, value } = steps.next()
    if (done) return { result: value }
  } while (performance.now() - startedAt < TURN_MS)
  return null
}

/** Runs steps, and pauses between turns where they take long. */
export async function runInTurns<Result>(steps: Steps<Result>, pause: () => Promise<unknown> = nextTurn): Promise<Result> {
  for (;;) {
    const done = runForTurn(steps)
    if (done) return done.result
    await pause()
  }
}

/** Emits the parts of each item: the first at once, and each other in a turn of its own, so that no item holds the event loop. */
export const inTurns = <Item, Part>(partsOf: (item: Item) => readonly Part[]): OperatorFunction<Item, Part> =>
  concatMap((item) => {
    const parts = partsOf(item)
    // Most items have one part, which then takes no subscription of its own.
    return parts.length === 1 ? [...parts] : from(parts).pipe(concatMap((part, index) => (index === 0 ? [part] : afterTurn(part))))
  })

/** Emits what the steps of each item yield and return: the first at once, and each other made in a turn of its own. */
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
    if (done) return
  }
}

const afterTurn = async <Part>(part: Part): Promise<Part> => {
  await nextTurn()
  return part
}

export const chunk = <Item>(all: readonly Item[], size: number): readonly (readonly Item[])[] =>
  Array.from({ length: Math.ceil(all.length / size) }, (_, index) => all.slice(index * size, (index + 1) * size))
