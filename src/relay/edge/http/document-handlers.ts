import type { Context } from 'hono'
import { unknownSchema } from '../limits/refusals.ts'
import { RepeatedBody, varyHeaders } from '../transport/gzip.ts'
import { publicHeaders } from '../transport/shared-headers.ts'
import { acceptEncodingOf, type Env, hasCurrent, sendBytes } from './handler-basics.ts'

/** Time for which a cache may keep a document. It is short, because a new version of the relay may have other documents. */
const MAX_AGE_S = 300

type PublishedDocument = {
  readonly type: string
  /** Sent without encoding: otherwise each answer would hold a copy of its own until its client has read it. */
  readonly bytes: Uint8Array<ArrayBuffer>
  readonly etag: string
  readonly contentSecurityPolicy: string | null
}

const bodies = new WeakMap<PublishedDocument, RepeatedBody>()

function bodyOf(document: PublishedDocument): RepeatedBody {
  const body = bodies.get(document) ?? new RepeatedBody(document.bytes)
  bodies.set(document, body)
  return body
}

export type LoadDocuments = () => Promise<ReadonlyMap<string, PublishedDocument>>

async function sendDocument(c: Context<Env>, loadDocuments: LoadDocuments): Promise<Response> {
  const found = (await loadDocuments()).get(c.req.path)
  // Only a schema can be missing: the other paths are routes of their own.
  if (!found) throw unknownSchema(c.req.param('type') ?? '')
  const { type, etag, contentSecurityPolicy } = found
  const headers = {
    ...publicHeaders,
    etag: `W/${etag}`,
    'cache-control': `public, max-age=${MAX_AGE_S}`,
    ...(contentSecurityPolicy && { 'content-security-policy': contentSecurityPolicy }),
  }
  if (hasCurrent(c, etag)) return c.body(null, 304, { ...headers, ...varyHeaders })
  const { bytes, headers: encoding } = await bodyOf(found).for(acceptEncodingOf(c))
  return sendBytes(c, bytes, { ...headers, ...encoding, 'content-type': type })
}

/** The documents are loaded at the first request for one of them. */
export function documentHandlers(loadDocuments: LoadDocuments) {
  const send = (c: Context<Env>) => sendDocument(c, loadDocuments)
  return {
    openapi: send,
    asyncapi: send,
    docs: send,
    llms: send,
    types: send,
    contract: send,
    charts: send,
    chartLibrary: send,
    schema: send,
  }
}
