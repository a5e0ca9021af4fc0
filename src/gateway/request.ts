import { codes, Fault } from './rpc-error.ts'

/** How many requests one batch may hold. */
const BATCH_BOUND = 50
/** Up to so many, each request of a batch that is too long is refused by itself: libraries look for nothing else. */
const REFUSED_BOUND = 1_000

/** One request as it was read: its id in its own JSON text, null where it is a notification and nothing is answered. */
export type Request = { readonly id: string | null; readonly method: string; readonly params: unknown }
/** What stands in a request's place and is none. */
export type Misfit = { readonly id: string; readonly fault: Fault }

/** What a body holds: one request, or several at once. */
export type Envelope = { readonly batch: boolean; readonly requests: readonly (Request | Misfit)[] }

const NO_ID = 'null'

/** Reads a body; throws where not even an id can be found in it. */
export function readEnvelope(text: string): Envelope {
  const body = parse(text)
  if (!Array.isArray(body)) return { batch: false, requests: [readRequest(body, writtenIds([body], text)[0])] }
  if (body.length === 0) throw new Fault(codes.request, 'invalid request: a batch holds at least one request')
  const fault = body.length > BATCH_BOUND ? tooLong(body.length) : null
  if (fault && body.length > REFUSED_BOUND) throw fault
  const written = writtenIds(body, text)
  const requests = body.map((one, at) => readRequest(one, written[at]))
  return { batch: true, requests: fault ? requests.map(({ id }) => ({ id: id ?? NO_ID, fault })) : requests }
}

const tooLong = (count: number): Fault =>
  new Fault(codes.request, `invalid request: a batch holds at most ${BATCH_BOUND} requests, this one ${count}`)

export const isMisfit = (one: Request | Misfit): one is Misfit => 'fault' in one

function parse(text: string): unknown {
  try {
    return JSON.parse(text)
  } catch {
    throw new Fault(codes.parse, 'parse error: the body is not JSON')
  }
}

function readRequest(body: unknown, written: string | undefined): Request | Misfit {
  const given = idIn(body)
  const isId = given === undefined || given === null || typeof given === 'string' || typeof given === 'number'
  const id =
    !isId || given === undefined ? null : typeof given === 'number' && written ? written : JSON.stringify(given)
  const misfit = (why: string): Misfit => ({
    id: id ?? NO_ID,
    fault: new Fault(codes.request, `invalid request: ${why}`),
  })
  if (typeof body !== 'object' || body === null || Array.isArray(body)) return misfit('a request is an object')
  const { jsonrpc, method, params = null } = body as Record<string, unknown>
  if (!isId) return misfit('id is a string, a number or null')
  if (jsonrpc !== '2.0') return misfit('jsonrpc must be "2.0"')
  if (typeof method !== 'string') return misfit('method must be a string')
  if (typeof params !== 'object') return misfit('params must be an array')
  return { id, method, params: params ?? [] }
}

const idIn = (body: unknown): unknown =>
  typeof body === 'object' && body !== null && 'id' in body ? body.id : undefined

/** A double is told from the number that was written only where that has no fraction, no exponent and few digits. */
const mayLose = /"id"\s*:\s*-?\d*[.eE]|\\u00/
const token = /"[^"\\]*(?:\\.[^"\\]*)*"|[[\]{},:]|[^\s[\]{},:"]+/g

/**
 * The ids of a body's requests as they are written in it, where they are numbers: a number that JSON can write and no
 * double can hold would come back as another. The text is known to be JSON, however deep.
 */
function writtenIds(requests: readonly unknown[], text: string): readonly (string | undefined)[] {
  const numbers = requests.map(idIn).filter((id) => typeof id === 'number')
  if (numbers.length === 0 || (numbers.every(Number.isSafeInteger) && !mayLose.test(text))) return []
  const ids: (string | undefined)[] = []
  const level = text.trimStart().startsWith('[') ? 2 : 1
  let [depth, at, key, isKey] = [0, 0, '', true]
  for (const [word] of text.matchAll(token)) {
    if (word === '{' || word === '[') {
      depth += 1
      isKey = depth === level && word === '{'
    } else if (word === '}' || word === ']') depth -= 1
    else if (word === ',') {
      if (depth === level - 1) at += 1
      isKey = depth === level
    } else if (word === ':') isKey = false
    else if (depth === level && isKey) key = JSON.parse(word)
    else if (depth === level && key === 'id') ids[at] = word
  }
  return ids
}
