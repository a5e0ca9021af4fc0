/** Headers that a page of another origin may read. */
export const EXPOSED_HEADERS = ['etag', 'age', 'retry-after'] as const
