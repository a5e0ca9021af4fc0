import { isUtf8 } from 'node:buffer'
import { parseJson } from '../../lib/safe-json.ts'
import { errorCodes, RpcError } from './rpc-error.ts'

/** Limit of requests in one batch. ethers sends batches of up to this number by default. */
export const BATCH_BOUND = 100
/** Limit of a refused batch whose requests get an error each: client libraries expect one answer per id. */
const REFUSED_BATCH_BOUND = 1_000

/** A request. `id` is JSON text, or null for a notification, which gets no answer. */
export type ClientRequest = { readonly id: string | null; readonly method: string; readonly params: unknown }
export type InvalidRequest = { readonly id: string; readonly error: RpcError }

export type RpcBody = { readonly isBatch: boolean; readonly requests: readonly (ClientRequest | InvalidRequest)[] }

const NULL_ID = 'null'
/** The text of a body that is not UTF-8. It is not JSON, so the client gets a parse error. */
const NO_TEXT = ''

export const decodeText = (bytes: Buffer): string => (isUtf8(bytes) ? bytes.toString('utf8') : NO_TEXT)

/** Reads a body; throws if it does not even contain an id. */
export function parseRpcBody(text: string): RpcBody {
  const body = parseJson(text)
  if (body === undefined) throw new RpcError(errorCodes.parseError, 'parse error: the body is not JSON')
  if (!Array.isArray(body)) return { isBatch: false, requests: [readRequest(body, readIdTexts([body], text)[0])] }
  if (body.length === 0) throw new RpcError(errorCodes.invalidRequest, 'invalid request: a batch holds at least one request')
  const batchError = body.length > BATCH_BOUND ? batchTooLong(body.length) : null
  if (batchError && body.length > REFUSED_BATCH_BOUND) throw batchError
  const idTexts = readIdTexts(body, text)
  const requests = body.map((item, index) => readRequest(item, idTexts[index]))
  return { isBatch: true, requests: batchError ? requests.map(({ id }) => ({ id: id ?? NULL_ID, error: batchError })) : requests }
}

const batchTooLong = (count: number): RpcError =>
  new RpcError(errorCodes.invalidRequest, `invalid request: a batch holds at most ${BATCH_BOUND} requests, this one ${count}`)

export const isInvalidRequest = (request: ClientRequest | InvalidRequest): request is InvalidRequest => 'error' in request

function readRequest(body: unknown, idText: string | undefined): ClientRequest | InvalidRequest {
  const rawId = idIn(body)
  const isId = rawId === undefined || rawId === null || typeof rawId === 'string' || typeof rawId === 'number'
  const id = !isId || rawId === undefined ? null : typeof rawId === 'number' && idText ? idText : JSON.stringify(rawId)
  const invalid = (why: string): InvalidRequest => ({
    id: id ?? NULL_ID,
    error: new RpcError(errorCodes.invalidRequest, `invalid request: ${why}`),
  })
  if (typeof body !== 'object' || body === null || Array.isArray(body)) return invalid('a request is an object')
  const { jsonrpc, method, params = null } = body as Record<string, unknown>
  if (!isId) return invalid('id is a string, a number or null')
  if (jsonrpc !== '2.0') return invalid('jsonrpc must be "2.0"')
  if (typeof method !== 'string') return invalid('method must be a string')
  if (typeof params !== 'object') return invalid('params must be an array')
  return { id, method, params: params ?? [] }
}

const idIn = (body: unknown): unknown => (typeof body === 'object' && body !== null && 'id' in body ? body.id : undefined)

/** Matches a body whose id may differ after parsing: a fraction, an exponent, an escaped key. */
const mayLosePrecision = /"id"\s*:\s*-?\d*[.eE]|\\u00/
const numberToken = /-?\d[-+.\deE]*/y

/** Returns the numeric ids of requests in the client's own digits: a double would change a number that it cannot hold. */
function readIdTexts(requests: readonly unknown[], text: string): readonly (string | undefined)[] {
  const numbers = requests.map(idIn).filter((id) => typeof id === 'number')
  if (numbers.length === 0 || (numbers.every(Number.isSafeInteger) && !mayLosePrecision.test(text))) return []
  const ids: (string | undefined)[] = []
  const level = text.trimStart().startsWith('[') ? 2 : 1
  let [depth, index, key, isKey] = [0, 0, '', true]
  for (let at = 0; at < text.length; at += 1) {
    const sign = text[at]
    if (sign === '{' || sign === '[') {
      depth += 1
      isKey = depth === level && sign === '{'
    } else if (sign === '}' || sign === ']') depth -= 1
    else if (sign === ',') {
      if (depth === level - 1) index += 1
      isKey = depth === level
    } else if (sign === ':') isKey = false
    else if (sign === '"') {
      const end = endOfString(text, at)
      if (depth === level && isKey) key = textOfString(text.slice(at, end))
      at = end - 1
    } else if (depth === level && key === 'id' && !isKey) {
      numberToken.lastIndex = at
      const [number] = numberToken.exec(text) ?? []
      if (number) ids[index] = number
      at += Math.max(0, (number ?? '').length - 1)
    }
  }
  return ids
}

/** Returns the end of the string that begins at `start`: after a quote with an even number of backslashes before it. */
function endOfString(text: string, start: number): number {
  for (let quote = text.indexOf('"', start + 1); ; quote = text.indexOf('"', quote + 1)) {
    let backslashes = 0
    while (text[quote - 1 - backslashes] === '\\') backslashes += 1
    if (backslashes % 2 === 0) return quote + 1
  }
}

const textOfString = (json: string): string => (json.includes('\\') ? JSON.parse(json) : json.slice(1, -1))
