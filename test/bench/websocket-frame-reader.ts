/** Takes a complete message: its range in these bytes. */
export type OnMessage = (bytes: Buffer, from: number, to: number) => void
/** Reads a socket chunk by chunk. The buffer is reused afterwards. */
export interface BufferReader {
  read(bytes: Buffer, from: number, to: number): void
}

const HEADER_BOUND_BYTES = 10
const PING = 0x89
const CLOSE = 0x88
const TEXT = 0x81
/** RSV1 is set (RFC 7692 §6). */
const DEFLATED_TEXT = 0xc1

/** Walks the frames of a WebSocket server. Allocates only for a frame that ends in a later chunk. */
export class LentFrameReader implements BufferReader {
  readonly #onMessage: OnMessage
  readonly #onPing: () => void
  readonly #onDeflated: OnMessage | null
  #buffered = Buffer.alloc(0)
  #bufferedBytes = 0

  /** `onDeflated` takes the compressed messages, where the handshake allowed them. */
  constructor(onMessage: OnMessage, onPing: () => void, onDeflated: OnMessage | null = null) {
    this.#onMessage = onMessage
    this.#onPing = onPing
    this.#onDeflated = onDeflated
  }

  read(bytes: Buffer, from: number, to: number): void {
    let at = from
    if (this.#bufferedBytes > 0) at = this.#complete(bytes, at, to)
    while (at < to) {
      const kind = bytes[at]
      if (!this.#isKnown(kind)) throw new Error(`no frame begins with ${kind}`)
      const end = at + frameBytes(bytes, at, to)
      if (end > to) return this.#buffer(bytes, at, to, end - at)
      this.#readFrame(bytes, at, end)
      at = end
    }
  }

  #isKnown(kind: number | undefined): boolean {
    return kind === TEXT || kind === PING || kind === CLOSE || (kind === DEFLATED_TEXT && this.#onDeflated !== null)
  }

  #readFrame(bytes: Buffer, at: number, end: number): void {
    const kind = bytes[at]
    if (kind === TEXT) this.#onMessage(bytes, at + headerBytes(bytes[at + 1] ?? 0), end)
    else if (kind === DEFLATED_TEXT) this.#onDeflated?.(bytes, at + headerBytes(bytes[at + 1] ?? 0), end)
    else if (kind === PING) this.#onPing()
  }

  #buffer(bytes: Buffer, from: number, to: number, size: number): void {
    const capacity = Number.isFinite(size) ? size : HEADER_BOUND_BYTES
    if (this.#buffered.length < capacity) this.#buffered = Buffer.allocUnsafe(capacity)
    this.#bufferedBytes = bytes.copy(this.#buffered, 0, from, to)
  }

  /** Adds to the pending frame until it is complete. Returns where the chunk continues. */
  #complete(bytes: Buffer, from: number, to: number): number {
    let at = from
    while (at < to) {
      const size = frameBytes(this.#buffered, 0, this.#bufferedBytes)
      const wanted = Number.isFinite(size) ? size : this.#bufferedBytes + 1
      if (this.#buffered.length < wanted) this.#buffered = Buffer.concat([this.#buffered.subarray(0, this.#bufferedBytes)], wanted)
      const taken = bytes.copy(this.#buffered, this.#bufferedBytes, at, Math.min(to, at + wanted - this.#bufferedBytes))
      at += taken
      this.#bufferedBytes += taken
      if (this.#bufferedBytes !== frameBytes(this.#buffered, 0, this.#bufferedBytes)) continue
      this.#bufferedBytes = 0
      this.#readFrame(this.#buffered, 0, size)
      return at
    }
    return at
  }
}

const headerBytes = (size: number): number => (size < 126 ? 2 : size === 126 ? 4 : HEADER_BOUND_BYTES)

/** The length of the frame that begins here; infinite while its header is not complete. */
function frameBytes(bytes: Buffer, at: number, to: number): number {
  const size = bytes[at + 1] ?? 0
  const header = headerBytes(size)
  if (to - at < header) return Number.POSITIVE_INFINITY
  if (size < 126) return header + size
  return header + (size === 126 ? bytes.readUInt16BE(at + 2) : Number(bytes.readBigUInt64BE(at + 2)))
}
