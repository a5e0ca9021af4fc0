import { defer, ignoreElements, merge, type Observable, type OperatorFunction, Subject, tap } from 'rxjs'

/** Resolves in the next turn of the event loop. */
export const nextTurn = (): Promise<unknown> => new Promise((resolve) => setImmediate(resolve))

/**
 * Emits the parts of each item: the first at once, and each other in a turn of its own, so that no item holds the event loop. What
 * comes meanwhile waits. An item of one part, as most are, passes without a subscription of its own.
 */
export const inTurns =
  <Item, Part>(partsOf: (item: Item) => readonly Part[]): OperatorFunction<Item, Part> =>
  (items: Observable<Item>) =>
    defer(() => {
      const emitted = new Subject<Part>()
      /** Grows while it is emitted, by what comes in as many turns as it has parts. */
      const waiting: { readonly part: Part; readonly isFirst: boolean }[] = []
      let isComplete = false
      const emitWaiting = async () => {
        for (const { part, isFirst } of waiting) {
          if (!isFirst) await nextTurn()
          if (!emitted.observed) return
          emitted.next(part)
        }
        waiting.length = 0
        if (isComplete) emitted.complete()
      }
      const next = (item: Item) => {
        const parts = partsOf(item)
        const [only] = parts
        const isIdle = waiting.length === 0
        if (isIdle && only !== undefined && parts.length === 1) return emitted.next(only)
        for (const [index, part] of parts.entries()) waiting.push({ part, isFirst: index === 0 })
        if (isIdle) void emitWaiting()
      }
      const complete = () => {
        isComplete = true
        if (waiting.length === 0) emitted.complete()
      }
      return merge(emitted, items.pipe(tap({ next, complete }), ignoreElements()))
    })

export const chunk = <Item>(all: readonly Item[], size: number): readonly (readonly Item[])[] =>
  Array.from({ length: Math.ceil(all.length / size) }, (_, index) => all.slice(index * size, (index + 1) * size))
