import { timingSafeEqual } from 'node:crypto'
import type { IncomingMessage } from 'node:http'
import type { Refusal } from '../../../protocol/refusal.ts'
import { readRequest } from '../../../protocol/requests.ts'
import { digestOf } from '../../config/api-key-settings.ts'
import type { ApiKeyRing } from './api-key-ring.ts'
import { apiKeyRequired, forbiddenOrigin } from './refusals.ts'

/** Returns why a request with this URL query is refused; null if it is allowed. */
export type Authorizer = (incoming: IncomingMessage, query: URLSearchParams) => Refusal | null

/** Refuses pages of other origins, and requests without a valid API key. Programs send no Origin header, so they may connect. */
export function createAuthorizer(origins: readonly string[] | undefined, keys: ApiKeyRing | null): Authorizer {
  const allowed = origins && new Set(origins)
  return (incoming, query) => {
    const { origin } = incoming.headers
    if (allowed && origin !== undefined && !allowed.has(origin)) return forbiddenOrigin
    if (!keys) return null
    const key = givenApiKeyOf(incoming, query)
    return key !== null && keys.admit(key) !== null ? null : apiKeyRequired
  }
}

/** Returns the API key of a request. Its URL may contain it, because EventSource and WebSocket in a browser cannot set headers. */
export const givenApiKeyOf = ({ headers }: IncomingMessage, query: URLSearchParams): string | null =>
  bearerTokenOf(headers.authorization) ?? query.get('key')

/** Whether a client is refused only because it has sent no API key: a page sends it as the first message of its WebSocket. */
export const mayAuthenticate = (incoming: IncomingMessage, query: URLSearchParams, forbidden: Refusal | null): boolean =>
  forbidden === apiKeyRequired && incoming.headers.authorization === undefined && !query.has('key')

export const hasBearerToken = ({ headers }: IncomingMessage, token: string): boolean =>
  timingSafeEqual(digestOf(bearerTokenOf(headers.authorization) ?? ''), digestOf(token))

export const bearerTokenOf = (header: string | undefined): string | null => /^Bearer +(\S+) *$/i.exec(header ?? '')?.[1] ?? null

/** Returns the client whose API key a message contains; null if it contains no valid API key. */
export function clientOfMessage(text: string, keys: ApiKeyRing | null): string | null {
  try {
    const request = readRequest(text)
    return request.type === 'auth' ? (keys?.admit(request.key) ?? null) : null
  } catch {
    return null
  }
}
