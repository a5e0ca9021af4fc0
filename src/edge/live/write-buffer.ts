import type { Frame } from '../select/frame.ts'
import type { Carrier } from '../transport/encode.ts'

/** Room for so much at once; what is larger gets a room of its own. */
const ROOM_BYTES = 262_144

/**
 * Where the bytes of one audience stand together while they are written. From all who keep up the kernel takes them at
 * once, and the same room serves the next audience; what somebody still needs is kept, and the next stands behind it.
 */
export class Scratch {
  #room = Buffer.allocUnsafeSlow(ROOM_BYTES)
  /** Where what is kept ends. */
  #kept = 0
  /** Where the last join ended. */
  #joined = 0

  /** The frames as one buffer, good until the next call unless it is kept. */
  join(frames: readonly Frame[], carrier: Carrier): Buffer {
    const [only] = frames
    this.#joined = this.#kept
    if (only && frames.length === 1) return only.bytes(carrier)
    let length = 0
    for (const frame of frames) length += frame.bytes(carrier).length
    if (length > this.#room.length - this.#kept) {
      this.#room = Buffer.allocUnsafeSlow(Math.max(length, ROOM_BYTES))
      this.#kept = 0
    }
    let at = this.#kept
    for (const frame of frames) at += frame.bytes(carrier).copy(this.#room, at)
    this.#joined = at
    return this.#room.subarray(this.#kept, at)
  }

  /** Somebody has not taken all of the last bytes yet: they stay as they are. */
  keep(): void {
    this.#kept = this.#joined
  }
}
