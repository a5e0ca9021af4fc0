import { isUtf8 } from 'node:buffer'
import type { IncomingMessage, ServerResponse } from 'node:http'
import { ByteBudget } from '../edge/limits/byte-budget.ts'
import { EXPOSED_HEADERS } from '../edge/transport/exposed-headers.ts'
import type { RateLimiter } from './rate-limit.ts'
import { readBody } from './request-body.ts'
import { answerBody, type Caller, errorReply, type Reply, type RpcBackend } from './rpc-batch.ts'
import { errorCodes, RpcError } from './rpc-error.ts'

/** How large a body may be, and what all that are being read may hold together. */
const BODY_BOUND_BYTES = 524_288
const BODIES_BOUND_BYTES = 64 * 2 ** 20
/** Whoever takes nothing of an answer for this long is gone. */
const STALLED_BOUND_MS = 30_000
/** Seconds. ethers takes a number without a leading zero for milliseconds, and would be back, and gone, at once. */
const RETRY_AFTER_S = '01'
/** What is read where bytes are no text: nothing, which is no JSON. */
const NO_TEXT = ''

const tooLarge = new RpcError(
  errorCodes.invalidRequest,
  `invalid request: a body has at most ${BODY_BOUND_BYTES} bytes`,
  413,
)
const noCapacity = new RpcError(
  errorCodes.limitExceeded,
  'too many requests are being read at once; come back in a moment',
  503,
)
const HEADERS = {
  'content-type': 'application/json',
  'cache-control': 'no-store',
  'access-control-allow-origin': '*',
  'access-control-expose-headers': EXPOSED_HEADERS.join(', '),
  'x-content-type-options': 'nosniff',
} as const

type Options = {
  readonly backend: RpcBackend
  readonly rates: RateLimiter
  /** What long answers hold until they are taken. */
  readonly unsentBudget: ByteBudget
  /** Whom a request is counted for. */
  readonly addressOf: (incoming: IncomingMessage) => string
  readonly uptime: () => number
}

/** JSON-RPC over HTTP: one body, one answer, whatever its content type says. */
export class RpcHttpHandler {
  readonly #options: Options
  readonly #bodies = new ByteBudget(BODIES_BOUND_BYTES)

  constructor(options: Options) {
    this.#options = options
  }

  async handle(incoming: IncomingMessage, outgoing: ServerResponse): Promise<void> {
    const body = await readBody(incoming, BODY_BOUND_BYTES, this.#bodies)
    if (body === 'gone') return
    if (body === 'too_large') return this.#send(outgoing, errorReply(tooLarge), '')
    if (body === 'no_room') return this.#send(outgoing, errorReply(noCapacity), '')
    const { backend } = this.#options
    const caller = this.#caller(incoming)
    await answerBody(decodeText(body), backend, caller, (answer) => this.#send(outgoing, answer, caller.client))
  }

  #caller(incoming: IncomingMessage): Caller {
    const { rates, unsentBudget, addressOf, uptime } = this.#options
    const client = addressOf(incoming)
    return {
      client,
      // One answer has one status, so one request too many refuses all of a batch.
      takeRate: (methods) => {
        const isAllowed = rates.take(client, methods, uptime())
        return methods.map(() => isAllowed)
      },
      isLocal: () => false,
      runLocal: () => 'null',
      reserve: (bytes) => unsentBudget.reserve(bytes, client),
      hasHttpStatus: true,
    }
  }

  #send(outgoing: ServerResponse, { status, chunks, reservedBytes }: Reply, client: string): void {
    // Called at once where nobody is there any more.
    if (reservedBytes > 0) whenClosed(outgoing, () => this.#options.unsentBudget.release(reservedBytes, client))
    if (outgoing.destroyed) return
    if (chunks.length === 0) return void outgoing.writeHead(204, HEADERS).end()
    const retry = status === 429 || status === 503 ? { 'retry-after': RETRY_AFTER_S } : {}
    outgoing.writeHead(status, { ...HEADERS, ...retry, 'content-length': byteLengthOf(chunks) })
    outgoing.setTimeout(STALLED_BOUND_MS, () => outgoing.destroy())
    if (reservedBytes === 0) return void outgoing.end(Buffer.concat(chunks))
    for (const piece of chunks) outgoing.write(piece)
    outgoing.end()
  }
}

/** The text of a body or a message; what is not UTF-8 is none. */
export const decodeText = (bytes: Buffer): string => (isUtf8(bytes) ? bytes.toString('utf8') : NO_TEXT)

const byteLengthOf = (pieces: readonly Buffer[]): number => pieces.reduce((sum, { length }) => sum + length, 0)

function whenClosed(outgoing: ServerResponse, action: () => void): void {
  if (outgoing.destroyed) action()
  else outgoing.once('close', action)
}
