import { RESPONSE_ALREADY_SENT } from '@hono/node-server/utils/response'
import type { Context } from 'hono'
import { documents } from '../../../docs/documents.ts'
import { publicHeaders } from '../transport/exposed-headers.ts'
import type { Env, Handlers } from './handlers.ts'
import { unknownSchema } from './refusals.ts'
import { matchesEtag } from './token-list-routes.ts'

/** How long others may keep a document: a new version of the service may have another one. */
const MAX_AGE_S = 300

/** Sends the document at the path of a request. Only a schema can be missing. */
function sendDocument(c: Context<Env>): Response {
  const found = documents.get(c.req.path)
  if (!found) throw unknownSchema(c.req.param('type') ?? '')
  const { type, bytes, etag, contentSecurityPolicy } = found
  const headers = {
    ...publicHeaders,
    etag: etag,
    'cache-control': `public, max-age=${MAX_AGE_S}`,
    ...(contentSecurityPolicy ? { 'content-security-policy': contentSecurityPolicy } : {}),
  }
  if (matchesEtag(c.req.header('if-none-match'), etag)) return c.body(null, 304, headers)
  const head = { ...headers, 'content-type': type, 'content-length': String(bytes.length) }
  if (c.req.method === 'HEAD') return c.body(null, 200, head)
  const { outgoing } = c.env
  outgoing.writeHead(200, head)
  // Node copies what goes out in one write with the head, and many slow readers would hold as many copies.
  outgoing.flushHeaders()
  outgoing.end(bytes)
  return RESPONSE_ALREADY_SENT
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
