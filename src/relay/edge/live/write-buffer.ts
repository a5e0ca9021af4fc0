const BUFFER_BYTES = 262_144
/** A buffer that a join made larger keeps its size, up to this one. */
const RETAINED_BOUND_BYTES = 4_194_304

/**
 * Holds the joined bytes of one audience during its writes. If the kernel takes all of them, the next audience reuses the space.
 * Otherwise they stay until no backlog refers to this memory.
 */
export class WriteBuffer {
  #buffer = Buffer.allocUnsafeSlow(BUFFER_BYTES)
  #keptEnd = 0
  #joinedEnd = 0
  readonly #isHeld: (memory: ArrayBufferLike) => boolean

  constructor(isHeld: (memory: ArrayBufferLike) => boolean) {
    this.#isHeld = isHeld
  }

  /** The pieces as one buffer, valid until the next call unless `keep` is called. */
  join(pieces: readonly Buffer[]): Buffer {
    const [only] = pieces
    if (this.#keptEnd > 0 && !this.#isHeld(this.#buffer.buffer)) this.#keptEnd = 0
    this.#joinedEnd = this.#keptEnd
    if (only && pieces.length === 1) return only
    let length = 0
    for (const piece of pieces) length += piece.length
    if (length > this.#buffer.length - this.#keptEnd) {
      // Fresh memory is slow on first use, so a larger buffer stays.
      this.#buffer = Buffer.allocUnsafeSlow(Math.max(length, Math.min(this.#buffer.length, RETAINED_BOUND_BYTES)))
      this.#keptEnd = 0
    }
    let offset = this.#keptEnd
    for (const piece of pieces) offset += piece.copy(this.#buffer, offset)
    this.#joinedEnd = offset
    return this.#buffer.subarray(this.#keptEnd, offset)
  }

  /** Keeps the bytes of the last join, because a socket has not sent all of them yet. */
  keep(): void {
    this.#keptEnd = this.#joinedEnd
  }
}
