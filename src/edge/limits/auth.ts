import { createHash, timingSafeEqual } from 'node:crypto'
import type { IncomingMessage } from 'node:http'
import { Refusal } from '../../protocol/refusal.ts'

/** Who may listen at all; where nothing is set, everybody. */
type AuthSettings = {
  /** Of which origins pages may listen; programs have none and are not asked. */
  readonly origins: readonly string[] | undefined
  readonly keys: readonly string[] | undefined
}

/** Why a caller may not come in; null if it may. `query` is that of its URL. */
export type Authorizer = (incoming: IncomingMessage, query: URLSearchParams) => Refusal | null

export function createAuthorizer({ origins, keys }: AuthSettings): Authorizer {
  const allowed = origins && new Set(origins)
  const digests = keys?.map(digestOf)
  return ({ headers }, query) => {
    if (allowed && headers.origin !== undefined && !allowed.has(headers.origin)) {
      return new Refusal(403, 'forbidden', 'Pages of this origin may not listen here.')
    }
    if (!digests) return null
    // A browser's EventSource and WebSocket can send no header of their own.
    const key = bearerTokenOf(headers.authorization) ?? query.get('key')
    if (key !== null && digests.some((digest) => timingSafeEqual(digest, digestOf(key)))) return null
    return new Refusal(401, 'unauthorized', 'This needs a key: as "Authorization: Bearer …", or as key=… in the URL.')
  }
}

/** Whether a request bears this very token. */
export const hasBearerToken = ({ headers }: IncomingMessage, token: string): boolean =>
  timingSafeEqual(digestOf(bearerTokenOf(headers.authorization) ?? ''), digestOf(token))

const bearerTokenOf = (header: string | undefined): string | null =>
  /^Bearer +(\S+) *$/i.exec(header ?? '')?.[1] ?? null

/** Of one length, so that comparing takes the same time whatever was sent. */
const digestOf = (text: string): Buffer => createHash('sha256').update(text).digest()
