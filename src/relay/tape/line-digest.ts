import { createHash } from 'node:crypto'

const DIGEST_BYTES = 16

/** The digest of a seal or of a receipt: the first 16 bytes, in hex, of SHA-256 over lines that are joined by line feeds. */
export class LineDigest {
  readonly #hash = createHash('sha256')
  #count = 0

  get count(): number {
    return this.#count
  }

  add(lines: readonly string[]): this {
    if (lines.length === 0) return this
    this.#hash.update(`${this.#count > 0 ? '\n' : ''}${lines.join('\n')}`)
    this.#count += lines.length
    return this
  }

  /** Returns the digest of all lines. No line can be added after it. */
  finish(): string {
    return this.#hash.digest('hex').slice(0, 2 * DIGEST_BYTES)
  }
}

export const lineDigest = (lines: readonly string[]): string => new LineDigest().add(lines).finish()
