import type { Frame } from '../select/frame.ts'
import { deflateFrames } from '../transport/deflate.ts'
import type { Compression } from '../transport/deflate-offer.ts'
import type { Transport } from '../transport/encode.ts'
import type { Outlet } from '../transport/outlet.ts'
import { WriteBuffer } from './write-buffer.ts'

/**
 * Compressing a message costs about 24 µs, the write of a burst of 20 to one listener 6 to 9 µs, and 1 µs less where it is
 * compressed. With 1,000 listeners the compressed burst costs 0.84 of the plain one, with 64 it costs 1.85. A smaller
 * audience shares messages that were compressed alone, once for all audiences.
 */
const AUDIENCE_LEAST = 128
/** Messages of one delivery that are compressed for smaller audiences too. With few audiences these 5 ms do not matter. */
const SMALL_AUDIENCE_MESSAGES = 200

/** Who receives the same bytes. */
export type Recipients = {
  readonly transport: Transport
  readonly compression: Compression
  readonly listeners: { readonly size: number }
}

/** Joins the bytes of one batch for one audience after the other. */
export class BatchEncoder {
  readonly #buffer = new WriteBuffer()
  #smallAudienceMessages = 0

  startDelivery(): void {
    this.#smallAudienceMessages = SMALL_AUDIENCE_MESSAGES
  }

  /** The frames as one buffer, valid until the next call unless `keep` is called. */
  encode(frames: readonly Frame[], recipients: Recipients): Buffer {
    return this.#buffer.join(this.#pieces(frames, recipients))
  }

  /** Keeps the last bytes: some socket has not sent all of them yet. */
  keep(listeners: Iterable<{ readonly outlet: Outlet }>): void {
    this.#buffer.keep(listeners)
  }

  #pieces(frames: readonly Frame[], { transport, compression, listeners }: Recipients): readonly Buffer[] {
    if (compression === 'none') return frames.map((frame) => frame.bytes(transport))
    if (compression === 'batch' && frames.length > 1 && this.#mayCompressFor(listeners.size, frames.length)) {
      return deflateFrames(frames.map(({ entry }) => entry.text))
    }
    return frames.map((frame) => frame.deflatedBytes)
  }

  #mayCompressFor(listenerCount: number, messageCount: number): boolean {
    if (listenerCount >= AUDIENCE_LEAST) return true
    if (messageCount > this.#smallAudienceMessages) return false
    this.#smallAudienceMessages -= messageCount
    return true
  }
}
