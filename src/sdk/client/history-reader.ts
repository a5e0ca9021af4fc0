import type { ServiceStatus, Update } from '../generated/messages.ts'
import { type Http, type SelectionFilters, selectionQuery, setGiven } from './http-requests.ts'
import { isNotAfter } from './position-order.ts'
import { readExport } from './receipts.ts'

/** Selects messages of the tape. `after` and `before` are exclusive positions, `through` is inclusive. */
export type HistoryOptions = SelectionFilters & {
  readonly since?: string | Date
  readonly until?: string | Date
  readonly after?: string
  readonly before?: string
  readonly through?: string
  /** `desc` yields the newest message first. Default `asc`. */
  readonly order?: 'asc' | 'desc'
  readonly limit?: number
  readonly signal?: AbortSignal
}

/** Number of messages in one request. */
const PAGE_SIZE = 1_000

export function readHistory(http: Http, symbols: string | readonly string[], options: HistoryOptions): AsyncGenerator<Update> {
  const { since, until, after, before, through, order, limit, signal } = options
  const query = setGiven(selectionQuery(symbols, options), { since, until, after, before, through, order })
  return readPages(http, '/v1/events', query, limit, signal)
}

/** Reads the messages that a gap left out. Throws if some of them are no longer stored. */
export async function* readBackfill(http: Http, path: string, signal: AbortSignal): AsyncGenerator<Update> {
  const { pathname, searchParams } = new URL(path, http.urlOf('/'))
  const from = searchParams.get('after') ?? ''
  yield* readPages(http, pathname, searchParams, undefined, signal)
  // The relay may have deleted messages of the range while the pages were read.
  const { tape } = await http.get<ServiceStatus>('/v1/status', undefined, signal)
  if (!isNotAfter(tape.oldest, from)) throw new Error('messages are missing')
}

/** Reads small exports, one after another, each with a receipt. The relay gives no receipt for the newest messages of a range. */
async function* readPages(
  http: Http,
  path: string,
  query: URLSearchParams,
  left = Number.POSITIVE_INFINITY,
  signal?: AbortSignal,
): AsyncGenerator<Update> {
  const receipt = query.get('order') !== 'desc'
  for (;;) {
    const limit = Math.min(left, PAGE_SIZE)
    if (limit < 1) return
    setGiven(query, { limit, format: 'ndjson', receipt })
    const updates = await http.get(path, query, signal, (text) => readExport(text, receipt, http.digestOf))
    yield* updates
    const last = updates.at(-1)
    if (!last || updates.length < limit) return
    left -= limit
    if (!receipt) query.delete('through')
    query.set(receipt ? 'after' : 'before', last.id)
  }
}
