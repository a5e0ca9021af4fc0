import { constants, deflateRawSync, type ZlibOptions } from 'node:zlib'
import type { Steps } from '../../../lib/turns.ts'
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
/** A long message is compressed in pieces of this size, each of which takes about 2 ms. */
const PIECE_BYTES = 65_536
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
    const payload = withoutFlushEnd(deflatePart(payloads, from, to))
    from = to
    return Buffer.concat([wsHeader(payload.length, 'deflated'), payload])
  })
}

/** Returns a message as one compressed WebSocket frame, which refers to no other message. Compresses a long message in steps. */
export function* deflateAlone(text: string): Steps<Buffer> {
  const payload = Buffer.from(text)
  const pieces = [deflatePart(payload, 0, Math.min(PIECE_BYTES, payload.length))]
  for (let from = PIECE_BYTES; from < payload.length; from += PIECE_BYTES) {
    yield
    pieces.push(deflatePart(payload, from, Math.min(from + PIECE_BYTES, payload.length)))
  }
  pieces.push(withoutFlushEnd(pieces.pop() ?? Buffer.alloc(0)))
  const length = pieces.reduce((sum, piece) => sum + piece.length, 0)
  return Buffer.concat([wsHeader(length, 'deflated'), ...pieces])
}

/** Compresses a part of these bytes, which may refer to the bytes before it. */
function deflatePart(bytes: Buffer, from: number, to: number): Buffer {
  const dictionary = bytes.subarray(Math.max(0, from - WINDOW_BYTES), from)
  return deflateRawSync(bytes.subarray(from, to), from === 0 ? zlibOptions : { ...zlibOptions, dictionary })
}

const withoutFlushEnd = (deflated: Buffer): Buffer => deflated.subarray(0, deflated.length - FLUSH_END_BYTES)
