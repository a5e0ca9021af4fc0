/** So many bytes may be held at once, and so many of them by one; where nobody is named, by whoever it is. */
export class Budget {
  readonly #share: number
  readonly #heldBy = new Map<string, number>()
  #left: number

  constructor(bytes: number, share = bytes) {
    this.#left = bytes
    this.#share = share
  }

  /** Sets bytes aside; false if there are not as many left, or not for this one. */
  take(bytes: number, who = ''): boolean {
    if (bytes === 0) return true
    const held = (this.#heldBy.get(who) ?? 0) + bytes
    if (bytes > this.#left || held > this.#share) return false
    this.#left -= bytes
    this.#heldBy.set(who, held)
    return true
  }

  give(bytes: number, who = ''): void {
    const held = (this.#heldBy.get(who) ?? 0) - bytes
    this.#left += bytes
    if (held > 0) this.#heldBy.set(who, held)
    else this.#heldBy.delete(who)
  }
}
