import { concatMap, from, type OperatorFunction } from 'rxjs'

/** Resolves in the next turn of the event loop. */
export const nextTurn = (): Promise<unknown> => new Promise((resolve) => setImmediate(resolve))

/** Emits the parts of each item: the first at once, and each other in a turn of its own, so that no item holds the event loop. */
export const inTurns = <Item, Part>(partsOf: (item: Item) => readonly Part[]): OperatorFunction<Item, Part> =>
  concatMap((item) => {
    const parts = partsOf(item)
    // Most items have one part, which then takes no subscription of its own.
    return parts.length === 1 ? [...parts] : from(parts).pipe(concatMap((part, index) => (index === 0 ? [part] : afterTurn(part))))
  })

const afterTurn = async <Part>(part: Part): Promise<Part> => {
  await nextTurn()
  return part
}

export const chunk = <Item>(all: readonly Item[], size: number): readonly (readonly Item[])[] =>
  Array.from({ length: Math.ceil(all.length / size) }, (_, index) => all.slice(index * size, (index + 1) * size))
