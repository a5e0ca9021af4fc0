import type { Transport } from '../../../protocol/transports.ts'
import type { Frame } from '../select/frame.ts'
import { deflateFrames } from '../transport/deflate.ts'
import type { Compression } from '../transport/deflate-offer.ts'

/**
 * A smaller audience receives a burst uncompressed. Compressing a message costs about 24 µs, and shortens each write of 6 to 9 µs
 * by 1 µs. A compressed burst costs 0.84 times as much as a plain one with 1,000 listeners, and 1.85 times with 64.
 */
const AUDIENCE_LEAST = 128

export type Recipients = {
  readonly transport: Transport
  readonly compression: Compression
  readonly listeners: { readonly size: number }
}

/** The bytes of a batch for recipients with one transport and compression. */
export function encodeBatch(frames: readonly Frame[], { transport, compression, listeners }: Recipients): readonly Buffer[] {
  // A message that is compressed alone is compressed once for all audiences, so any size of audience may have it.
  const isAlone = compression === 'message' || (compression === 'batch' && frames.length === 1)
  if (isAlone) return frames.map((frame) => frame.deflatedBytes)
  if (compression === 'none' || listeners.size < AUDIENCE_LEAST) return frames.map((frame) => frame.bytes(transport))
  return deflateFrames(frames.map(({ entry }) => entry.text))
}
