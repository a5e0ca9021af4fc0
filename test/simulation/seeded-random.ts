/** Random numbers from a seed and names. One part of the simulation never changes what another part draws. */
export class SeededRandom {
  #state: number

  constructor(...names: readonly (string | number)[]) {
    // FNV-1a over the names: short, and spread well enough by the mixing below.
    let hash = 0x811c9dc5
    for (const name of names) {
      for (const char of `${name}/`) hash = Math.imul(hash ^ char.charCodeAt(0), 0x01000193)
    }
    this.#state = hash >>> 0
  }

  /** A second generator that depends on this one's state and does not advance it. */
  fork(name: string): SeededRandom {
    return new SeededRandom(this.#state, name)
  }

  /** From 0 (included) to 1 (excluded), by mulberry32. */
  next(): number {
    this.#state = (this.#state + 0x6d2b79f5) >>> 0
    let mixed = this.#state
    mixed = Math.imul(mixed ^ (mixed >>> 15), mixed | 1)
    mixed ^= mixed + Math.imul(mixed ^ (mixed >>> 7), mixed | 61)
    return ((mixed ^ (mixed >>> 14)) >>> 0) / 4_294_967_296
  }

  /** A whole number from `least` to `most`, both included. */
  int(least: number, most: number): number {
    return least + Math.floor(this.next() * (most - least + 1))
  }

  chance(percent: number): boolean {
    return this.next() * 100 < percent
  }

  pick<T>(from: readonly [T, ...(readonly T[])]): T {
    return from[Math.floor(this.next() * from.length)] ?? from[0]
  }
}
