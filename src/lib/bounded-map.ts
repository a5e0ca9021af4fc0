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
