const BUFFER_BYTES = 262_144
/** Limit of the size that the buffer keeps after a join that needed a larger one. */
const RETAINED_BOUND_BYTES = 4_194_304

/**
 * Holds the joined bytes of one audience while they are written. If the kernel takes all bytes, the next audience reuses their
 * space. Otherwise they stay until no backlog refers to the memory of the buffer.
 */
export class ReusedBuffer {
  #buffer = Buffer.allocUnsafeSlow(BUFFER_BYTES)
  #keptEnd = 0
  #joinedEnd = 0
  readonly #isHeld: (memory: ArrayBufferLike) => boolean

  constructor(isHeld: (memory: ArrayBufferLike) => boolean) {
    this.#isHeld = isHeld
  }

  /** Returns the pieces as one buffer. It is valid until the next call, unless `keep` is called. */
  join(pieces: readonly Buffer[]): Buffer {
    const [only] = pieces
    if (this.#keptEnd > 0 && !this.#isHeld(this.#buffer.buffer)) this.#keptEnd = 0
    this.#joinedEnd = this.#keptEnd
    if (only && pieces.length === 1) return only
    let length = 0
    for (const piece of pieces) length += piece.length
    if (length > this.#buffer.length - this.#keptEnd) {
      // New memory is slow when it is first used, so a buffer that has grown stays large.
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
