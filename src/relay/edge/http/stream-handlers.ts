import { RESPONSE_ALREADY_SENT } from '@hono/node-server/utils/response'
import type { Context } from 'hono'
import { accepts } from 'hono/accepts'
import { Refusal } from '../../../protocol/refusal.ts'
import { openStream, type StreamServices, streamHeadersOf } from '../live/http-stream.ts'
import { authorizedQuery, type Env, type Handlers, queryOf } from './handlers.ts'
import { sendRefusal } from './refusals.ts'

/** The streams over plain HTTP, written on the raw response. */
export function streamHandlers(streams: StreamServices): Handlers<'stream' | 'streamOne' | 'tail'> {
  const stream = (c: Context<Env>, symbols: string | null, format?: 'text'): Response => {
    try {
      return open(c, symbols, format)
    } catch (failure) {
      if (!(failure instanceof Refusal)) throw failure
      return sendRefusal(c, failure, format ?? (queryOf(c).get('format') === 'text' ? 'text' : 'json'))
    }
  }
  const open = (c: Context<Env>, symbols: string | null, format?: 'text'): Response => {
    const { incoming, outgoing } = c.env
    const query = authorizedQuery(c, streams)
    if (symbols !== null) query.set('symbols', symbols)
    const request = { incoming, outgoing, query, format, acceptedFormat: acceptedFormatOf(c) }
    if (c.req.method === 'HEAD') return c.body(null, 200, streamHeadersOf(streams, request))
    openStream(streams, request)
    return RESPONSE_ALREADY_SENT
  }
  return {
    stream: (c) => stream(c, null),
    streamOne: (c) => stream(c, c.req.param('symbol') ?? null),
    tail: (c) => stream(c, c.req.param('symbol') ?? null, 'text'),
  }
}

function acceptedFormatOf(c: Context<Env>): 'ndjson' | 'sse' {
  const ndjson = 'application/x-ndjson'
  const supports = ['text/event-stream', ndjson]
  return accepts(c, { header: 'Accept', supports, default: 'text/event-stream' }) === ndjson ? 'ndjson' : 'sse'
}
