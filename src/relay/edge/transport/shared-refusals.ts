import { STATUS_CODES } from 'node:http'
import type { Duplex } from 'node:stream'
import { Refusal } from '../../../protocol/refusal.ts'
import { safetyHeaders } from './shared-headers.ts'

export const RETRY_AFTER_S = '1'
/** The versions of WebSocket that the relay supports. A refused handshake must name them (RFC 6455 §4.4). */
const WEBSOCKET_VERSIONS = '13, 8'

/** Refusals that several routes give, so that a client gets the same sentence from each. */

export const goingAway = new Refusal(503, 'going_away', 'This server is about to stop; retry in a moment.')
export const lagging = new Refusal(
  503,
  'lagging',
  'This server has not received the tape up to your position yet; retry with the same position.',
)
export const internalError = new Refusal(500, 'internal', 'Something failed on this side; try again.')

export const isTemporary = ({ code }: Refusal): boolean => code === 503 || code === 429

const SAFETY_LINES = Object.entries(safetyHeaders)
  .map(([name, value]) => `${name}: ${value}\r\n`)
  .join('')

/** Sends a refusal in plain HTTP on a socket that did not become a WebSocket, or that sent no readable request. */
export function sendRawRefusal(socket: Duplex, refusal: Refusal): void {
  const body = JSON.stringify(refusal.record)
  const retry = isTemporary(refusal) ? `retry-after: ${RETRY_AFTER_S}\r\n` : ''
  const versions = refusal.reason === 'bad_handshake' ? `sec-websocket-version: ${WEBSOCKET_VERSIONS}\r\n` : ''
  socket.end(
    `HTTP/1.1 ${refusal.code} ${STATUS_CODES[refusal.code]}\r\nconnection: close\r\ncontent-type: application/json\r\n` +
      `access-control-allow-origin: *\r\n${SAFETY_LINES}` +
      `${versions}${retry}content-length: ${Buffer.byteLength(body)}\r\n\r\n${body}`,
    () => socket.destroy(),
  )
}
