import type { IncomingMessage, ServerResponse } from 'node:http'
import { Budget } from '../edge/limits/budget.ts'
import { readBody } from '../edge/limits/request-body.ts'
import { publicHeaders } from '../edge/transport/shared-headers.ts'
import { answerBody, type Caller, errorReply, type Reply } from './answer-rpc-body.ts'
import { errorCodes, limitExceeded, RpcError } from './rpc-error.ts'
import { decodeText } from './rpc-request-parser.ts'
import type { RpcContext } from './rpc-session.ts'

const BODY_BOUND_BYTES = 524_288
/** Limits of the bytes of all bodies that are being read at once, and of those of one client among them. */
const [BODIES_BOUND_BYTES, BODIES_PER_CLIENT_BOUND_BYTES] = [64 * 2 ** 20, 16 * 2 ** 20]
/** `Retry-After` in seconds. ethers reads '1' as one millisecond, and soon gives up. It ignores '01' and uses its own delay. */
const retryAfter = (waitMs: number): string => `0${Math.max(1, Math.ceil(waitMs / 1_000))}`

const tooLarge = new RpcError(errorCodes.invalidRequest, `invalid request: a body has at most ${BODY_BOUND_BYTES} bytes`, 413)
const noCapacity = limitExceeded('too many requests are being read at once; come back in a moment', 503)
const HEADERS = { 'content-type': 'application/json', 'cache-control': 'no-store', ...publicHeaders } as const

type HttpContext = Pick<RpcContext, 'backend' | 'rates' | 'unsentBudget' | 'addressOf' | 'uptime'>

/** Makes the handler of JSON-RPC over HTTP: one answer per body, with any content type. */
export function createRpcHttpHandler({ backend, rates, unsentBudget, addressOf, uptime }: HttpContext) {
  const bodies = new Budget(BODIES_BOUND_BYTES, BODIES_PER_CLIENT_BOUND_BYTES)
  return async (incoming: IncomingMessage, outgoing: ServerResponse): Promise<void> => {
    const client = addressOf(incoming)
    /** The time after which requests over the rate would be allowed. */
    let waitMs = 0
    const send = (reply: Reply): void => {
      const release = () => unsentBudget.release(reply.reservedBytes, client)
      if (outgoing.destroyed) return release()
      outgoing.once('close', release)
      sendReply(outgoing, reply, waitMs)
    }
    const body = await readBody(incoming, BODY_BOUND_BYTES, bodies, client)
    if (body === 'gone') return
    if (body === 'too_large') return send(errorReply(tooLarge))
    if (body === 'no_room') return send(errorReply(noCapacity))
    const caller: Caller = {
      client,
      // An HTTP answer has one status, so one request over the rate refuses the whole batch.
      takeRate: (methods, prepaid) => {
        waitMs = rates.take(client, methods, uptime(), prepaid)
        return methods.map(() => waitMs === 0)
      },
      isLocal: () => false,
      runLocal: () => 'null',
      reserve: (bytes) => unsentBudget.reserve(bytes, client),
      hasHttpStatus: true,
    }
    await answerBody(decodeText(body), backend, caller, send)
  }
}

function sendReply(outgoing: ServerResponse, { status, chunks, reservedBytes }: Reply, waitMs: number): void {
  if (chunks.length === 0) return void outgoing.writeHead(204, HEADERS).end()
  const retry = status === 429 || status === 503 ? { 'retry-after': retryAfter(waitMs) } : {}
  const length = chunks.reduce((sum, piece) => sum + piece.length, 0)
  outgoing.writeHead(status, { ...HEADERS, ...retry, 'content-length': length })
  if (reservedBytes === 0) return void outgoing.end(Buffer.concat(chunks))
  for (const piece of chunks) outgoing.write(piece)
  outgoing.end()
}
