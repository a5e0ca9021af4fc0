import { z } from 'zod'
import { parseJson } from '../../lib/safe-json.ts'

const BATCH_BOUND = 100

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

export type RpcHandler = (method: string, params: unknown) => unknown

export type RpcReply = { status: number; text: string }

const Id = z.union([z.int(), z.string(), z.null()])
const RpcRequest = z.object({ jsonrpc: z.literal('2.0'), id: Id, method: z.string(), params: z.array(z.unknown()).default([]) })

export const handleRequest = (text: string, call: RpcHandler): RpcReply => {
  const request = parseJson(text)
  if (request === undefined) return errorReply(new CallError(-32700, 'parse error', 400))
  if (!Array.isArray(request)) return answerRequest(request, call)
  if (request.length === 0) return errorReply(new CallError(-32600, 'must specify at least one batch call', 400))
  if (request.length > BATCH_BOUND) return errorReply(new CallError(-32014, 'too many RPC calls in batch request', 413))
  return { status: 200, text: `[${request.map((item) => answerRequest(item, call).text).join()}]` }
}

const answerRequest = (request: unknown, call: RpcHandler): RpcReply => {
  const parsed = RpcRequest.safeParse(request)
  if (!parsed.success) {
    const { data } = z.object({ id: Id }).safeParse(request)
    return errorReply(new CallError(-32600, 'invalid request', 400), data?.id)
  }
  const { id, method, params } = parsed.data
  try {
    return { status: 200, text: JSON.stringify({ jsonrpc: '2.0', id, result: call(method, params) }) }
  } catch (error) {
    if (!(error instanceof CallError)) throw error
    return errorReply(error, id)
  }
}

export const errorReply = ({ code, message, status }: CallError, id: z.infer<typeof Id> = null): RpcReply => {
  return { status, text: JSON.stringify({ jsonrpc: '2.0', id, error: { code, message } }) }
}
