import { createHash } from 'node:crypto'
import { RESPONSE_ALREADY_SENT } from '@hono/node-server/utils/response'
import type { Context } from 'hono'
import {
  BARS_LIMIT_DEFAULT,
  BarsOfOneQuery,
  type BarsQuery,
  readBarsQuery,
  type StoredBar,
} from '../../../protocol/bars/bars-query.ts'
import { refuseUnknown } from '../../../protocol/parameters/read-parameters.ts'
import { contentTypeOf } from '../../../protocol/transports.ts'
import { csvHeader, csvLineOf } from '../bars/bar-csv.ts'
import { readBars, timesOf } from '../bars/bar-reader.ts'
import { type BarsRequest, barsContextOf, barsRequestOf } from '../bars/bars-request.ts'
import type { LongWorkQueue } from '../limits/long-work-queue.ts'
import type { EdgeContext } from '../live/edge-context.ts'
import { lineHeaders, openLineExport } from '../live/line-export.ts'
import { acceptsGzip, encodedBytes, varyHeaders } from '../transport/gzip.ts'
import { acceptEncodingOf, authorizedQuery, type Env, etagOf, type Handlers, hasCurrent, queryOf } from './handler-basics.ts'

/** Number of bars that an export writes at once. */
const BARS_PER_PART = 200

type LineFormat = Exclude<BarsQuery['format'], 'json'>
const lineContentTypes: Readonly<Record<LineFormat, string>> = {
  ndjson: contentTypeOf('ndjson'),
  csv: 'text/csv; charset=utf-8; header=present',
}

/** Bars as lines, written on the raw response. The next handler answers requests for a page. */
export function barExportHandlers(edge: EdgeContext, workQueue: LongWorkQueue): Handlers<'bars' | 'barsOfOne'> {
  const handle = async (c: Context<Env>, next: () => Promise<void>) => {
    const format = queryOf(c).get('format')
    if (format !== 'ndjson' && format !== 'csv') return next()
    const query = readQuery(c, authorizedQuery(c, edge))
    const request = barsRequestOf(query, edge)
    const headersOf = (isGzipped: boolean) => lineHeaders(lineContentTypes[format], isGzipped)
    if (c.req.method === 'HEAD') return c.body(null, 200, headersOf(acceptsGzip(acceptEncodingOf(c))))
    const { incoming, outgoing } = c.env
    const onFailure = (failure: unknown) => edge.log('history_unreadable', { reason: String(failure) })
    const lines = () => linesOf(edge, workQueue, request, { format, limit: query.limit ?? Number.POSITIVE_INFINITY })
    openLineExport(edge, { incoming, outgoing, headersOf, lines, onFailure })
    return RESPONSE_ALREADY_SENT
  }
  return { bars: handle, barsOfOne: handle }
}

async function* linesOf(
  edge: EdgeContext,
  workQueue: LongWorkQueue,
  { tokens, range }: BarsRequest,
  { format, limit }: { readonly format: LineFormat; readonly limit: number },
): AsyncGenerator<readonly string[]> {
  const lineOf = format === 'csv' ? csvLineOf : (bar: StoredBar) => JSON.stringify(bar)
  let part = format === 'csv' ? [csvHeader] : []
  let count = 0
  const context = barsContextOf(edge, workQueue.nextSlice)
  for (const read of readBars(context, tokens, { ...range, expected: Math.min(limit, BARS_PER_PART) })) {
    if (count >= limit) break
    if (read !== null) {
      count += 1
      part.push(lineOf(read.bar))
      if (part.length < BARS_PER_PART) continue
    }
    yield part
    part = []
    await workQueue.nextSlice()
  }
  yield part
}

export function barHandlers(edge: EdgeContext, workQueue: LongWorkQueue): Handlers<'bars' | 'barsOfOne'> {
  const handle = async (c: Context<Env>) => {
    const query = readQuery(c, queryOf(c))
    const request = barsRequestOf(query, edge)
    const asOf = edge.hub.position(edge.tape.end())
    const { keptFrom } = timesOf(edge.tape)
    const limit = query.limit ?? BARS_LIMIT_DEFAULT
    const page = await workQueue.run(edge.clientAddressOf(c.env.incoming), () => readBarPage(edge, workQueue, request, limit))
    const bars = page.bars.map(({ text }) => text).join(',')
    const head = `{"as_of":"${asOf}",`
    const content = `"interval":"${query.interval}","bars":[${bars}],"next":${JSON.stringify(page.next)}}`
    const bytes = new TextEncoder().encode(head + content)
    const etag = etagOf(createHash('sha256').update(bytes.subarray(head.length)))
    const end = page.next !== null && query.order === 'asc' ? Date.parse(page.next) / 1_000 : request.range.until
    const isFinal = end <= keptFrom && page.bars.every(({ isFinal }) => isFinal)
    const headers = { etag, 'cache-control': isFinal ? `${edge.keys ? 'private' : 'public'}, max-age=${DAY_S}` : 'no-cache' }
    if (hasCurrent(c, etag)) return c.body(null, 304, { ...headers, ...varyHeaders })
    const body = await encodedBytes(bytes, acceptEncodingOf(c))
    return c.body(body.bytes, 200, { ...headers, ...body.headers, 'content-type': 'application/json' })
  }
  return { bars: handle, barsOfOne: handle }
}
const DAY_S = 86_400

/** A bar of a page. As text it takes the least memory: a page can have thousands. */
type PageBar = { readonly start: string; readonly isFinal: boolean; readonly text: string }

/** The bars of one start are in one page, so that the next page can begin with a time. */
async function readBarPage(edge: EdgeContext, workQueue: LongWorkQueue, { tokens, range }: BarsRequest, limit: number) {
  const bars: PageBar[] = []
  // The bar after the last one of the page says where the next page begins.
  const expected = Math.ceil((limit + 1) / tokens.length)
  for (const read of readBars(barsContextOf(edge, workQueue.nextSlice), tokens, { ...range, expected })) {
    if (read === null) {
      await workQueue.nextSlice()
      continue
    }
    const { bar } = read
    // With more tokens than the limit, all bars of one start are one page.
    const whole = bars.length < limit ? [] : bars.filter(({ start }) => start !== bar.start)
    if (whole.length > 0) return { bars: whole, next: nextOf(whole, bar, range.order) }
    bars.push({ start: bar.start, isFinal: bar.state === 'final', text: JSON.stringify(bar) })
  }
  return { bars, next: null }
}

/** The bar with which the next page begins; with `desc`, the end of the next page is the start of the last bar of this one. */
const nextOf = (bars: readonly PageBar[], following: StoredBar, order: 'asc' | 'desc'): string =>
  order === 'asc' ? following.start : (bars.at(-1)?.start ?? following.start)

/** The symbol in the path is the one of the query too. */
function readQuery(c: Context<Env>, parameters: URLSearchParams): BarsQuery {
  const symbol = c.req.param('symbol')
  if (symbol === undefined) return readBarsQuery(parameters)
  refuseUnknown('parameter', parameters.keys(), Object.keys(BarsOfOneQuery.shape))
  parameters.set('symbols', symbol)
  return readBarsQuery(parameters)
}
