import { isUtf8 } from 'node:buffer'
import type { IncomingMessage, ServerResponse } from 'node:http'
import { Budget } from '../edge/limits/byte-budget.ts'
import { EXPOSED } from '../edge/live/http-stream.ts'
import type { Rates } from './rate-limit.ts'
import { readBody } from './request-body.ts'
import { type Caller, type Reply, refusalOf, reply, type Service } from './rpc-batch.ts'
import { codes, Fault } from './rpc-error.ts'

/** How large a body may be, and what all that are being read may hold together. */
const BODY_BOUND_BYTES = 524_288
const BODIES_BOUND_BYTES = 64 * 2 ** 20
/** Whoever takes nothing of an answer for this long is gone. */
const STALLED_BOUND_MS = 30_000
/** Seconds. ethers takes a number without a leading zero for milliseconds, and would be back, and gone, at once. */
const RETRY_AFTER_S = '01'
/** What is read where bytes are no text: nothing, which is no JSON. */
const NO_TEXT = ''

const tooLarge = new Fault(codes.request, `invalid request: a body has at most ${BODY_BOUND_BYTES} bytes`, 413)
const noRoom = new Fault(codes.limit, 'too many requests are being read at once; come back in a moment', 503)
const HEADERS = {
  'content-type': 'application/json',
  'cache-control': 'no-store',
  'access-control-allow-origin': '*',
  'access-control-expose-headers': EXPOSED.join(', '),
  'x-content-type-options': 'nosniff',
} as const

type Options = {
  readonly service: Service
  readonly rates: Rates
  /** What long answers hold until they are taken. */
  readonly unsent: Budget
  /** Whom a request is counted for. */
  readonly addressOf: (incoming: IncomingMessage) => string
  readonly uptime: () => number
}

/** JSON-RPC over HTTP: one body, one answer, whatever its content type says. */
export class RpcPosts {
  readonly #options: Options
  readonly #bodies = new Budget(BODIES_BOUND_BYTES)

  constructor(options: Options) {
    this.#options = options
  }

  async answer(incoming: IncomingMessage, outgoing: ServerResponse): Promise<void> {
    const body = await readBody(incoming, BODY_BOUND_BYTES, this.#bodies)
    if (body === 'gone') return
    if (body === 'too_large') return this.#send(outgoing, refusalOf(tooLarge), '')
    if (body === 'no_room') return this.#send(outgoing, refusalOf(noRoom), '')
    const { service } = this.#options
    const caller = this.#caller(incoming)
    await reply(textOf(body), service, caller, (said) => this.#send(outgoing, said, caller.who))
  }

  #caller(incoming: IncomingMessage): Caller {
    const { rates, unsent, addressOf, uptime } = this.#options
    const who = addressOf(incoming)
    return {
      who,
      // One answer has one status, so one request too many refuses all of a batch.
      counts: (methods) => {
        const may = rates.take(who, methods, uptime())
        return methods.map(() => may)
      },
      isLocal: () => false,
      carryOut: () => 'null',
      holds: (bytes) => unsent.take(bytes, who),
      hasStatus: true,
    }
  }

  #send(outgoing: ServerResponse, { status, pieces, held }: Reply, who: string): void {
    // Called at once where nobody is there any more.
    if (held > 0) whenOver(outgoing, () => this.#options.unsent.give(held, who))
    if (outgoing.destroyed) return
    if (pieces.length === 0) return void outgoing.writeHead(204, HEADERS).end()
    const retry = status === 429 || status === 503 ? { 'retry-after': RETRY_AFTER_S } : {}
    outgoing.writeHead(status, { ...HEADERS, ...retry, 'content-length': lengthOf(pieces) })
    outgoing.setTimeout(STALLED_BOUND_MS, () => outgoing.destroy())
    if (held === 0) return void outgoing.end(Buffer.concat(pieces))
    for (const piece of pieces) outgoing.write(piece)
    outgoing.end()
  }
}

/** The text of a body or a message; what is not UTF-8 is none. */
export const textOf = (bytes: Buffer): string => (isUtf8(bytes) ? bytes.toString('utf8') : NO_TEXT)

const lengthOf = (pieces: readonly Buffer[]): number => pieces.reduce((sum, { length }) => sum + length, 0)

function whenOver(outgoing: ServerResponse, act: () => void): void {
  if (outgoing.destroyed) act()
  else outgoing.once('close', act)
}
