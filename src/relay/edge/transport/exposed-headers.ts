/** Headers that a page of another origin may read. */
export const EXPOSED_HEADERS = ['etag', 'age', 'retry-after'] as const

/** What lets pages of every origin read an answer. */
export const publicHeaders = {
  'access-control-allow-origin': '*',
  'access-control-expose-headers': EXPOSED_HEADERS.join(', '),
} as const

/** On every answer: a browser must not guess what it is, and not pass on an address, whose query may hold a key. */
export const safetyHeaders = { 'x-content-type-options': 'nosniff', 'referrer-policy': 'no-referrer' } as const
