import { RequestError } from '@hono/node-server'
import type { Context } from 'hono'
import type { ContentfulStatusCode } from 'hono/utils/http-status'
import { printableText } from '../../../lib/text.ts'
import { Refusal } from '../../../protocol/refusal.ts'
import { EXPOSED_HEADERS } from '../transport/shared-headers.ts'
import { internalError, isTemporary, RETRY_AFTER_S } from '../transport/shared-refusals.ts'

/** Limit of the number of headers of a request. Clients of the relay send fewer. */
export const HEADERS_BOUND = 50
/** Limit of the characters of a name in the path that a refusal repeats. */
const NAME_BOUND_CHARS = 40

export const unknownPath = new Refusal(404, 'unknown_path', 'There is nothing at this path; /docs says what there is.')
export const onlyIngests = new Refusal(
  404,
  'only_ingests',
  'This process only writes the tape (ROLE=ingest): ask an edge, which serves it.',
)
export const upgradeRequired = new Refusal(426, 'upgrade_required', 'This is a WebSocket: connect with ws:// and an upgrade.')
export const noApiKeys = new Refusal(404, 'no_keys', 'This relay requires no key, so it gives no tokens.')
export const metricsForbidden = new Refusal(
  403,
  'forbidden',
  'Metrics are served to this machine, and to others with METRICS_TOKEN as their bearer token.',
)
export const tooManyHeaders = new Refusal(431, 'too_many_headers', `A request has at most ${HEADERS_BOUND} headers.`)
/** Whether a request has too many headers. `rawHeaders` contains each name, followed by its value. */
export const hasTooManyHeaders = ({ length }: readonly string[]): boolean => length > 2 * HEADERS_BOUND

export const unreadableAddress = new Refusal(400, 'bad_request', 'The address or the host of this request cannot be read.')
export const wrongHttpVersion = new Refusal(400, 'bad_handshake', 'A WebSocket begins with HTTP/1.1.')

export const methodNotAllowed = (method: string, advice: string): Refusal =>
  new Refusal(405, 'method_not_allowed', `${method} is not answered here; ${advice}`)

export const unknownSchema = (name: string): Refusal =>
  new Refusal(
    404,
    'unknown_schema',
    `No schema '${name.slice(0, NAME_BOUND_CHARS)}': there is one for each type of message, such as /schemas/transfer.json.`,
  )

export const unreadableRequest = (status: number): Refusal =>
  new Refusal(status, 'bad_request', 'This request cannot be read as HTTP, is too large or too slow.')

export const badHandshake = (reason: string): Refusal => new Refusal(400, 'bad_handshake', `${reason}.`)

export const unknownWebSocketPath = (paths: readonly string[]): Refusal =>
  new Refusal(404, 'unknown_path', `There is no WebSocket at this path; they are at ${paths.join(' and ')}.`)

/** Answers with the error record of a refusal, or with its sentence on a route that answers with text. */
export function sendRefusal(c: Context, refusal: Refusal, form: 'json' | 'text' = 'json'): Response {
  c.header('access-control-allow-origin', '*')
  c.header('access-control-expose-headers', EXPOSED_HEADERS.join(', '))
  if (isTemporary(refusal)) c.header('retry-after', RETRY_AFTER_S)
  if (refusal.code === 401) c.header('www-authenticate', 'Bearer')
  const status = refusal.code as ContentfulStatusCode
  return form === 'text' ? c.text(`${printableText(refusal.message)}\n`, status) : c.json(refusal.record, status)
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
