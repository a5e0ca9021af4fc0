import { RESPONSE_ALREADY_SENT } from '@hono/node-server/utils/response'
import type { Context } from 'hono'
import { accepts } from 'hono/accepts'
import { Refusal } from '../../../protocol/refusal.ts'
import { DEFAULT_FORMAT, type FormatName, formatNames, formatOf, negotiableFormats } from '../../../protocol/transports.ts'
import type { EdgeContext } from '../live/edge-context.ts'
import { openStream, streamHeadersOf } from '../live/http-stream.ts'
import { sendRefusal } from '../transport/send-refusal.ts'
import { authorizedQuery, type Env, type Handlers, queryOf } from './handler-basics.ts'

export function streamHandlers(edge: EdgeContext): Handlers<'stream' | 'streamOne' | 'tail'> {
  const stream = (c: Context<Env>, symbols: string | null, format?: 'text'): Response => {
    const { incoming, outgoing } = c.env
    try {
      const query = authorizedQuery(c, edge)
      if (symbols !== null) query.set('symbols', symbols)
      const request = { incoming, outgoing, query, format, acceptedFormat: acceptedFormatOf(c) }
      if (c.req.method === 'HEAD') return c.body(null, 200, streamHeadersOf(edge, request))
      openStream(edge, request)
      return RESPONSE_ALREADY_SENT
    } catch (failure) {
      if (!(failure instanceof Refusal)) throw failure
      const named = formatNames.find((name) => name === (format ?? queryOf(c).get('format')))
      return sendRefusal(c, failure, named && formatOf(named).isForPeople ? 'text' : 'json')
    }
  }
  return {
    stream: (c) => stream(c, null),
    streamOne: (c) => stream(c, c.req.param('symbol') ?? null),
    tail: (c) => stream(c, c.req.param('symbol') ?? null, 'text'),
  }
}

function acceptedFormatOf(c: Context<Env>): FormatName {
  const supports = negotiableFormats.map((name) => formatOf(name).mediaType)
  const accepted = accepts(c, { header: 'Accept', supports, default: formatOf(DEFAULT_FORMAT).mediaType })
  return negotiableFormats.find((name) => formatOf(name).mediaType === accepted) ?? DEFAULT_FORMAT
}
