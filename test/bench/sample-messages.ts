import { nowMicros, timeAsAddress } from './message-stamp.ts'

/** A transfer and a seal as the relay sent them, and whether its streams are chunked: peers send the same. */
export type Sample = { readonly transfer: string; readonly seal: string; readonly id: string; readonly isChunked: boolean }
/** How a peer is fed: JSON lines that it frames itself, or the exact bytes to send. */
export type FeedFormat = 'lines' | 'ws' | 'sse'

const STAMP_PATTERN = /"to":"0x[0-9a-f]{40}","raw":"\d+"/

/** The sampled transfer with another number, made now. */
export const transferMessage = ({ transfer }: Sample, number: number): string =>
  transfer.replace(STAMP_PATTERN, `"to":"${timeAsAddress(nowMicros())}","raw":"${number}"`)

/** The sampled seal with this many transfers. */
export function sealMessage({ seal }: Sample, transfers: number): string {
  const whole: { keys: string[]; types: string[]; count: number } = JSON.parse(seal)
  const fill = (list: readonly string[]) => Array.from({ length: transfers }, (_, at) => list[at % list.length] ?? '')
  return JSON.stringify({ ...whole, keys: fill(whole.keys), types: fill(whole.types), count: transfers })
}

/** Messages that are sent together, in the bytes of a transport. */
export function encodeMessages(messages: readonly string[], format: FeedFormat, { id, isChunked }: Sample): Buffer {
  if (format === 'lines') return Buffer.from(messages.join('\n'))
  if (format === 'ws') return Buffer.concat(messages.map(encodeTextFrame))
  const events = Buffer.from(messages.map((message) => `id: ${id}\ndata: ${message}\n\n`).join(''))
  if (!isChunked) return events
  return Buffer.concat([Buffer.from(`${events.length.toString(16)}\r\n`), events, Buffer.from('\r\n')])
}

function encodeTextFrame(text: string): Buffer {
  const payload = Buffer.from(text)
  const { length } = payload
  if (length < 126) return Buffer.concat([Buffer.from([0x81, length]), payload])
  if (length < 65_536) return Buffer.concat([Buffer.from([0x81, 126, length >> 8, length & 0xff]), payload])
  const header = Buffer.from([0x81, 127, 0, 0, 0, 0, 0, 0, 0, 0])
  header.writeUInt32BE(length, 6)
  return Buffer.concat([header, payload])
}
