/** Remembers which blocks were sealed while the relay was disconnected, since they count as backfill. */
export class Outage {
  readonly #silenceMs: number
  #isDisconnected: boolean
  #lastBlock = -1
  #failingSince: number | null = null
  /** True from the end of an outage until the blocks that are too old to catch up on are skipped. */
  isUnbounded = false

  constructor(isDisconnected: boolean, silenceMs: number) {
    this.#isDisconnected = isDisconnected
    this.#silenceMs = silenceMs
  }

  /** True during an outage and after it, until the settled blocks are compared with the chain. */
  get isOpen(): boolean {
    return this.#isDisconnected || this.isUnbounded
  }

  begin(): void {
    this.#isDisconnected = true
  }

  /** Called with each head. The first head after an outage and all blocks below it were sealed during the outage. */
  end(head: number): void {
    if (!this.#isDisconnected) return
    this.#isDisconnected = false
    this.isUnbounded = true
    this.extend(head)
  }

  extend(head: number): void {
    this.#lastBlock = Math.max(this.#lastBlock, head)
  }

  /** Called for each failed request. If requests fail for longer than `silenceMs`, that counts as an outage too. */
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
