import { constants, deflateRawSync, type ZlibOptions } from 'node:zlib'
import { wsHeader } from './encode-message.ts'

/** Binary logarithm of the size of the window. A client with a window of at least this size can read the messages. */
export const DEFLATE_WINDOW_BITS = 12
const WINDOW_BYTES = 2 ** DEFLATE_WINDOW_BITS
/** `memLevel` 6 takes less time per message than the default 8, and the result is as short. */
const zlibOptions: ZlibOptions = {
  windowBits: DEFLATE_WINDOW_BITS,
  memLevel: 6,
  chunkSize: 1_024,
  finishFlush: constants.Z_SYNC_FLUSH,
}
/** Number of bytes at the end of a sync flush that a message omits (RFC 7692 §7.2.1). */
const FLUSH_END_BYTES = 4

/**
 * Returns messages as compressed WebSocket frames. A message refers only to earlier messages of the call, so each client that
 * keeps its window can read it. A dictionary replaces the window of a stream, because Node has no synchronous deflate stream.
 */
export function deflateFrames(texts: readonly string[]): readonly Buffer[] {
  const payloads = Buffer.from(texts.join(''))
  let from = 0
  return texts.map((text) => {
    const to = from + Buffer.byteLength(text)
    const dictionary = payloads.subarray(Math.max(0, from - WINDOW_BYTES), from)
    const message = payloads.subarray(from, to)
    const deflated = deflateRawSync(message, from === 0 ? zlibOptions : { ...zlibOptions, dictionary })
    from = to
    const payload = deflated.subarray(0, deflated.length - FLUSH_END_BYTES)
    return Buffer.concat([wsHeader(payload.length, 'deflated'), payload])
  })
}
