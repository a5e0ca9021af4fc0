/** The reader of each protocol for many connections in one process, shared by the benchmarks and the nightly crowds. */

/** Takes a complete message: its range in these bytes, which are reused afterwards. */
export type OnMessage = (bytes: Buffer, from: number, to: number) => void
/** Reads a socket piece by piece. */
export interface ByteReader {
  read(bytes: Buffer, from: number, to: number): void
}

const NOTHING = Buffer.alloc(0)

/** Copies only what a piece leaves incomplete. */
abstract class PieceReader implements ByteReader {
  #rest: Buffer = NOTHING

  read(bytes: Buffer, from: number, to: number): void {
    const isWhole = this.#rest.length === 0
    const all = isWhole ? bytes : Buffer.concat([this.#rest, bytes.subarray(from, to)])
    const end = isWhole ? to : all.length
    let at = isWhole ? from : 0
    while (at < end) {
      const next = this.readOne(all, at, end)
      if (next > end) break
      at = next
    }
    this.#rest = at < end ? Buffer.from(all.subarray(at, end)) : NOTHING
  }

  /** Passes on what begins here, if it is complete. Returns where it ends, beyond `to` if it is not. */
  protected abstract readOne(bytes: Buffer, from: number, to: number): number
}

const LINE_END = 0x0a

/** Reads lines: those that begin with a prefix, without it. A chunked body is no different, if its chunks are whole lines. */
export class LineReader extends PieceReader {
  readonly #onMessage: OnMessage
  readonly #prefix: Buffer

  constructor(onMessage: OnMessage, prefix = '') {
    super()
    this.#onMessage = onMessage
    this.#prefix = Buffer.from(prefix)
  }

  protected readOne(bytes: Buffer, from: number, to: number): number {
    const end = bytes.indexOf(LINE_END, from)
    if (end < 0 || end >= to) return Number.POSITIVE_INFINITY
    const { length } = this.#prefix
    const hasPrefix = length === 0 || (bytes[from] === this.#prefix[0] && this.#prefix.compare(bytes, from, from + length) === 0)
    if (hasPrefix) this.#onMessage(bytes, from + length, end)
    return end + 1
  }
}

export const DATA_PREFIX = 'data: '

const [TEXT, CLOSE, PING, PONG] = [0x81, 0x88, 0x89, 0x8a]

type FrameHandlers = { readonly text: OnMessage; readonly ping?: () => void; readonly close?: OnMessage }

/** Reads the frames of a WebSocket server, which are neither masked nor fragmented. */
export class FrameReader extends PieceReader {
  readonly #handlers: FrameHandlers

  constructor(handlers: FrameHandlers) {
    super()
    this.#handlers = handlers
  }

  protected readOne(bytes: Buffer, from: number, to: number): number {
    const kind = bytes[from]
    const { text, ping, close } = this.#handlers
    const isKnown = kind === TEXT || kind === PING || kind === PONG || kind === CLOSE
    if (!isKnown) throw new Error(`no frame begins with ${kind}`)
    if (to - from < 2) return Number.POSITIVE_INFINITY
    const size = bytes[from + 1] ?? 0
    const payload = from + (size < 126 ? 2 : size === 126 ? 4 : 10)
    if (payload > to) return Number.POSITIVE_INFINITY
    const length = size < 126 ? size : size === 126 ? bytes.readUInt16BE(from + 2) : Number(bytes.readBigUInt64BE(from + 2))
    const end = payload + length
    if (end > to) return end
    if (kind === TEXT) text(bytes, payload, end)
    else if (kind === PING) ping?.()
    else if (kind === CLOSE) close?.(bytes, payload, end)
    return end
  }
}

const HEAD_END = '\r\n\r\n'

/** Reads the head of a response, and passes the rest to the reader that is opened for it, if there is one. */
export class ResponseReader implements ByteReader {
  readonly #openBody: (head: string) => ByteReader | null
  #head = ''
  #body: ByteReader | null | undefined

  constructor(openBody: (head: string) => ByteReader | null) {
    this.#openBody = openBody
  }

  read(bytes: Buffer, from: number, to: number): void {
    if (this.#body !== undefined) return this.#body?.read(bytes, from, to)
    const before = this.#head.length
    this.#head += bytes.toString('latin1', from, to)
    const end = this.#head.indexOf(HEAD_END)
    if (end < 0) return
    this.#body = this.#openBody(this.#head.slice(0, end))
    const bodyFrom = from + end + HEAD_END.length - before
    if (bodyFrom < to) this.#body?.read(bytes, bodyFrom, to)
  }
}
