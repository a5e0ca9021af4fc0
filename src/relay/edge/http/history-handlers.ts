import { RESPONSE_ALREADY_SENT } from '@hono/node-server/utils/response'
import type { Context } from 'hono'
import { accepts } from 'hono/accepts'
import { refuseUnknown } from '../../../protocol/parameters/read-parameters.ts'
import { formatOf } from '../../../protocol/transports.ts'
import { readFact } from '../history/fact-life.ts'
import { exportHeaders, openExport } from '../history/history-export.ts'
import { keptSinceHeaders, readPage } from '../history/history-page.ts'
import { readHistoryQuery } from '../history/history-query.ts'
import type { LongWorkQueue } from '../limits/long-work-queue.ts'
import { badParameter } from '../limits/refusals.ts'
import type { EdgeContext } from '../live/edge-context.ts'
import { acceptsGzip } from '../transport/gzip.ts'
import { acceptEncodingOf, authorizedQuery, type Env, type Handlers, queryOf, sendJson } from './handler-basics.ts'

/** The whole history as lines, written on the raw response. The next handler answers requests for a page. */
export const exportHandlers = (edge: EdgeContext, workQueue: LongWorkQueue): Handlers<'events'> => ({
  events: async (c, next) => {
    if (!wantsNdjson(c)) return next()
    const { incoming, outgoing } = c.env
    const historyQuery = readHistoryQuery(authorizedQuery(c, edge), edge)
    if (c.req.method === 'HEAD') return c.body(null, 200, exportHeaders(edge.tape, acceptsGzip(acceptEncodingOf(c))))
    openExport(edge, workQueue, { incoming, outgoing, query: historyQuery })
    return RESPONSE_ALREADY_SENT
  },
})

export const historyHandlers = (edge: EdgeContext, workQueue: LongWorkQueue): Handlers<'events' | 'fact'> => ({
  events: async (c) => {
    const historyQuery = readHistoryQuery(queryOf(c), edge)
    if (historyQuery.hasReceipt) throw badParameter('receipt', 'only an export has a receipt: add format=ndjson.')
    const { tape } = edge
    const context = { tape, pause: workQueue.nextSlice, isGone: () => c.env.outgoing.destroyed }
    const read = () => readPage(context, tape.epoch, historyQuery)
    const { texts, next } = await workQueue.run(edge.clientAddressOf(c.env.incoming), read)
    // The headers are set after the read, so that they include evictions during the read.
    for (const [name, value] of Object.entries(keptSinceHeaders(tape))) c.header(name, value)
    return sendJson(c, `{"events":[${texts.join(',')}],"next":${JSON.stringify(next)}}`)
  },
  fact: (c) => {
    refuseUnknown('parameter', queryOf(c).keys(), [])
    const { key, texts, stage } = readFact(c.req.param('key') ?? '', edge)
    return sendJson(c, `{"key":"${key}","events":[${texts.join(',')}],"stage":"${stage}"}`)
  },
})

/** Whether a request asks for lines instead of a page. The `Accept` header counts only if the URL names no format. */
function wantsNdjson(c: Context<Env>): boolean {
  const supports = ['application/json', formatOf('ndjson').mediaType]
  const format = queryOf(c).get('format')
  if (format !== null) return format === 'ndjson'
  return accepts(c, { header: 'Accept', supports, default: 'application/json' }) === supports[1]
}
