import type { Outlet } from '../transport/outlet.ts'

/** Size of the shared buffer at first. */
const BUFFER_BYTES = 262_144

/** A buffer that a join made larger stays that large, up to this. */
const RETAINED_BOUND_BYTES = 4_194_304

/** A socket that the joined bytes are written to. */
type Reader = Pick<Outlet, 'backlog'>

/**
 * Holds the joined bytes of one audience during its writes. If the kernel takes all bytes at once, the next audience
 * reuses the space. Otherwise the bytes stay until no socket has a backlog any more, and the next audience's bytes follow them.
 */
export class WriteBuffer {
  #buffer = Buffer.allocUnsafeSlow(BUFFER_BYTES)
  /** The end of the kept bytes. */
  #keptEnd = 0
  #joinedEnd = 0
  readonly #readers = new Set<Reader>()

  /** The pieces as one buffer, valid until the next call unless `keep` is called. */
  join(pieces: readonly Buffer[]): Buffer {
    const [only] = pieces
    if (this.#keptEnd > 0 && this.#isRead()) this.#release()
    this.#joinedEnd = this.#keptEnd
    if (only && pieces.length === 1) return only
    let length = 0
    for (const piece of pieces) length += piece.length
    if (length > this.#buffer.length - this.#keptEnd) {
      // Fresh memory is slow on its first use, so a larger buffer stays.
      this.#buffer = Buffer.allocUnsafeSlow(Math.max(length, Math.min(this.#buffer.length, RETAINED_BOUND_BYTES)))
      this.#release()
    }
    let offset = this.#keptEnd
    for (const piece of pieces) offset += piece.copy(this.#buffer, offset)
    this.#joinedEnd = offset
    return this.#buffer.subarray(this.#keptEnd, offset)
  }

  /** Keeps the bytes of the last join: some of these sockets have not sent all of them yet. */
  keep(listeners: Iterable<{ readonly outlet: Reader }>): void {
    if (this.#joinedEnd === this.#keptEnd) return
    this.#keptEnd = this.#joinedEnd
    for (const { outlet } of listeners) if (outlet.backlog > 0) this.#readers.add(outlet)
  }

  #isRead(): boolean {
    for (const { backlog } of this.#readers) if (backlog > 0) return false
    return true
  }

  #release(): void {
    this.#keptEnd = 0
    this.#readers.clear()
  }
}
