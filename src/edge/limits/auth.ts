import { createHash, timingSafeEqual } from 'node:crypto'
import type { IncomingMessage } from 'node:http'
import { Refusal } from '../../protocol/refusal.ts'

/** Which clients may connect. What is not set does not restrict. */
type AuthSettings = {
  /** Origins of the pages that may connect. Programs send no Origin header, so this does not apply to them. */
  readonly origins: readonly string[] | undefined
  readonly keys: readonly string[] | undefined
}

/** Why a request is refused; null if it is allowed. `query` is the query of its URL. */
export type Authorizer = (incoming: IncomingMessage, query: URLSearchParams) => Refusal | null

export function createAuthorizer({ origins, keys }: AuthSettings): Authorizer {
  const allowed = origins && new Set(origins)
  const digests = keys?.map(digestOf)
  return ({ headers }, query) => {
    if (allowed && headers.origin !== undefined && !allowed.has(headers.origin)) {
      return new Refusal(403, 'forbidden', 'Pages of this origin may not connect here.')
    }
    if (!digests) return null
    // A browser's EventSource and WebSocket cannot set headers, so the key may stand in the URL.
    const key = bearerTokenOf(headers.authorization) ?? query.get('key')
    if (key !== null && digests.some((digest) => timingSafeEqual(digest, digestOf(key)))) return null
    return new Refusal(401, 'unauthorized', 'This needs a key: as "Authorization: Bearer …", or as key=… in the URL.')
  }
}

export const hasBearerToken = ({ headers }: IncomingMessage, token: string): boolean =>
  timingSafeEqual(digestOf(bearerTokenOf(headers.authorization) ?? ''), digestOf(token))

const bearerTokenOf = (header: string | undefined): string | null => /^Bearer +(\S+) *$/i.exec(header ?? '')?.[1] ?? null

/** Digests have equal lengths, so a comparison takes the same time for every input. */
const digestOf = (text: string): Buffer => createHash('sha256').update(text).digest()
