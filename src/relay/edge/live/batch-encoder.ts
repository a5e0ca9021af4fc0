import type { Transport } from '../../../protocol/transports.ts'
import type { Frame } from '../select/frame.ts'
import { deflateFrames } from '../transport/deflate.ts'
import type { Compression } from '../transport/deflate-offer.ts'
import { WriteBuffer } from './write-buffer.ts'

/**
 * Compressing a message costs about 24 µs, the write of a burst of 20 to one listener 6 to 9 µs, and 1 µs less where it is
 * compressed. With 1,000 listeners the compressed burst costs 0.84 of the plain one, with 64 it costs 1.85. A smaller audience
 * receives a burst uncompressed. A message that is compressed alone is compressed once for all audiences, so any may have it.
 */
const AUDIENCE_LEAST = 128

/** Who receives the same bytes. */
export type Recipients = {
  readonly transport: Transport
  readonly compression: Compression
  readonly listeners: { readonly size: number }
}

/** Joins the bytes of one batch for one audience after the other. */
export class BatchEncoder {
  readonly #buffer: WriteBuffer

  constructor(isHeld: (memory: ArrayBufferLike) => boolean) {
    this.#buffer = new WriteBuffer(isHeld)
  }

  /** The frames as one buffer, valid until the next call unless `keep` is called. */
  encode(frames: readonly Frame[], recipients: Recipients): Buffer {
    return this.#buffer.join(piecesOf(frames, recipients))
  }

  /** Keeps the last bytes: some socket has not sent all of them yet. */
  keep(): void {
    this.#buffer.keep()
  }
}

function piecesOf(frames: readonly Frame[], { transport, compression, listeners }: Recipients): readonly Buffer[] {
  const isAlone = compression === 'message' || (compression === 'batch' && frames.length === 1)
  if (isAlone) return frames.map((frame) => frame.deflatedBytes)
  if (compression === 'none' || listeners.size < AUDIENCE_LEAST) return frames.map((frame) => frame.bytes(transport))
  return deflateFrames(frames.map(({ entry }) => entry.text))
}
