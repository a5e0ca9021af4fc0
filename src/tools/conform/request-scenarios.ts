import { lineDigest } from '../../relay/tape/line-digest.ts'
import { ALL, type JudgedServer } from './judged-server.ts'
import {
  ask,
  check,
  checkClose,
  checkSameIds,
  idsOf,
  newestOf,
  type ServerScenarios,
  SOME,
  shortened,
  storedBetween,
} from './server-checks.ts'
import type { JudgedMessage } from './server-stream.ts'

const BAD_MESSAGES_BOUND = 9
/** Limit of the times that an export is read until it is complete. */
const EXPORTS_BOUND = 100
export const MESSAGE_BOUND_BYTES = 4_096

/** Refusals of a request for a stream: the query, the status, the word, and the parameter that the record names. */
const refusals: readonly (readonly [query: string, status: number, reason: string, parameter: string | null])[] = [
  ['symbols=', 400, 'bad_parameter', 'symbols'],
  ['symbols=*&types=dividends', 400, 'bad_parameter', 'types'],
  ['symbols=*&stage=final', 400, 'bad_parameter', 'stage'],
  ['symbols=*&since=yesterday', 400, 'bad_parameter', 'since'],
  ['symbols=*&snapshot=perhaps', 400, 'bad_parameter', 'snapshot'],
  ['symbols=*&min_value=1e9', 400, 'bad_parameter', 'min_value'],
  ['symbols=*&min_shares=-1', 400, 'bad_parameter', 'min_shares'],
  ['symbols=*&account=0x12', 400, 'bad_parameter', 'account'],
  ['symbols=*&heartbeat=61', 400, 'bad_parameter', 'heartbeat'],
  ['symbols=*&symbols=*', 400, 'bad_parameter', 'symbols'],
  ['symbols=*&tpyes=transfer', 400, 'unknown_parameter', 'tpyes'],
  ['symbols=NO_SUCH_TOKEN', 404, 'unknown_symbol', null],
]

/** Reads an export until its receipt reaches a position: another process of the server may not have the newest messages yet. */
async function readExport(server: JudgedServer, path: string, last: string): Promise<readonly JudgedMessage[]> {
  for (let read = 1; ; read += 1) {
    const { text } = await server.fetch(path)
    const lines = text
      .trimEnd()
      .split('\n')
      .map((line) => JSON.parse(line) as JudgedMessage & { readonly through?: string })
    if (lines.at(-1)?.through === last || read === EXPORTS_BOUND) return lines
  }
}

/** Scenarios about the selection of a request, and about its answer or refusal. */
export const requestScenarios = {
  async since(server) {
    const live = await server.openLive('ws', ALL)
    const [message] = await server.expectMore(live)
    const through = newestOf(live)
    for (const [since, isIncluded] of [
      ['start', true],
      [message?.time ?? '', true],
      ['1h', true],
      ['2100-01-01T00:00:00Z', false],
    ] as const) {
      const stream = await server.openLive('ndjson', `${ALL}&since=${encodeURIComponent(since)}`)
      const isThere = stream.tape.some(({ id }) => id === message?.id)
      check(isThere === isIncluded, `since=${since}: ${message?.id} of ${message?.time} is ${isThere ? '' : 'not '}replayed`)
      const before = stream.tape.find(({ time }) => since === message?.time && time < since)
      check(before === undefined, `since=${since}: ${before?.id} of ${before?.time} is replayed`)
      const history = isIncluded ? await server.history(`types=*&through=${through}&since=${encodeURIComponent(since)}`) : []
      const stored = history.some(({ id }) => id === message?.id)
      check(stored === isIncluded, `/v1/events with since=${since} ${stored ? 'has' : 'lacks'} ${message?.id}`)
    }
  },

  async types(server) {
    const all = await server.openLive('ndjson', `${ALL}&since=start`)
    await server.expectMore(all)
    const known = new Set(all.tape.map(({ type }) => type))
    const [one = 'transfer'] = [...known].filter((type) => !['seal', 'retract', 'amend'].includes(type))
    const selected = await server.openLive('ndjson', `symbols=*&types=${one}&since=start&snapshot=false`)
    const other = selected.tape.find(({ type }) => type !== one && !['seal', 'retract', 'amend'].includes(type))
    check(selected.tape.length > 0 && other === undefined, `types=${one} sent ${other ? `a ${other.type}` : 'nothing'}`)
    const plain = await server.openLive('ndjson', 'symbols=*&since=start&snapshot=false')
    const hidden = plain.tape.find(({ type }) => type === 'approval' || type === 'log')
    check(hidden === undefined, `without types a ${hidden?.type} came`)
  },

  async 'value-filters'(server) {
    const stream = await server.openLive('ndjson', `${ALL}&since=start&min_value=1000000`)
    const movements = stream.tape.filter(({ type }) => ['transfer', 'mint', 'burn', 'seize'].includes(type))
    const small = movements.find(
      (movement) => !(Number((movement as { reference_value?: string | null }).reference_value ?? 0) >= 1_000_000),
    )
    check(small === undefined, `min_value=1000000 sent ${shortened(JSON.stringify(small ?? null))}`)
    check(
      stream.tape.some(({ type }) => type === 'token' || type === 'nav' || type === 'status'),
      'with min_value no message of another type came',
    )
  },

  async symbols(server) {
    const [symbol] = server.symbols
    const stream = await server.openLive('ws', `symbols=${symbol.toLowerCase()},NO_SUCH_TOKEN&types=*&since=start`)
    const other = stream.tape.find((message) => message.symbol !== symbol && message.symbol !== '*')
    check(other === undefined, `symbols=${symbol} sent a message of ${other?.symbol}`)
    const { symbols, rejected } = stream.first('subscribed') as {
      symbols: unknown
      rejected: readonly { symbol: string; reason: string }[]
    }
    check(JSON.stringify(symbols) === JSON.stringify([symbol]), `subscribed.symbols is ${JSON.stringify(symbols)}`)
    check(rejected.length === 1 && rejected[0]?.reason === 'unknown_symbol', `subscribed.rejected is ${JSON.stringify(rejected)}`)
  },

  async refusals(server) {
    for (const [query, status, reason, parameter] of refusals) {
      const answer = await server.fetch(`/v1/stream?${query}`, { headers: { accept: 'application/x-ndjson' } })
      const record = (answer.json ?? {}) as {
        code?: number
        reason?: string
        message?: string
        details?: readonly { parameter?: string }[]
      }
      check(
        answer.status === status && record.code === status,
        `/v1/stream?${query}: HTTP ${answer.status}, code ${record.code}, and must be ${status}`,
      )
      check(record.reason === reason, `/v1/stream?${query}: the reason is ${record.reason}, and must be ${reason}`)
      check(
        typeof record.message === 'string' && !record.message.includes('\n'),
        `/v1/stream?${query}: the message is no line of text`,
      )
      check(
        parameter === null || record.details?.[0]?.parameter === parameter,
        `/v1/stream?${query}: details name ${record.details?.[0]?.parameter}, and must name ${parameter}`,
      )
      const stream = server.open('ws', query)
      const error = await server.expectMessage(stream, 'error')
      check(
        error.code === status && error.reason === reason,
        `/v1/ws?${query}: error ${error.code} ${error.reason}, and must be ${status} ${reason}`,
      )
    }
  },

  async requests(server) {
    const [one, other] = server.symbols
    const stream = server.open('ws', '')
    await server.expectMessage(stream, 'hello')
    const subscribed = await ask(stream, { type: 'subscribe', req: 1, symbols: [one] }, 'subscribed')
    check(
      subscribed.req === 1 && JSON.stringify(subscribed.symbols) === JSON.stringify([one]),
      `subscribe got ${JSON.stringify(subscribed)}`,
    )
    await server.expectMessage(stream, 'live')
    const added = await ask(stream, { type: 'subscribe', req: 'b', symbols: [other], types: ['nav'] }, 'subscribed')
    check(added.req === 'b' && JSON.stringify(added.types) === '["nav"]', `the second subscribe got ${JSON.stringify(added)}`)
    const listed = await ask(stream, { type: 'list', req: 3 }, 'subscribed')
    check(listed.req === 3 && (listed.symbols as readonly string[]).length === 2, `list got ${JSON.stringify(listed)}`)
    const sent = (type: string) => stream.received.flatMap(({ message }) => (message.type === type ? [message.symbol] : []))
    check(
      sent('snapshot').join() === [one, other].join() && sent('live').length === 1,
      `two subscriptions got the snapshots ${sent('snapshot').join(', ')} and ${sent('live').length} live`,
    )
    const removed = await ask(stream, { type: 'unsubscribe', req: 4, symbols: [other] }, 'unsubscribed')
    check(removed.req === 4, `unsubscribe got ${JSON.stringify(removed)}`)
    const pong = await ask(stream, { type: 'ping', req: 5 }, 'pong')
    check(pong.req === 5, `ping got ${JSON.stringify(pong)}`)
    for (const [message, reason] of [
      [{ type: 'subscribe', req: 6, symbols: [one], since: 'start' }, 'since_not_first'],
      [{ type: 'subscribe', req: 7, symbols: [one], stage: 'sealed' }, 'stage_not_first'],
      [{ type: 'subscribe', req: 8, symbols: [one], min_value: 'much' }, 'bad_parameter'],
    ] as const) {
      const error = await ask(stream, message, 'error')
      check(
        error.req === message.req && error.reason === reason,
        `${JSON.stringify(message)} got ${JSON.stringify(error)}, and must get ${reason}`,
      )
    }
  },

  async 'bad-messages'(server) {
    const stream = await server.openLive('ws', ALL)
    for (let nth = 0; nth < BAD_MESSAGES_BOUND; nth += 1) await ask(stream, '{', 'error')
    await ask(stream, { type: 'ping', req: 1 }, 'pong')
    for (let nth = 0; nth < BAD_MESSAGES_BOUND; nth += 1) await ask(stream, '{', 'error')
    check(stream.end === null, `nine bad messages after a good one ended the connection with ${stream.end?.code}`)
    stream.send('{')
    await stream.until(() => stream.end !== null)
    checkClose(stream, 'protocol')
  },

  async 'long-message'(server) {
    const stream = await server.openLive('ws', ALL)
    const padded = (bytes: number) => JSON.stringify({ type: 'ping', req: 1 }).padEnd(bytes, ' ')
    await ask(stream, padded(MESSAGE_BOUND_BYTES), 'pong')
    stream.send(padded(MESSAGE_BOUND_BYTES + 1))
    await stream.until(() => stream.end !== null)
    check(stream.end?.code === 1009, `the close code is ${stream.end?.code ?? 'absent'}`)
  },

  async history(server) {
    const live = await server.openLive('ws', ALL)
    const start = newestOf(live)
    const made = await server.expectMore(live, SOME)
    const last = newestOf(live)
    const range = `types=*&after=${start}&through=${last}`
    const lines = await readExport(server, `/v1/events?${range}&format=ndjson&receipt=true`, last)
    const expected = idsOf(lines.slice(0, -1))
    const receipt = { type: 'receipt', after: start, through: last, messages: expected.length, digest: lineDigest(expected) }
    check(
      JSON.stringify(lines.at(-1)) === JSON.stringify(receipt),
      `the receipt is ${JSON.stringify(lines.at(-1))}, and must be ${JSON.stringify(receipt)}`,
    )
    checkSameIds(expected, idsOf(live.tape).slice(0, expected.length), 'NDJSON against the live stream')
    const paged: string[] = []
    for (let after = start, page = 0; page <= SOME; page += 1) {
      const { json } = await server.fetch(`/v1/events?types=*&through=${last}&after=${after}&limit=2`)
      const { events, next } = json as { events: readonly JudgedMessage[]; next: string | null }
      paged.push(...idsOf(events))
      if (next === null) break
      after = next
    }
    checkSameIds(paged, expected, 'pages of two')
    const { json: descending } = await server.fetch(`/v1/events?${range}&order=desc&limit=1000`)
    checkSameIds(idsOf((descending as { events: readonly JudgedMessage[] }).events), expected.toReversed(), 'order=desc')
    const key = made.find((message) => message.key !== undefined)?.key
    if (key === undefined) return
    const fact = (await server.fetch(`/v1/events/${key}`)).json as {
      key?: string
      events?: readonly JudgedMessage[]
      stage?: string
    }
    check(
      fact.key === key && (fact.events?.length ?? 0) > 0 && typeof fact.stage === 'string',
      `/v1/events/${key} answered ${shortened(JSON.stringify(fact))}`,
    )
  },

  async snapshot(server) {
    const live = await server.openLive('ws', ALL)
    await server.expectMore(live)
    const { json } = await server.fetch('/v1/snapshot?symbols=*')
    const { as_of: asOf, snapshots } = json as { as_of: string; snapshots: readonly { type: string }[] }
    check(snapshots.length > 0 && snapshots.every(({ type }) => type === 'snapshot'), '/v1/snapshot has no whole snapshot messages')
    const stream = await server.openLive('sse', ALL, asOf)
    await server.expectMore(stream, SOME)
    const expected = idsOf(await storedBetween(server, asOf, newestOf(stream)))
    checkSameIds(idsOf(stream.tape).slice(0, expected.length), expected, `a stream after ${asOf}`)
  },
} satisfies ServerScenarios
