import { constants, deflateRawSync, type ZlibOptions } from 'node:zlib'
import { wsHeader } from './encode-message.ts'

/** How far back-references reach, as a power of two: a client with a window of this size or a larger one reads us. */
export const DEFLATE_WINDOW_BITS = 12
const WINDOW_BYTES = 2 ** DEFLATE_WINDOW_BITS
/** `memLevel` 6 takes less time per message than the default 8; the result is as short. */
const zlibOptions: ZlibOptions = {
  windowBits: DEFLATE_WINDOW_BITS,
  memLevel: 6,
  chunkSize: 1_024,
  finishFlush: constants.Z_SYNC_FLUSH,
}
/** A sync flush ends with these bytes, which RFC 7692 §7.2.1 leaves out. */
const FLUSH_END_BYTES = 4

/**
 * Messages as compressed WebSocket frames. A message refers to those before it in this call and to nothing earlier, so
 * every client that keeps its window can read them. What it received before makes no difference. The dictionary of each message
 * is what such a client has in its window by then: Node has no synchronous deflate stream, and one result is for thousands.
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
