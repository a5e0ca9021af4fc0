import type { Transport } from '../../../protocol/transports.ts'
import type { Frame } from '../select/frame.ts'
import type { Compression } from '../transport/deflate-offer.ts'

/**
 * Least number of listeners that receive a batch of several messages compressed. To compress one message takes about 24 µs, and
 * shortens each write of 6 to 9 µs by 1 µs: the total time is 0.84 times that of plain bytes with 1,000 listeners, 1.85 with 64.
 */
const AUDIENCE_LEAST = 128

export type Recipients = {
  readonly transport: Transport
  readonly compression: Compression
  readonly listeners: { readonly size: number }
}

/** Returns the bytes of a batch for recipients with one transport and compression. */
export function encodeBatch(frames: readonly Frame[], { transport, compression, listeners }: Recipients): readonly Buffer[] {
  // A message that is compressed alone has one compressed form for all audiences, so the size of the audience does not matter.
  const isAlone = compression === 'message' || (compression === 'batch' && frames.length === 1)
  if (isAlone) return frames.map((frame) => frame.deflatedBytes)
  if (compression === 'none' || listeners.size < AUDIENCE_LEAST) return frames.map((frame) => frame.bytes(transport))
  return deflateTogether(frames)
}

/** A long message is compressed alone, because that is done once for all audiences, and in steps before the delivery. */
function deflateTogether(frames: readonly Frame[]): readonly Buffer[] {
  const long = frames.findIndex(({ isLong }) => isLong)
  if (long < 0) return frames[0]?.deflatedBatch(frames) ?? []
  const [before, after] = [frames.slice(0, long), frames.slice(long + 1)]
  return [
    ...deflateTogether(before),
    ...frames.slice(long, long + 1).map((frame) => frame.deflatedBytes),
    ...deflateTogether(after),
  ]
}
