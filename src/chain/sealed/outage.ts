/** When nobody looked: what was sealed meanwhile is caught up, as far back as the bound allows, and says so. */
export class Absence {
  readonly #silenceMs: number
  #away: boolean
  #until = -1
  #failingSince: number | null = null
  /** Whether it has yet to be looked how far back the absence began. */
  unbounded = false

  constructor(away: boolean, silenceMs: number) {
    this.#away = away
    this.#silenceMs = silenceMs
  }

  /** Whether it has yet to be looked at what became of the chain meanwhile. */
  get open(): boolean {
    return this.#away || this.unbounded
  }

  /** Nothing was heard for a while. */
  begins(): void {
    this.#away = true
  }

  /** A head is heard of again: all that it stands on was sealed while nobody looked. */
  ends(head: number): void {
    if (!this.#away) return
    this.#away = false
    this.unbounded = true
    this.extend(head)
  }

  extend(head: number): void {
    this.#until = Math.max(this.#until, head)
  }

  /** A question could not be asked; for long enough, that is an absence too. */
  failed(now: number): void {
    this.#failingSince ??= now
  }

  succeeded(now: number, head: number): void {
    if (this.#failingSince !== null && now - this.#failingSince > this.#silenceMs) this.extend(head)
    this.#failingSince = null
  }

  covers(block: number): boolean {
    return block <= this.#until
  }
}
