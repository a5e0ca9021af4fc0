/** Hears a whole message: where it stands in these bytes. */
export type Hear = (bytes: Buffer, from: number, to: number) => void
/** Reads what a socket says, chunk by chunk; the bytes are only lent. */
export interface Reader {
  read(bytes: Buffer, from: number, to: number): void
}

const HEADER_BOUND_BYTES = 10
const PING = 0x89
const CLOSE = 0x88
const TEXT = 0x81

/** Walks the frames of a WebSocket's server. Allocates only for a frame that ends in a later chunk. */
export class FrameReader implements Reader {
  readonly #hear: Hear
  readonly #pinged: () => void
  #held = Buffer.alloc(0)
  #used = 0

  constructor(hear: Hear, pinged: () => void) {
    this.#hear = hear
    this.#pinged = pinged
  }

  read(bytes: Buffer, from: number, to: number): void {
    let at = from
    if (this.#used > 0) at = this.#complete(bytes, at, to)
    while (at < to) {
      const kind = bytes[at]
      if (kind !== TEXT && kind !== PING && kind !== CLOSE) throw new Error(`no frame begins with ${kind}`)
      const end = at + frameBytes(bytes, at, to)
      if (end > to) return this.#hold(bytes, at, to, end - at)
      this.#frame(bytes, at, end)
      at = end
    }
  }

  #frame(bytes: Buffer, at: number, end: number): void {
    const kind = bytes[at]
    if (kind === TEXT) this.#hear(bytes, at + headerBytes(bytes[at + 1] ?? 0), end)
    else if (kind === PING) this.#pinged()
  }

  #hold(bytes: Buffer, from: number, to: number, size: number): void {
    const room = Number.isFinite(size) ? size : HEADER_BOUND_BYTES
    if (this.#held.length < room) this.#held = Buffer.allocUnsafe(room)
    this.#used = bytes.copy(this.#held, 0, from, to)
  }

  /** Adds to what is held until it is a whole frame; says where the chunk goes on. */
  #complete(bytes: Buffer, from: number, to: number): number {
    let at = from
    while (at < to) {
      const size = frameBytes(this.#held, 0, this.#used)
      const wanted = Number.isFinite(size) ? size : this.#used + 1
      if (this.#held.length < wanted) this.#held = Buffer.concat([this.#held.subarray(0, this.#used)], wanted)
      const taken = bytes.copy(this.#held, this.#used, at, Math.min(to, at + wanted - this.#used))
      at += taken
      this.#used += taken
      if (this.#used !== frameBytes(this.#held, 0, this.#used)) continue
      this.#used = 0
      this.#frame(this.#held, 0, size)
      return at
    }
    return at
  }
}

const headerBytes = (size: number): number => (size < 126 ? 2 : size === 126 ? 4 : HEADER_BOUND_BYTES)

/** How long the frame is that begins here; endless while too little of it is there to say so. */
function frameBytes(bytes: Buffer, at: number, to: number): number {
  const size = bytes[at + 1] ?? 0
  const header = headerBytes(size)
  if (to - at < header) return Number.POSITIVE_INFINITY
  if (size < 126) return header + size
  return header + (size === 126 ? bytes.readUInt16BE(at + 2) : Number(bytes.readBigUInt64BE(at + 2)))
}
