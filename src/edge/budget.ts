/** So many bytes may be held at once, whoever holds them. */
export class Budget {
  #left: number

  constructor(bytes: number) {
    this.#left = bytes
  }

  /** Sets bytes aside; false if there are not as many left. */
  take(bytes: number): boolean {
    if (bytes > this.#left) return false
    this.#left -= bytes
    return true
  }

  give(bytes: number): void {
    this.#left += bytes
  }
}
