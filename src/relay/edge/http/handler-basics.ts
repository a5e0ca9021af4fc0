import type { Hash } from 'node:crypto'
import type { HttpBindings } from '@hono/node-server'
import { RESPONSE_ALREADY_SENT } from '@hono/node-server/utils/response'
import type { Context, Handler } from 'hono'
import type { RouteId } from '../../../protocol/routes.ts'
import { PerTickQueue } from '../limits/per-tick-queue.ts'
import type { EdgeContext } from '../live/edge-context.ts'
import { encodedBody } from '../transport/gzip.ts'

export type Env = { Bindings: HttpBindings }

export type Handlers<Id extends RouteId = RouteId> = Readonly<Record<Id, Handler<Env>>>

export const queryOf = (c: Context<Env>): URLSearchParams => new URL(c.req.url).searchParams

/** The query of a request; throws a refusal if the request is not allowed. */
export function authorizedQuery(c: Context<Env>, { authorize }: Pick<EdgeContext, 'authorize'>): URLSearchParams {
  const query = queryOf(c)
  const refusal = authorize(c.env.incoming, query)
  if (refusal) throw refusal
  return query
}

const ETAG_DIGITS = 32

/** Makes an ETag of a hash. It is weak, because it stands for the compressed form too. */
export const etagOf = (hash: Hash): string => `W/"${hash.digest('hex').slice(0, ETAG_DIGITS)}"`

const opaqueTag = (etag: string): string => etag.replace(/^W\//, '')

/** Whether `If-None-Match` names this ETag. A weak one matches too, because equal ETags mean equal bytes. */
export const hasCurrent = (c: Context<Env>, etag: string): boolean =>
  (c.req.header('if-none-match') ?? '')
    .split(',')
    .some((candidate) => candidate.trim() === '*' || opaqueTag(candidate.trim()) === opaqueTag(etag))

export const acceptEncodingOf = (c: Context<Env>): string | undefined => c.req.header('accept-encoding')

/** Answers with JSON that is not cached, because the next request may get a different answer. */
export async function sendJson(c: Context<Env>, text: string): Promise<Response> {
  const { bytes, headers } = await encodedBody(text, acceptEncodingOf(c))
  return c.body(bytes, 200, { ...headers, 'content-type': 'application/json', 'cache-control': 'no-store' })
}

/** Limit of the bytes of a part, and of the parts of all answers that the system gets in one turn of the event loop. */
const [PART_BYTES, PARTS_PER_TICK] = [32 * 2 ** 10, 4]

/** The next part of each answer waits here; there are no more of them than connections. */
const parts = new PerTickQueue(PARTS_PER_TICK)

/** Answers with bytes that many answers share. A client that does not read them holds no copy in this process. */
export function sendBytes(c: Context<Env>, bytes: Uint8Array, headers: Readonly<Record<string, string>>): Response {
  const head = { ...headers, 'content-length': String(bytes.length) }
  if (c.req.method === 'HEAD') return c.body(null, 200, head)
  const { outgoing } = c.env
  outgoing.writeHead(200, head)
  // The head is written alone, because Node copies a body that it writes with the head.
  outgoing.flushHeaders()
  sendParts(outgoing, bytes)
  return RESPONSE_ALREADY_SENT
}

/** The system copies what a client has not read, which takes long: a crowd of such clients must not delay new connections. */
function sendParts(outgoing: HttpBindings['outgoing'], bytes: Uint8Array): void {
  parts.run(() => {
    if (bytes.length <= PART_BYTES) return void outgoing.end(bytes)
    outgoing.write(bytes.subarray(0, PART_BYTES), (failure) => {
      if (!failure) sendParts(outgoing, bytes.subarray(PART_BYTES))
    })
  })
}
