import { codes, Fault } from './fault.ts'

/** How many requests one batch may hold. */
const BATCH_BOUND = 50

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
  if (!Array.isArray(body)) return { batch: false, requests: [readRequest(body, text)] }
  if (body.length === 0) throw new Fault(codes.request, 'invalid request: a batch holds at least one request')
  if (body.length > BATCH_BOUND)
    throw new Fault(
      codes.request,
      `invalid request: a batch holds at most ${BATCH_BOUND} requests, this one ${body.length}`,
    )
  // Where an id lost digits, all are read again with theirs.
  const exact = body.some((one) => lostDigits(idIn(one))) ? exactIds(text) : null
  return { batch: true, requests: body.map((one, at) => readRequest(one, null, exact?.[at])) }
}

export const isMisfit = (one: Request | Misfit): one is Misfit => 'fault' in one

function parse(text: string): unknown {
  try {
    return JSON.parse(text)
  } catch {
    throw new Fault(codes.parse, 'parse error: the body is not JSON')
  }
}

function readRequest(body: unknown, text: string | null, exact?: string): Request | Misfit {
  const given = idIn(body)
  const isId = given === undefined || given === null || typeof given === 'string' || typeof given === 'number'
  const written = exact ?? (text !== null && lostDigits(given) ? exactIds(text)?.[0] : undefined)
  const id = !isId || given === undefined ? null : (written ?? JSON.stringify(given))
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

/** A number that JSON can write and no double can hold would come back as another. */
const lostDigits = (id: unknown): boolean =>
  typeof id === 'number' && !(Number.isSafeInteger(id) || String(id).length < SHORT_CHARS)

/** A fraction of so few characters is one that a double holds to its last digit. */
const SHORT_CHARS = 15

/** The ids of a body's requests as they are written in it. */
function exactIds(text: string): readonly (string | undefined)[] {
  const written = JSON.parse(text, (key, value: unknown, { source }: { source?: string } = {}) =>
    key === 'id' && typeof value === 'number' && source !== undefined ? new Written(source) : value,
  )
  return [written].flat().map((one) => {
    const id = idIn(one)
    return id instanceof Written ? id.source : undefined
  })
}

class Written {
  readonly source: string

  constructor(source: string) {
    this.source = source
  }
}
