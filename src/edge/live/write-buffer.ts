import type { Frame } from '../select/frame.ts'
import type { Transport } from '../transport/encode.ts'

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

  /** The frames as one buffer, valid until the next call unless `keep` is called. */
  join(frames: readonly Frame[], transport: Transport): Buffer {
    const [only] = frames
    this.#joinedEnd = this.#keptEnd
    if (only && frames.length === 1) return only.bytes(transport)
    let length = 0
    for (const frame of frames) length += frame.bytes(transport).length
    if (length > this.#buffer.length - this.#keptEnd) {
      this.#buffer = Buffer.allocUnsafeSlow(Math.max(length, BUFFER_BYTES))
      this.#keptEnd = 0
    }
    let offset = this.#keptEnd
    for (const frame of frames) offset += frame.bytes(transport).copy(this.#buffer, offset)
    this.#joinedEnd = offset
    return this.#buffer.subarray(this.#keptEnd, offset)
  }

  /** Keeps the bytes of the last join: some socket has not sent all of them yet. */
  keep(): void {
    this.#keptEnd = this.#joinedEnd
  }
}
