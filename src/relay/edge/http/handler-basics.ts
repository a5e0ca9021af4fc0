import type { HttpBindings } from '@hono/node-server'
import type { Context, Handler } from 'hono'
import type { RouteId } from '../../../protocol/routes.ts'
import type { StreamServices } from '../live/edge-context.ts'

export type Env = { Bindings: HttpBindings }

export type Handlers<Id extends RouteId = RouteId> = Readonly<Record<Id, Handler<Env>>>

export const queryOf = (c: Context<Env>): URLSearchParams => new URL(c.req.url).searchParams

/** The query of a request; throws a refusal if the request is not allowed. */
export function authorizedQuery(c: Context<Env>, { authorize }: Pick<StreamServices, 'authorize'>): URLSearchParams {
  const query = queryOf(c)
  const refusal = authorize(c.env.incoming, query)
  if (refusal) throw refusal
  return query
}

/** Whether `If-None-Match` names this ETag. A weak one matches too, because equal ETags mean equal bytes. */
export const hasCurrent = (c: Context<Env>, etag: string): boolean =>
  (c.req.header('if-none-match') ?? '')
    .split(',')
    .some((candidate) => candidate.trim() === '*' || candidate.trim().replace(/^W\//, '') === etag)

/** Answers with JSON that is not cached, because the next request may get a different answer. */
export const sendJson = (c: Context<Env>, text: string): Response =>
  c.body(text, 200, { 'content-type': 'application/json', 'cache-control': 'no-store' })
