import { constants, createGzip, type Gzip, gzip, type ZlibOptions } from 'node:zlib'

/** An answer of at most this many bytes is sent as it is: it fits into one packet anyway. */
const LEAST_BYTES = 1_024
/** For answers that differ each time. A better level would take most of the time of an export. */
const FAST: ZlibOptions = { level: constants.Z_BEST_SPEED }

/** Caches keep the forms of an answer apart. */
export const varyHeaders = { vary: 'Accept-Encoding' } as const

export function acceptsGzip(acceptEncoding: string | undefined): boolean {
  const codings = (acceptEncoding ?? '').toLowerCase().split(',')
  return codings.some((coding) => {
    const [name = '', ...parameters] = coding.split(';').map((part) => part.trim())
    return name === 'gzip' && !parameters.some((parameter) => /^q=0(?:\.0*)?$/.test(parameter))
  })
}

const gzipWhole = (bytes: Uint8Array, options: ZlibOptions): Promise<Uint8Array<ArrayBuffer>> =>
  new Promise((resolve, reject) =>
    gzip(bytes, options, (failure, zipped) => (failure ? reject(failure) : resolve(new Uint8Array(zipped)))),
  )

/** The bytes of an answer as one client gets them, with the headers that say how. */
export type EncodedBody = { readonly bytes: Uint8Array<ArrayBuffer>; readonly headers: Readonly<Record<string, string>> }

/** A body that is sent several times. It is compressed once, for the first client that accepts it. */
export class RepeatedBody {
  readonly #plain: Uint8Array<ArrayBuffer>
  #gzipped: Promise<Uint8Array<ArrayBuffer>> | null = null

  constructor(plain: Uint8Array<ArrayBuffer>) {
    this.#plain = plain
  }

  async for(acceptEncoding: string | undefined, options: ZlibOptions = {}): Promise<EncodedBody> {
    if (this.#plain.length <= LEAST_BYTES || !acceptsGzip(acceptEncoding)) return { bytes: this.#plain, headers: varyHeaders }
    this.#gzipped ??= gzipWhole(this.#plain, options)
    return { bytes: await this.#gzipped, headers: { ...varyHeaders, 'content-encoding': 'gzip' } }
  }
}

export const encodedBytes = (bytes: Uint8Array<ArrayBuffer>, acceptEncoding: string | undefined): Promise<EncodedBody> =>
  new RepeatedBody(bytes).for(acceptEncoding, FAST)

export const encodedBody = (text: string, acceptEncoding: string | undefined): Promise<EncodedBody> =>
  encodedBytes(new TextEncoder().encode(text), acceptEncoding)

/** Compresses an answer of many chunks. A client can read each chunk as soon as it has its bytes. */
export class GzipChunks {
  readonly #gzip: Gzip = createGzip(FAST)
  #parts: Buffer[] = []

  constructor() {
    this.#gzip.on('data', (part: Buffer) => this.#parts.push(part))
  }

  compress(chunk: Buffer): Promise<Buffer> {
    this.#gzip.write(chunk)
    return new Promise((resolve) => this.#gzip.flush(constants.Z_SYNC_FLUSH, () => resolve(this.#take())))
  }

  /** Resolves with the last bytes, or after `close`. */
  finish(): Promise<Buffer> {
    this.#gzip.end()
    return new Promise((resolve) => this.#gzip.once('close', () => resolve(this.#take())))
  }

  /** Releases the memory of the compressor. */
  close(): void {
    this.#gzip.destroy()
  }

  #take(): Buffer {
    const bytes = Buffer.concat(this.#parts)
    this.#parts = []
    return bytes
  }
}
