import type { Message } from '../../../protocol/notices.ts'
import { framings, type Transport } from '../../../protocol/transports.ts'

/** Returns a message in the bytes of a transport. `json` is the message, serialized once for all transports. */
export const encode = (transport: Transport, message: Message, json: string): Buffer =>
  transport === 'ws' ? wsFrame(Buffer.from(json)) : Buffer.from(framings[transport](message, json))

/** An unmasked, unfragmented text frame (RFC 6455 §5.2), written unchanged to every socket. */
export const wsFrame = (payload: Buffer): Buffer => Buffer.concat([wsHeader(payload.length), payload])

const FINAL_TEXT = 0x81
/** Bit of a frame's first byte that marks a compressed message (RFC 7692 §6). */
const RSV1 = 0x40

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
