import type { Context } from 'hono'
import { documents } from '../../docs/documents.ts'
import type { Env, Handlers } from './handlers.ts'
import { unknownSchema } from './refusals.ts'
import { matchesEtag } from './token-list-routes.ts'

/** How long others may keep a document: a new version of the service may have another one. */
const MAX_AGE_S = 300

/** Sends the document at the path of a request. Only a schema can be missing. */
function sendDocument(c: Context<Env>): Response {
  const found = documents.get(c.req.path)
  if (!found) throw unknownSchema(c.req.param('type') ?? '')
  const { type, body, etag, contentSecurityPolicy } = found
  const headers = {
    etag: etag,
    'cache-control': `public, max-age=${MAX_AGE_S}`,
    'x-content-type-options': 'nosniff',
    ...(contentSecurityPolicy ? { 'content-security-policy': contentSecurityPolicy, 'referrer-policy': 'no-referrer' } : {}),
  }
  return matchesEtag(c.req.header('if-none-match'), etag)
    ? c.body(null, 304, headers)
    : c.body(body, 200, { ...headers, 'content-type': type })
}

/** The documents, the schemas and the page. */
export const documentHandlers: Handlers = {
  openapi: sendDocument,
  asyncapi: sendDocument,
  docs: sendDocument,
  llms: sendDocument,
  types: sendDocument,
  contract: sendDocument,
  schema: sendDocument,
}
