import type { EventsPage, ServiceStatus, Update } from '../generated/messages.ts'
import { type Http, type SelectionFilters, selectionQuery, setGiven, timeText } from './http-requests.ts'
import { isNotAfter } from './position-order.ts'

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

/** Limit of the relay on the messages of one page. */
const PAGE_BOUND = 1_000

export async function* readHistory(
  http: Http,
  symbols: string | readonly string[],
  options: HistoryOptions,
): AsyncGenerator<Update> {
  const { after, before, through, order = 'asc', limit = Number.POSITIVE_INFINITY } = options
  const { since, until, signal } = options
  const query = setGiven(selectionQuery(symbols, options), {
    since: timeText(since),
    until: timeText(until),
    after,
    before,
    through,
    order,
    limit: Math.max(1, Math.min(limit, PAGE_BOUND)),
  })
  let left = limit
  for await (const events of pages(http, 'v1/events', query, signal)) {
    yield* events.slice(0, left)
    left -= events.length
    if (left <= 0) return
  }
}

/** Reads the messages that a gap left out. Throws if some of them are no longer stored. */
export async function* readBackfill(http: Http, path: string, signal: AbortSignal): AsyncGenerator<Update> {
  const { pathname, searchParams } = new URL(path, http.urlOf(''))
  const from = searchParams.get('after') ?? ''
  searchParams.set('limit', String(PAGE_BOUND))
  for await (const events of pages(http, pathname, searchParams, signal)) yield* events
  // The relay may have deleted messages of the range while the pages were read.
  const { tape } = await http.getJson<ServiceStatus>('v1/status', undefined, signal)
  if (!isNotAfter(tape.oldest, from)) throw new Error(`deleted up to ${tape.oldest}`)
}

async function* pages(http: Http, path: string, query: URLSearchParams, signal?: AbortSignal): AsyncGenerator<readonly Update[]> {
  for (;;) {
    const { events, next } = await http.getJson<EventsPage>(path, query, signal)
    yield events
    if (next === null) return
    if (query.get('order') === 'desc') {
      query.delete('through')
      query.set('before', next)
    } else query.set('after', next)
  }
}
