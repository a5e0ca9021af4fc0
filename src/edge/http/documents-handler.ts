import type { HttpBindings } from '@hono/node-server'
import type { Hono } from 'hono'
import { documents } from '../../docs/documents.ts'
import { Refusal } from '../../protocol/refusal.ts'
import { matchesEtag } from './token-list-routes.ts'

/** How long others may keep a document: a new edition of the service may say something else. */
const MAX_AGE_S = 300

/** Serves what the service says of itself: the documents, the schemas and the page. */
export function serveDocuments(app: Hono<{ Bindings: HttpBindings }>): readonly string[] {
  for (const [path, { type, body, etag, contentSecurityPolicy }] of documents) {
    const headers = {
      etag: etag,
      'cache-control': `public, max-age=${MAX_AGE_S}`,
      'x-content-type-options': 'nosniff',
      ...(contentSecurityPolicy
        ? { 'content-security-policy': contentSecurityPolicy, 'referrer-policy': 'no-referrer' }
        : {}),
    }
    app.get(path, (c) =>
      matchesEtag(c.req.header('if-none-match'), etag)
        ? c.body(null, 304, headers)
        : c.body(body, 200, { ...headers, 'content-type': type }),
    )
  }
  app.get('/schemas/:name', (c) => {
    const message = `No schema '${c.req.param('name').slice(0, 40)}': there is one for each type of message, such as /schemas/transfer.json.`
    throw new Refusal(404, 'unknown_schema', message)
  })
  return [...documents.keys(), '/schemas/:name']
}
