import { constants, inflateRawSync } from 'node:zlib'

/** The largest window of deflate: a message may refer this far back. */
const WINDOW_BYTES = 32 * 1_024
/** What a sender of permessage-deflate leaves out (RFC 7692 §7.2.1). */
const TAIL = Buffer.from([0, 0, 0xff, 0xff])

/** Inflates the messages of one connection, which may refer to earlier ones. */
export class MessageInflater {
  #window: Buffer = Buffer.alloc(0)

  inflate(bytes: Buffer, from: number, to: number): Buffer {
    const dictionary = this.#window.length > 0 ? { dictionary: this.#window } : {}
    const deflated = Buffer.concat([bytes.subarray(from, to), TAIL])
    const message = inflateRawSync(deflated, { finishFlush: constants.Z_SYNC_FLUSH, ...dictionary })
    this.#window = Buffer.concat([this.#window, message]).subarray(-WINDOW_BYTES)
    return message
  }
}
