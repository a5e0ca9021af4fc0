import type { Message } from '../../../protocol/notices.ts'
import { formatTextLine } from '../../../protocol/readable-line.ts'

/** The formats in which a message reaches a listener. */
export type Transport = 'ws' | 'sse' | 'sse-named' | 'ndjson' | 'text'

/** One message in the bytes of a transport. `text` is its JSON, serialized once for all transports. */
export function encode(transport: Transport, message: Message, text: string): Buffer {
  switch (transport) {
    case 'ws':
      return wsFrame(Buffer.from(text))
    case 'sse':
      return sseEvent(message, text, message.type === 'heartbeat')
    case 'sse-named':
      return sseEvent(message, text, true)
    case 'ndjson':
      return Buffer.from(`${text}\n`)
    case 'text':
      return Buffer.from(`${formatTextLine(message)}\n`)
  }
}

/** JSON text contains no raw line breaks, so one `data:` line always holds it. */
function sseEvent(message: Message, text: string, isNamed: boolean): Buffer {
  const id = 'id' in message && message.id !== null ? `id: ${message.id}\n` : ''
  const event = isNamed ? `event: ${message.type}\n` : ''
  return Buffer.from(`${event}${id}data: ${text}\n\n`)
}

/** An unmasked, unfragmented text frame (RFC 6455 §5.2), built once and written unchanged to every socket. */
export const wsFrame = (payload: Buffer): Buffer => Buffer.concat([wsHeader(payload.length), payload])

const FINAL_TEXT = 0x81
/** The bit that marks a compressed message (RFC 7692 §6). */
const RSV1 = 0x40

/** The header of such a frame. */
export function wsHeader(length: number, payload: 'plain' | 'deflated' = 'plain'): Buffer {
  const header = Buffer.allocUnsafe(length < 126 ? 2 : length < 65_536 ? 4 : 10)
  header[0] = payload === 'plain' ? FINAL_TEXT : FINAL_TEXT | RSV1
  if (length < 126) header[1] = length
  else if (length < 65_536) {
    header[1] = 126
    header.writeUInt16BE(length, 2)
  } else {
    header[1] = 127
    header.writeBigUInt64BE(BigInt(length), 2)
  }
  return header
}
