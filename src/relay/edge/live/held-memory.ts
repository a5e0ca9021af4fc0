/** The memory that backlogs refer to. Many backlogs share it, so it is counted once, and whole: a part cannot be freed. */
export class HeldMemory {
  readonly #readersOf = new Map<ArrayBufferLike, number>()
  #bytes = 0

  /** The bytes of memory that cannot be freed yet. */
  get bytes(): number {
    return this.#bytes
  }

  isHeld(memory: ArrayBufferLike): boolean {
    return this.#readersOf.has(memory)
  }

  hold(memory: ArrayBufferLike): void {
    const readers = this.#readersOf.get(memory) ?? 0
    if (readers === 0) this.#bytes += memory.byteLength
    this.#readersOf.set(memory, readers + 1)
  }

  release(memory: ArrayBufferLike): void {
    const readers = this.#readersOf.get(memory) ?? 0
    if (readers > 1) return void this.#readersOf.set(memory, readers - 1)
    this.#readersOf.delete(memory)
    this.#bytes -= memory.byteLength
  }
}
