/** Size of the shared buffer; a larger join gets a buffer of its own. */
const BUFFER_BYTES = 262_144

/**
 * Holds the joined bytes of one audience during its writes. If the kernel takes all bytes at once, the next audience
 * reuses the space. Otherwise the bytes stay, and the next audience's bytes follow them.
 */
export class WriteBuffer {
  #buffer = Buffer.allocUnsafeSlow(BUFFER_BYTES)
  /** The end of the kept bytes. */
  #keptEnd = 0
  #joinedEnd = 0

  /** The pieces as one buffer, valid until the next call unless `keep` is called. */
  join(pieces: readonly Buffer[]): Buffer {
    const [only] = pieces
    this.#joinedEnd = this.#keptEnd
    if (only && pieces.length === 1) return only
    let length = 0
    for (const piece of pieces) length += piece.length
    if (length > this.#buffer.length - this.#keptEnd) {
      this.#buffer = Buffer.allocUnsafeSlow(Math.max(length, BUFFER_BYTES))
      this.#keptEnd = 0
    }
    let offset = this.#keptEnd
    for (const piece of pieces) offset += piece.copy(this.#buffer, offset)
    this.#joinedEnd = offset
    return this.#buffer.subarray(this.#keptEnd, offset)
  }

  /** Keeps the bytes of the last join: some socket has not sent all of them yet. */
  keep(): void {
    this.#keptEnd = this.#joinedEnd
  }
}
