import type { RejectedSymbol } from '../../../protocol/notices.ts'
import { SYMBOLS_BOUND } from '../../../protocol/parameters/selection.ts'
import { anyFilter } from '../../../protocol/parameters/value-filters.ts'
import { Refusal } from '../../../protocol/refusal.ts'

/** Times after which a refused browser retries: a short one if the relay will soon be ready, a long one if the relay is full. */
const [SOON_RETRY_MS, OVERLOAD_RETRY_MS] = [2_000, 30_000]
/** Limit of the number of headers of a request. Clients of the relay send fewer. */
export const HEADERS_BOUND = 50
/** Limit of the characters of a name in the path that a refusal repeats. */
const NAME_BOUND_CHARS = 40
const PATH_BOUND_CHARS = 100

/** Times after which a browser's EventSource retries, by the reason of a temporary refusal. Any other refusal ends its stream. */
export const browserRetryMs: Readonly<Record<string, number>> = {
  going_away: SOON_RETRY_MS,
  lagging: SOON_RETRY_MS,
  no_list: SOON_RETRY_MS,
  full: OVERLOAD_RETRY_MS,
  too_many_connections: OVERLOAD_RETRY_MS,
  too_many_selections: OVERLOAD_RETRY_MS,
}

// Every refusal of the relay, so that a client gets the same sentence from each route and transport. The close code of a reason is
// in `protocol/close-codes.ts`. A function makes a refusal that names a part of the request.

export const goingAway = new Refusal(503, 'going_away', 'This server is about to stop; retry in a moment.')
export const lagging = new Refusal(
  503,
  'lagging',
  'This server has not received the tape up to your position yet; retry with the same position.',
)
export const noList = new Refusal(503, 'no_list', 'The list of tokenized stocks has not been read yet; retry in a moment.')
export const busy = new Refusal(503, 'busy', 'Too much of the tape is being read at once; retry in a moment.')
export const limitRefusals = {
  full: new Refusal(503, 'full', 'Too many listeners are connected; retry later.'),
  too_many_connections: new Refusal(429, 'too_many_connections', 'Too many listeners are connected from your address; close some.'),
} as const
export const tooManySelections = new Refusal(
  429,
  'too_many_selections',
  `Too many different value filters are in use now; leave out ${anyFilter}.`,
)
export const tooManyMessages = (perSecond: number, atOnce: number): Refusal => {
  const advice = `At most ${perSecond} messages a second, ${atOnce} at once; reconnect and send fewer.`
  return new Refusal(429, 'too_many_messages', advice)
}
export const internalError = new Refusal(500, 'internal', 'Something failed on this side; try again.')

export const apiKeyRequired = new Refusal(
  401,
  'unauthorized',
  'This needs a valid API key: as the header "Authorization: Bearer …", in the message auth, or as key=… in the URL.',
)
export const forbiddenOrigin = new Refusal(403, 'forbidden', 'Pages of this origin may not connect here.')
export const metricsForbidden = new Refusal(
  403,
  'forbidden',
  'Metrics are served to this machine, and to others with METRICS_TOKEN as their bearer token.',
)

export const unknownPath = (path: string): Refusal =>
  new Refusal(404, 'unknown_path', `There is nothing at ${path.slice(0, PATH_BOUND_CHARS)}; /docs says what there is.`)
export const unknownWebSocketPath = (paths: readonly string[]): Refusal =>
  new Refusal(404, 'unknown_path', `There is no WebSocket at this path; they are at ${paths.join(' and ')}.`)
export const onlyIngests = new Refusal(
  404,
  'only_ingests',
  'This process only writes the tape (ROLE=ingest): ask an edge, which serves it.',
)
export const noUpstream = (why: string): Refusal => new Refusal(404, 'no_upstream', `There is no JSON-RPC here: ${why}.`)
export const noApiKeys = new Refusal(404, 'no_keys', 'This relay requires no key, so it gives no tokens.')
export const unknownSchema = (name: string): Refusal =>
  new Refusal(
    404,
    'unknown_schema',
    `No schema '${name.slice(0, NAME_BOUND_CHARS)}': there is one for each type of message, such as /schemas/transfer.json.`,
  )
export const unknownKey = (key: string): Refusal =>
  new Refusal(
    404,
    'unknown_key',
    `No history of ${key}: it was never published, or too long ago. A log that belongs to another log, such as a memo, is published under that log's key and listed in the seal of its block.`,
  )
export function unknownSymbol([first]: readonly RejectedSymbol[]): Refusal {
  const quoted = `'${first?.symbol ?? ''}'`
  const suggest = first?.suggest ?? []
  const hint = suggest.length > 0 ? ` Did you mean ${suggest.join(' or ')}?` : ''
  return first?.reason === 'ambiguous_symbol'
    ? new Refusal(404, 'ambiguous_symbol', `Several tokenized stocks are called ${quoted}: name one by its address.${hint}`, {
        suggest,
      })
    : new Refusal(404, 'unknown_symbol', `No tokenized stock ${quoted}.${hint}`, { suggest })
}
export const otherEpoch = (parameter: string, epoch: string, oldest: string): Refusal =>
  new Refusal(410, 'epoch', `${parameter}: a position of another tape, which is gone; the epoch of this tape is ${epoch}.`, {
    parameter,
    oldest,
  })

export const methodNotAllowed = (method: string, advice: string): Refusal =>
  new Refusal(405, 'method_not_allowed', `${method} is not answered here; ${advice}`)
export const upgradeRequired = new Refusal(426, 'upgrade_required', 'This is a WebSocket: connect with ws:// and an upgrade.')
/** Whether a request has too many headers. `rawHeaders` contains each name, followed by its value. */
export const hasTooManyHeaders = ({ length }: readonly string[]): boolean => length > 2 * HEADERS_BOUND
export const tooManyHeaders = new Refusal(431, 'too_many_headers', `A request has at most ${HEADERS_BOUND} headers.`)
export const unreadableAddress = new Refusal(400, 'bad_request', 'The address or the host of this request cannot be read.')
export const unreadableRequest = (status: number): Refusal =>
  new Refusal(status, 'bad_request', 'This request cannot be read as HTTP, is too large or too slow.')
export const wrongHttpVersion = new Refusal(400, 'bad_handshake', 'A WebSocket begins with HTTP/1.1.')
export const badHandshake = (reason: string): Refusal => new Refusal(400, 'bad_handshake', `${reason}.`)
export const pipelined = new Refusal(400, 'pipelined', 'Request a stream after the earlier answers on its connection have arrived.')

export const badParameter = (parameter: string, advice: string): Refusal =>
  new Refusal(400, 'bad_parameter', `${parameter}: ${advice}`, { parameter })
export const symbolsRequired = badParameter('symbols', 'name at least one symbol, or * for all.')
export const heartbeatsNeeded = badParameter(
  'heartbeat',
  'a WebSocket always has heartbeats: give 1 to 60 seconds, or leave it out.',
)
export const tooManySymbols = new Refusal(
  400,
  'too_many_symbols',
  `At most ${SYMBOLS_BOUND} symbols for one connection; or * for all.`,
)
export const wildcard = new Refusal(400, 'wildcard', 'Single symbols cannot be taken out of *; unsubscribe from * first.')
export const notFirst = (field: 'since' | 'stage'): Refusal =>
  new Refusal(400, `${field}_not_first`, `Only the first subscription of a connection may set ${field}.`)
