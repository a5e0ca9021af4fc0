import { STATUS_CODES } from 'node:http'
import type { Duplex } from 'node:stream'
import { RequestError } from '@hono/node-server'
import type { Context } from 'hono'
import type { ContentfulStatusCode } from 'hono/utils/http-status'
import { printableText } from '../../../lib/text.ts'
import { udfErrorOf } from '../../../protocol/bars/udf.ts'
import type { Refusal } from '../../../protocol/refusal.ts'
import { internalError, unreadableAddress } from '../limits/refusals.ts'
import { EXPOSED_HEADERS, safetyHeaders } from './shared-headers.ts'

const RETRY_AFTER_S = '1'
/** The versions of WebSocket that the relay supports. A refused handshake must name them (RFC 6455 §4.4). */
const WEBSOCKET_VERSIONS = '13, 8'

const isTemporary = ({ code }: Refusal): boolean => code === 503 || code === 429

/** Answers with the error record of a refusal, in the form of UDF for charts, or with its sentence on a route that answers with text. */
export function sendRefusal(c: Context, refusal: Refusal, form: 'json' | 'udf' | 'text' = 'json'): Response {
  c.header('access-control-allow-origin', '*')
  c.header('access-control-expose-headers', EXPOSED_HEADERS.join(', '))
  if (isTemporary(refusal)) c.header('retry-after', RETRY_AFTER_S)
  if (refusal.code === 401) c.header('www-authenticate', 'Bearer')
  const status = refusal.code as ContentfulStatusCode
  if (form === 'text') return c.text(`${printableText(refusal.message)}\n`, status)
  return c.json(form === 'udf' ? udfErrorOf(refusal) : refusal.record, status)
}

export const refusalHeaders = {
  'content-type': 'application/json',
  'access-control-allow-origin': '*',
  connection: 'close',
} as const

export function refusalResponse(failure: unknown): Response {
  const { code, record } = failure instanceof RequestError ? unreadableAddress : internalError
  return Response.json(record, { status: code, headers: refusalHeaders })
}

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
