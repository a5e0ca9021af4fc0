/** A map in the order of insertion. Beyond its bound it evicts the oldest entry. */
export class BoundedMap<Key, Value> extends Map<Key, Value> {
  readonly #bound: number

  constructor(bound: number) {
    super()
    this.#bound = bound
  }

  /** A key that is set again keeps its place. */
  override set(key: Key, value: Value): this {
    super.set(key, value)
    for (const oldest of this.keys()) {
      if (this.size <= this.#bound) break
      this.delete(oldest)
    }
    return this
  }

  /** Sets an entry and makes it the newest. */
  refresh(key: Key, value: Value): this {
    this.delete(key)
    return this.set(key, value)
  }
}
