/** Tracks which blocks were sealed while the relay was disconnected: they count as backfill. */
export class Outage {
  readonly #silenceMs: number
  #isDisconnected: boolean
  #lastBlock = -1
  #failingSince: number | null = null
  /** Whether the blocks to catch up have yet to be limited by age. */
  isUnbounded = false

  constructor(isDisconnected: boolean, silenceMs: number) {
    this.#isDisconnected = isDisconnected
    this.#silenceMs = silenceMs
  }

  /** Whether the chain since the outage has yet to be compared with the settled blocks. */
  get isOpen(): boolean {
    return this.#isDisconnected || this.isUnbounded
  }

  begin(): void {
    this.#isDisconnected = true
  }

  /** The first head after an outage: it and all blocks below were sealed meanwhile. */
  end(head: number): void {
    if (!this.#isDisconnected) return
    this.#isDisconnected = false
    this.isUnbounded = true
    this.extend(head)
  }

  extend(head: number): void {
    this.#lastBlock = Math.max(this.#lastBlock, head)
  }

  /** Requests that fail for long enough are an outage too. */
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
