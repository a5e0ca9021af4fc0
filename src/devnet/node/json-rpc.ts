import { z } from 'zod'

/** How many calls one batch may hold. */
const BATCH_BOUND = 100

/** Why a call is not answered: a JSON-RPC error, and the HTTP status that goes with it where it is not 200. */
export class CallError extends Error {
  override name = 'CallError'
  readonly code: number
  readonly status: number

  constructor(code: number, message: string, status = 200) {
    super(message)
    this.code = code
    this.status = status
  }
}

/** One method called with its parameters, unchecked as yet. */
export type Call = (method: string, params: unknown) => unknown

/** An answer's text, and its HTTP status. */
export type Reply = { status: number; text: string }

const Id = z.union([z.int(), z.string(), z.null()])
const Request = z.object({
  jsonrpc: z.literal('2.0'),
  id: Id,
  method: z.string(),
  params: z.array(z.unknown()).default([]),
})

type Answer = { status: number; body: { jsonrpc: '2.0'; id: z.infer<typeof Id>; result?: unknown; error?: unknown } }

/** The answer to a request, or to a batch of them. */
export const reply = (text: string, call: Call): Reply => {
  const request = parse(text)
  if (request === undefined) return written(refusal(null, new CallError(-32700, 'parse error', 400)))
  if (!Array.isArray(request)) return written(answer(request, call))
  if (request.length === 0)
    return written(refusal(null, new CallError(-32600, 'must specify at least one batch call', 400)))
  if (request.length > BATCH_BOUND) {
    return written(refusal(null, new CallError(-32014, 'too many RPC calls in batch request', 413)))
  }
  return { status: 200, text: JSON.stringify(request.map((one) => answer(one, call).body)) }
}

/** An error that answers no request in particular. */
export const failure = (error: CallError): Reply => written(refusal(null, error))

const written = ({ status, body }: Answer): Reply => ({ status, text: JSON.stringify(body) })

const parse = (text: string): unknown => {
  try {
    return JSON.parse(text)
  } catch {
    return undefined
  }
}

const answer = (request: unknown, call: Call): Answer => {
  const read = Request.safeParse(request)
  const id = z.object({ id: Id }).safeParse(request)
  if (!read.success) return refusal(id.data?.id ?? null, new CallError(-32600, 'invalid request', 400))
  try {
    const result = call(read.data.method, read.data.params)
    return { status: 200, body: { jsonrpc: '2.0', id: read.data.id, result } }
  } catch (error) {
    if (!(error instanceof CallError)) throw error
    return refusal(read.data.id, error)
  }
}

const refusal = (id: Answer['body']['id'], { code, message, status }: CallError): Answer => ({
  status,
  body: { jsonrpc: '2.0', id, error: { code, message } },
})
