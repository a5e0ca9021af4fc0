import { RESPONSE_ALREADY_SENT } from '@hono/node-server/utils/response'
import type { Context } from 'hono'
import { publicHeaders } from '../transport/exposed-headers.ts'
import type { Env, Handlers } from './handlers.ts'
import { unknownSchema } from './http-refusals.ts'
import { matchesEtag } from './token-list-routes.ts'

/** How long others may keep a document: a new version of the service may have another one. */
const MAX_AGE_S = 300

/** A document as it is sent. */
type PublishedDocument = {
  readonly type: string
  /** As they are sent: each answer would else hold a copy of its own until its client has read it. */
  readonly bytes: Uint8Array<ArrayBuffer>
  readonly etag: string
  /** Null for a document that is not a page. */
  readonly contentSecurityPolicy: string | null
}

/** Makes or reads the documents, by their paths. They never change while the process runs. */
export type LoadDocuments = () => Promise<ReadonlyMap<string, PublishedDocument>>

/** Sends the document at the path of a request. Only a schema can be missing. */
async function sendDocument(c: Context<Env>, loadDocuments: LoadDocuments): Promise<Response> {
  const found = (await loadDocuments()).get(c.req.path)
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

type DocumentRoute = 'openapi' | 'asyncapi' | 'docs' | 'llms' | 'types' | 'contract' | 'schema'

/** The documents, the schemas and the page. They are loaded when the first of them is asked for. */
export const documentHandlers = (loadDocuments: LoadDocuments): Handlers<DocumentRoute> => {
  const send = (c: Context<Env>) => sendDocument(c, loadDocuments)
  return { openapi: send, asyncapi: send, docs: send, llms: send, types: send, contract: send, schema: send }
}
