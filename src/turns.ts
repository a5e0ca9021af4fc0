import { concatMap, from, map, type Observable, of } from 'rxjs'

/** Resolves in the next turn of the event loop. */
export const nextTurn = (): Promise<unknown> => new Promise((resolve) => setImmediate(resolve))

/** The first part at once, and each other in a turn of its own, so that no list holds the event loop. */
export const inTurns = <Part>(parts: readonly Part[]): Observable<Part> =>
  parts.length === 1
    ? from(parts)
    : from(parts).pipe(concatMap((part, index) => (index === 0 ? of(part) : from(nextTurn()).pipe(map(() => part)))))

export const chunk = <Item>(all: readonly Item[], size: number): readonly (readonly Item[])[] =>
  Array.from({ length: Math.ceil(all.length / size) }, (_, index) => all.slice(index * size, (index + 1) * size))
