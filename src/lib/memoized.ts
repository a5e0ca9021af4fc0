import { BoundedMap } from './bounded-map.ts'

/** Remembers the newest results of a function, at most `bound` of them. A result is never undefined. */
export const memoized = <Args extends readonly (string | number)[], Result extends NonNullable<unknown>>(
  bound: number,
  compute: (...args: Args) => Result,
) => {
  const results = new BoundedMap<string, Result>(bound)
  return (...args: Args): Result => {
    const key = args.join(' ')
    const known = results.get(key)
    if (known !== undefined) return known
    const result = compute(...args)
    results.set(key, result)
    return result
  }
}
