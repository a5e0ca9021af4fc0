import type { HttpBindings } from '@hono/node-server'
import type { Context, Handler } from 'hono'
import type { RouteId } from '../../../protocol/routes.ts'
import type { StreamServices } from '../live/edge-context.ts'

export type Env = { Bindings: HttpBindings }

/** The handlers of some routes, by their names in the table. */
export type Handlers<Id extends RouteId = RouteId> = Readonly<Record<Id, Handler<Env>>>

export const queryOf = (c: Context<Env>): URLSearchParams => new URL(c.req.url).searchParams

/** The query of a request that is allowed; throws why it is not. */
export function authorizedQuery(c: Context<Env>, { authorize }: Pick<StreamServices, 'authorize'>): URLSearchParams {
  const query = queryOf(c)
  const refusal = authorize(c.env.incoming, query)
  if (refusal) throw refusal
  return query
}

/** An answer in the tape's own bytes. The next request may get another one. */
export const sendJson = (c: Context<Env>, text: string): Response =>
  c.body(text, 200, { 'content-type': 'application/json', 'cache-control': 'no-store' })
