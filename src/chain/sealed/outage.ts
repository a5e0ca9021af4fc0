/** When nobody looked: what was sealed meanwhile is caught up, as far back as the bound allows, and says so. */
export class Outage {
  readonly #silenceMs: number
  #isDisconnected: boolean
  #lastBlock = -1
  #failingSince: number | null = null
  /** Whether it has yet to be looked how far back the absence began. */
  isUnbounded = false

  constructor(isDisconnected: boolean, silenceMs: number) {
    this.#isDisconnected = isDisconnected
    this.#silenceMs = silenceMs
  }

  /** Whether it has yet to be looked at what became of the chain meanwhile. */
  get isOpen(): boolean {
    return this.#isDisconnected || this.isUnbounded
  }

  /** Nothing was heard for a while. */
  begin(): void {
    this.#isDisconnected = true
  }

  /** A head is heard of again: all that it stands on was sealed while nobody looked. */
  end(head: number): void {
    if (!this.#isDisconnected) return
    this.#isDisconnected = false
    this.isUnbounded = true
    this.extend(head)
  }

  extend(head: number): void {
    this.#lastBlock = Math.max(this.#lastBlock, head)
  }

  /** A question could not be asked; for long enough, that is an absence too. */
  requestFailed(now: number): void {
    this.#failingSince ??= now
  }

  requestSucceeded(now: number, head: number): void {
    if (this.#failingSince !== null && now - this.#failingSince > this.#silenceMs) this.extend(head)
    this.#failingSince = null
  }

  covers(block: number): boolean {
    return block <= this.#lastBlock
  }
}
