import type { Frame } from '../select/frame.ts'
import type { Transport } from '../transport/encode.ts'

/** Room for so much at once; what is larger gets a room of its own. */
const BUFFER_BYTES = 262_144

/**
 * Where the bytes of one audience stand together while they are written. From all who keep up the kernel takes them at
 * once, and the same room serves the next audience; what somebody still needs is kept, and the next stands behind it.
 */
export class WriteBuffer {
  #buffer = Buffer.allocUnsafeSlow(BUFFER_BYTES)
  /** Where what is kept ends. */
  #keptEnd = 0
  /** Where the last join ended. */
  #joinedEnd = 0

  /** The frames as one buffer, good until the next call unless it is kept. */
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

  /** Somebody has not taken all of the last bytes yet: they stay as they are. */
  keep(): void {
    this.#keptEnd = this.#joinedEnd
  }
}
