import { statusExample } from '../generated/examples.ts'
import type { Receipt, ServiceStatus, Update } from '../generated/messages.ts'
import { barsPageOf } from './scripted-bars.ts'
import { type Carrier, type ClientTransport, ScriptedConnection } from './scripted-connection.ts'
import { rejectedOf, ScriptedSelection } from './scripted-selection.ts'
import { digestOf, type ScriptedTape } from './scripted-tape.ts'

type ScriptedAnswer = { readonly status: number; readonly contentType: string; readonly body: string }

const PAGE_SIZE = 100

/** A relay without sockets. It shares no code with the real one: it knows the contract only as the SDK does. */
export class ScriptedRelay<Tape extends ScriptedTape = ScriptedTape> {
  readonly connections: ScriptedConnection[] = []
  tape: Tape

  constructor(tape: Tape) {
    this.tape = tape
  }

  connect(transport: ClientTransport, query: URLSearchParams, carrier: Carrier): ScriptedConnection {
    const connection = new ScriptedConnection(transport, query, carrier, () => this.tape)
    this.connections.push(connection)
    return connection
  }

  /** Answers the requests by which a client fills a gap or draws a page. */
  answer(pathname: string, query: URLSearchParams): ScriptedAnswer {
    const { tape } = this
    const [, ofBars] = /^\/v1\/bars\/([^/]+)$/.exec(pathname) ?? []
    if (ofBars) query.set('symbols', decodeURIComponent(ofBars))
    const { known, unknown } = new ScriptedSelection(query, () => tape).symbols
    if (known.length === 0) return refusalOf(404, 'unknown_symbol', `The relay does not know ${unknown.join(', ')}.`)
    if (pathname === '/v1/snapshot') {
      const snapshots = known.map((symbol) => tape.snapshot(symbol, tape.end))
      return jsonOf({ as_of: tape.end, snapshots, rejected: rejectedOf(unknown) })
    }
    if (pathname === '/v1/events') return query.get('format') === 'ndjson' ? this.#export(query) : this.#page(query)
    if (ofBars || pathname === '/v1/bars') return jsonOf(barsPageOf(tape, known, query))
    if (pathname !== '/v1/status') return refusalOf(404, 'unknown_path', 'The scripted relay does not serve this path.')
    const { epoch, oldest, end } = tape
    return jsonOf({
      ...statusExample,
      source: 'pendingLogs',
      tape: { ...statusExample.tape, epoch, oldest, end },
    } satisfies ServiceStatus)
  }

  #page(query: URLSearchParams): ScriptedAnswer {
    const limit = Number(query.get('limit') ?? PAGE_SIZE)
    const found = this.#stored(query)
    const events = found.slice(0, limit)
    return jsonOf({ events, next: found.length > limit ? events.at(-1)?.id : null })
  }

  #export(query: URLSearchParams): ScriptedAnswer {
    const events = this.#stored(query).slice(0, Number(query.get('limit') ?? Number.POSITIVE_INFINITY))
    const [after, through] = [query.get('after') ?? this.tape.oldest, query.get('through') ?? this.tape.end]
    const digest = digestOf(events.map(({ id }) => id))
    const receipt: Receipt = { type: 'receipt', after, through, messages: events.length, digest }
    const lines = query.get('receipt') === 'true' ? [...events, receipt] : events
    const body = lines.map((line) => `${JSON.stringify(line)}\n`).join('')
    return { status: 200, contentType: 'application/x-ndjson', body }
  }

  /** Stored messages that a query selects, in its order. A time or a duration stands for the whole tape. */
  #stored(query: URLSearchParams): readonly Update[] {
    const { tape } = this
    const selection = new ScriptedSelection(query, () => tape)
    const [before, through] = ['before', 'through'].map((name) => query.get(name))
    const isInside = ({ id }: Update) =>
      (through == null || seqOf(id) <= seqOf(through)) && (before == null || seqOf(id) < seqOf(before))
    const found = tape.after(query.get('after') ?? tape.oldest).filter((message) => isInside(message) && selection.has(message))
    return query.get('order') === 'desc' ? found.toReversed() : found
  }
}

const seqOf = (position: string): number => Number(position.split('.')[1])

const jsonOf = (body: object): ScriptedAnswer => ({ status: 200, contentType: 'application/json', body: JSON.stringify(body) })

const refusalOf = (code: number, reason: string, message: string): ScriptedAnswer => ({
  ...jsonOf({ code, reason, message }),
  status: code,
})
