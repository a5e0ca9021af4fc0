/** Headers that pages of other origins may read. */
export const EXPOSED_HEADERS = ['etag', 'age', 'retry-after'] as const

/** Headers that let pages of every origin read an answer. */
export const publicHeaders = {
  'access-control-allow-origin': '*',
  'access-control-expose-headers': EXPOSED_HEADERS.join(', '),
} as const

/** Headers of every answer. A browser must not guess its type, nor tell its URL to other sites: it may contain an API key. */
export const safetyHeaders = { 'x-content-type-options': 'nosniff', 'referrer-policy': 'no-referrer' } as const
