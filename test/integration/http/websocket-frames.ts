import { randomBytes } from 'node:crypto'

export const opcodes = { continuation: 0, text: 1, binary: 2, close: 8, ping: 9, pong: 10 } as const

/** Largest payload of a control frame (RFC 6455 §5.5). */
export const CONTROL_BOUND_BYTES = 125
/** Codes that must never be sent on the wire (RFC 6455 §7.4.1). */
const forbiddenCloseCodes = new Set([1004, 1005, 1006, 1015])

/** A frame of a client, with any error that a client can make. */
export type ClientFrame = {
  readonly opcode?: number
  readonly payload?: string | Uint8Array
  readonly fin?: boolean
  /** The three reserved bits, as a number from 0 to 7. */
  readonly rsv?: number
  readonly masked?: boolean
  /** The announced length, if it differs from that of the payload. */
  readonly announced?: bigint
}

export function encodeFrame({ opcode = opcodes.text, payload = '', fin = true, rsv = 0, masked = true, announced }: ClientFrame) {
  const body = Buffer.from(payload)
  const mask = randomBytes(4)
  const first = (fin ? 0x80 : 0) | (rsv << 4) | opcode
  const header = [Buffer.of(first), encodeLength(announced ?? BigInt(body.length), masked ? 0x80 : 0)]
  if (!masked) return Buffer.concat([...header, body])
  return Buffer.concat([...header, mask, body.map((byte, at) => byte ^ (mask[at % mask.length] ?? 0))])
}

function encodeLength(length: bigint, maskBit: number): Buffer {
  if (length <= CONTROL_BOUND_BYTES) return Buffer.of(maskBit | Number(length))
  const header = Buffer.alloc(length < 65_536n ? 3 : 9)
  header[0] = maskBit | (length < 65_536n ? 126 : 127)
  if (length < 65_536n) header.writeUInt16BE(Number(length), 1)
  else header.writeBigUInt64BE(length, 1)
  return header
}

/** A closing frame; without a code it is empty. */
export function closeFrame(code?: number, reason: string | Uint8Array = ''): Buffer {
  if (code === undefined) return encodeFrame({ opcode: opcodes.close })
  return encodeFrame({ opcode: opcodes.close, payload: Buffer.concat([Buffer.of(code >> 8, code & 0xff), Buffer.from(reason)]) })
}

/** A message in fragments, one for each piece. */
export const fragmentMessage = (pieces: readonly (string | Uint8Array)[], opcode: number = opcodes.text): readonly Buffer[] =>
  pieces.map((payload, at) =>
    encodeFrame({ opcode: at === 0 ? opcode : opcodes.continuation, payload, fin: at === pieces.length - 1 }),
  )

/** A frame of the server as the strict reader parsed it. */
export type ServerFrame =
  | { readonly kind: 'text'; readonly text: string; readonly bytes: number; readonly headerBytes: number }
  | { readonly kind: 'deflated'; readonly payload: Buffer }
  | { readonly kind: 'ping'; readonly payload: Buffer }
  | { readonly kind: 'pong'; readonly payload: Buffer }
  | { readonly kind: 'close'; readonly code: number; readonly reason: string }

/** Reads server frames strictly by RFC 6455; anything that a server must not send is an error. */
export class StrictFrameReader {
  /** Whether permessage-deflate was negotiated. */
  readonly #mayDeflate: boolean
  #rest = Buffer.alloc(0)
  #closed = false

  constructor({ mayDeflate = false } = {}) {
    this.#mayDeflate = mayDeflate
  }

  /** The frames that these bytes complete. */
  read(bytes: Buffer): readonly ServerFrame[] {
    this.#rest = Buffer.concat([this.#rest, bytes])
    const received: ServerFrame[] = []
    for (let next = this.#next(); next; next = this.#next()) received.push(next)
    return received
  }

  /** Bytes of an incomplete frame. */
  get unreadBytes(): number {
    return this.#rest.length
  }

  #next(): ServerFrame | null {
    const rest = this.#rest
    if (this.#closed && rest.length > 0) throw new Error(`bytes after the closing frame: ${rest.toString('hex', 0, 40)}`)
    const [first, second] = rest
    if (first === undefined || second === undefined) return null
    if ((first & 0x80) === 0) throw new Error('a fragment')
    const isDeflated = this.#mayDeflate && (first & 0x7f) === (0x40 | opcodes.text)
    if ((first & 0x70) !== 0 && !isDeflated) throw new Error('a reserved bit is set')
    if ((second & 0x80) !== 0) throw new Error('a masked frame')
    const opcode = first & 0x0f
    const short = second & 0x7f
    const headerBytes = short < 126 ? 2 : short === 126 ? 4 : 10
    if (rest.length < headerBytes) return null
    const length = short < 126 ? short : short === 126 ? rest.readUInt16BE(2) : Number(rest.readBigUInt64BE(2))
    if (length < (headerBytes === 2 ? 0 : headerBytes === 4 ? 126 : 65_536)) throw new Error('a length in more bytes than it needs')
    if (rest.length < headerBytes + length) return null
    const payload = rest.subarray(headerBytes, headerBytes + length)
    this.#rest = rest.subarray(headerBytes + length)
    const received: ServerFrame = isDeflated ? { kind: 'deflated', payload } : readPayload(opcode, payload, headerBytes)
    this.#closed = received.kind === 'close'
    return received
  }
}

function readPayload(opcode: number, payload: Buffer, headerBytes: number): ServerFrame {
  if (opcode === opcodes.text) return { kind: 'text', text: decodeStrictUtf8(payload), bytes: payload.length, headerBytes }
  if (payload.length > CONTROL_BOUND_BYTES) throw new Error('a control frame that is too long')
  if (opcode === opcodes.ping || opcode === opcodes.pong)
    return { kind: opcode === opcodes.ping ? 'ping' : 'pong', payload: Buffer.from(payload) }
  if (opcode !== opcodes.close) throw new Error(`opcode ${opcode}`)
  if (payload.length === 0) return { kind: 'close', code: 1005, reason: '' }
  const code = payload.readUInt16BE(0)
  if (code < 1000 || code > 4999 || forbiddenCloseCodes.has(code)) throw new Error(`the close code ${code}`)
  return { kind: 'close', code, reason: decodeStrictUtf8(payload.subarray(2)) }
}

const decodeStrictUtf8 = (bytes: Buffer): string => new TextDecoder('utf-8', { fatal: true, ignoreBOM: true }).decode(bytes)
