/** A map with a limited number of entries. Beyond the limit it deletes its oldest entry. */
export class BoundedMap<Key, Value> extends Map<Key, Value> {
  readonly #bound: number

  constructor(bound: number) {
    super()
    this.#bound = bound
  }

  /** Sets a value. An entry that already exists keeps its age. */
  override set(key: Key, value: Value): this {
    super.set(key, value)
    for (const oldest of this.keys()) {
      if (this.size <= this.#bound) break
      this.delete(oldest)
    }
    return this
  }

  refresh(key: Key, value: Value): this {
    this.delete(key)
    return this.set(key, value)
  }
}

type Values<Key, Value> = { get(key: Key): Value | undefined; set(key: Key, value: Value): unknown }

/** Returns the value of a key. If the key has none, it gets the value that `make` returns. */
export function getOrAdd<Key, Value>(values: Values<Key, Value>, key: Key, make: () => Value): Value {
  const known = values.get(key)
  if (known !== undefined) return known
  const made = make()
  values.set(key, made)
  return made
}

/** Remembers the newest results of a function, at most `bound` of them. A result is never undefined. */
export const memoized = <Args extends readonly (string | number)[], Result extends NonNullable<unknown>>(
  bound: number,
  compute: (...args: Args) => Result,
) => {
  const results = new BoundedMap<string, Result>(bound)
  return (...args: Args): Result => getOrAdd(results, args.join(' '), () => compute(...args))
}
