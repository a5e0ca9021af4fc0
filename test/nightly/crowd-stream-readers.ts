import { connect, type Socket } from 'node:net'
import { opcodes } from '../integration/http/websocket-frames.ts'

/** Takes one message in its original bytes. The buffer is reused afterwards. */
export type TakeMessage = (message: Buffer) => void

/** Reads the bytes after the head of a response. */
interface ByteReader {
  read(bytes: Buffer): void
}

const LINE_END = 0x0a
const DATA = Buffer.from('data: ')
const HEAD_END = '\r\n\r\n'

/** Reads the lines of NDJSON and text, and those lines of SSE that contain a message. */
export class LineReader implements ByteReader {
  readonly #takeMessage: TakeMessage
  readonly #prefix: Buffer
  #rest = Buffer.alloc(0)

  constructor(takeMessage: TakeMessage, transport: CrowdTransport) {
    this.#takeMessage = takeMessage
    this.#prefix = transport.startsWith('sse') ? DATA : Buffer.alloc(0)
  }

  read(bytes: Buffer): void {
    const all = this.#rest.length > 0 ? Buffer.concat([this.#rest, bytes]) : bytes
    const prefix = this.#prefix
    let at = 0
    for (let end = all.indexOf(LINE_END); end >= 0; end = all.indexOf(LINE_END, at)) {
      const hasPrefix = all.compare(prefix, 0, prefix.length, at, Math.min(at + prefix.length, end)) === 0
      if (hasPrefix) this.#takeMessage(all.subarray(at + prefix.length, end))
      at = end + 1
    }
    this.#rest = Buffer.from(all.subarray(at))
  }
}

type FrameHandlers = { readonly text: TakeMessage; readonly ping: () => void; readonly close: TakeMessage }

/** Reads the frames of a WebSocket server, which are neither masked nor fragmented. */
export class FramesReader implements ByteReader {
  readonly #handlers: FrameHandlers
  #rest = Buffer.alloc(0)

  constructor(handlers: FrameHandlers) {
    this.#handlers = handlers
  }

  read(bytes: Buffer): void {
    const all = this.#rest.length > 0 ? Buffer.concat([this.#rest, bytes]) : bytes
    let at = 0
    for (let end = frameEnd(all, at); end <= all.length; end = frameEnd(all, at)) {
      const opcode = (all[at] ?? 0) & 0x0f
      const payload = all.subarray(at + headerBytes(all[at + 1] ?? 0), end)
      if (opcode === opcodes.text) this.#handlers.text(payload)
      else if (opcode === opcodes.ping) this.#handlers.ping()
      else if (opcode === opcodes.close) this.#handlers.close(payload)
      at = end
    }
    this.#rest = Buffer.from(all.subarray(at))
  }
}

const headerBytes = (size: number): number => (size < 126 ? 2 : size === 126 ? 4 : 10)

/** Where the frame ends that begins here; infinite while its length is not complete. */
function frameEnd(bytes: Buffer, at: number): number {
  const size = bytes[at + 1] ?? 0
  const header = headerBytes(size)
  if (bytes.length < at + header) return Number.POSITIVE_INFINITY
  if (size < 126) return at + header + size
  return at + header + (size === 126 ? bytes.readUInt16BE(at + 2) : Number(bytes.readBigUInt64BE(at + 2)))
}

export type CrowdTransport = 'ws' | 'sse' | 'sse-named' | 'ndjson' | 'text'

/** The relay's port, and the local address to connect from. */
export type RelayAddress = { readonly port: number; readonly localAddress: string }

export const connectToRelay = ({ port, localAddress }: RelayAddress): Socket =>
  connect({ port, host: '127.0.0.1', localAddress, allowHalfOpen: true, noDelay: true })

/** Cuts the head off a response and passes the rest to the reader, if the status is that of a stream. */
export class ResponseReader implements ByteReader {
  readonly #body: ByteReader
  readonly #onRefused: (head: string) => void
  #head = ''
  #isHeadRead = false

  constructor(body: ByteReader, refused: (head: string) => void) {
    this.#body = body
    this.#onRefused = refused
  }

  read(bytes: Buffer): void {
    if (this.#isHeadRead) return this.#body.read(bytes)
    this.#head += bytes.toString('latin1')
    const end = this.#head.indexOf(HEAD_END)
    if (end < 0) return
    this.#isHeadRead = true
    if (!/^HTTP\/1\.1 (101|200) /.test(this.#head)) return this.#onRefused(this.#head)
    const body = Buffer.from(this.#head.slice(end + HEAD_END.length), 'latin1')
    this.#head = ''
    if (body.length > 0) this.#body.read(body)
  }
}
