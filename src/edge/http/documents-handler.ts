import type { HttpBindings } from '@hono/node-server'
import type { Hono } from 'hono'
import { documents } from '../../docs/documents.ts'
import { Refusal } from '../../protocol/refusal.ts'
import { knows } from './token-list-routes.ts'

/** How long others may keep a document: a new edition of the service may say something else. */
const KEPT_S = 300

/** Serves what the service says of itself: the documents, the schemas and the page. */
export function serveDocuments(app: Hono<{ Bindings: HttpBindings }>): readonly string[] {
  for (const [path, { type, body, tag, policy }] of documents) {
    const headers = {
      etag: tag,
      'cache-control': `public, max-age=${KEPT_S}`,
      'x-content-type-options': 'nosniff',
      ...(policy ? { 'content-security-policy': policy, 'referrer-policy': 'no-referrer' } : {}),
    }
    app.get(path, (c) =>
      knows(c.req.header('if-none-match'), tag)
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
