import { closeCodes } from '../../protocol/close-codes.ts'
import { Notice } from '../../protocol/notices.ts'
import { Update } from '../../protocol/updates.ts'
import { lineDigest } from '../../relay/tape/line-digest.ts'
import { comparePositions } from '../../sdk/client/position-order.ts'
import { ALL, type JudgedServer } from './judged-server.ts'
import { BrokenRule } from './scenario-driver.ts'
import {
  type JsonTransport,
  type JudgedMessage,
  jsonTransports,
  type Received,
  type ServerStream,
  WAIT_MS,
} from './server-stream.ts'

/** Rule of the contract for a relay, as its clients see it. */
export type ServerRule = {
  readonly name: string
  readonly section: string
  readonly sentence: string
  /** Transports for each of which the rule runs; absent if it chooses them itself. */
  readonly transports?: readonly JsonTransport[]
  readonly run: (server: JudgedServer, transport: JsonTransport) => Promise<void>
}

/** Messages of the tape that come before a rule looks at them. */
const SOME = 6
const HEARTBEAT_S = 1
/** Blocks after which one has to be sealed that began after the stream. */
const BLOCKS = 4
/** Streams that join while messages come, one after the other. */
const JOINS = 8
const BAD_MESSAGES_BOUND = 9
const MESSAGE_BOUND_BYTES = 4_096
const FAR_AHEAD = 1_000_000_000_000

const schemas = new Map([...Update.options, ...Notice.options].map((schema) => [String(schema.shape.type.value), schema]))

function check(condition: boolean, detail: () => string): asserts condition {
  if (!condition) throw new BrokenRule(detail())
}

const shortened = (text: string): string => (text.length > 300 ? `${text.slice(0, 300)}…` : text)
const idsOf = (messages: readonly JudgedMessage[]): readonly string[] => messages.map(({ id }) => id)
const isAfter = (a: string, b: string): boolean => (comparePositions(a, b) ?? 0) > 0

/** Says where two lists of ids differ first. */
function checkSameIds(received: readonly string[], expected: readonly string[], what: string): void {
  const length = Math.max(received.length, expected.length)
  for (let index = 0; index < length; index += 1)
    check(
      received[index] === expected[index],
      () => `${what}: message ${index + 1} is ${received[index] ?? 'absent'}, and must be ${expected[index] ?? 'absent'}`,
    )
}

const newestOf = (stream: ServerStream): string => stream.tape.at(-1)?.id ?? String(stream.first('live')?.id)

/** Returns the messages of the tape after `after`, up to `through`. */
const storedBetween = (
  server: JudgedServer,
  after: string,
  through: string,
  query = 'types=*',
): Promise<readonly JudgedMessage[]> => server.history(`${query}&after=${after}&through=${through}`)

async function checkGap(server: JudgedServer, stream: ServerStream, reason: string, after: string | null): Promise<void> {
  const gap = await server.expectMessage(stream, 'gap')
  check(gap.reason === reason, () => `the gap has the reason ${gap.reason}, and must have ${reason}`)
  check(gap.after === after, () => `gap.after is ${gap.after}, and the client gave ${after}`)
  check(gap.id === gap.through, () => `gap.id is ${gap.id}, and gap.through is ${gap.through}`)
  await server.expectMessage(stream, 'live')
  const types = stream.received.map(({ type }) => type)
  checkOrder(types, ['hello', 'subscribed', 'gap', 'live'])
  const subscribed = stream.first('subscribed')
  check(
    subscribed?.resume === 'gap' && subscribed.id === null,
    () => `subscribed must have resume gap and id null: ${JSON.stringify(subscribed)}`,
  )
  const hello = stream.first('hello')
  check(hello?.id === null, () => `hello.id is ${hello?.id}, and a gap follows`)
}

function checkOrder(types: readonly string[], order: readonly string[]): void {
  const places = order.map((type) => types.indexOf(type))
  check(
    places.every((place, index) => place >= 0 && (index === 0 || place > (places[index - 1] ?? 0))),
    () => `the stream began with ${types.slice(0, 8).join(', ')}, and must begin with ${order.join(', ')}`,
  )
}

/** Sends to a WebSocket, and returns the next message of a type. */
async function ask(stream: ServerStream, message: unknown, type: string): Promise<Readonly<Record<string, unknown>>> {
  const before = stream.received.length
  const find = (): Received | undefined => stream.received.slice(before).find((one) => one.type === type)
  stream.send(message)
  await stream.until(() => find() !== undefined || stream.end !== null)
  const answer = find()
  check(
    answer !== undefined,
    () =>
      `${shortened(JSON.stringify(message))} got no ${type}; ${stream.end ? `the connection ended with ${stream.end.code}` : 'nothing came'}`,
  )
  return answer.message
}

const rule = (
  name: string,
  section: string,
  sentence: string,
  run: ServerRule['run'],
  transports?: readonly JsonTransport[],
): ServerRule => ({ ...{ name, section, sentence, run }, ...(transports && { transports }) })
const onEach = (name: string, section: string, sentence: string, run: ServerRule['run']): ServerRule =>
  rule(name, section, sentence, run, jsonTransports)

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

export const serverRules: readonly ServerRule[] = [
  onEach(
    'beginning',
    '§1',
    'A stream begins with hello, subscribed, a snapshot of each token, and live.',
    async (server, transport) => {
      const stream = await server.openLive(transport, `symbols=${server.symbols.join(',')}`)
      const types = stream.received.map(({ type }) => type)
      checkOrder(types, ['hello', 'subscribed', 'snapshot', 'live'])
      check(
        types.slice(0, 4).join() === 'hello,subscribed,snapshot,snapshot',
        () => `the stream began with ${types.slice(0, 5).join(', ')}`,
      )
      const [hello, subscribed, live] = ['hello', 'subscribed', 'live'].map((type) => stream.first(type))
      check(hello?.protocol === 'stocktape.v1', () => `hello.protocol is ${hello?.protocol}`)
      check(subscribed?.resume === 'none', () => `subscribed.resume is ${subscribed?.resume}, and no position was given`)
      check(
        JSON.stringify(subscribed?.symbols) === JSON.stringify(server.symbols),
        () => `subscribed.symbols is ${JSON.stringify(subscribed?.symbols)}`,
      )
      check(live?.replayed === 0, () => `live.replayed is ${live?.replayed}, and nothing was replayed`)
      const whole = await server.openLive(transport, `symbols=${server.symbols.join(',')}&since=start`)
      const start = whole.received.slice(
        0,
        whole.received.findIndex(({ type }) => type === 'live'),
      )
      const notices = start.slice(0, 4).map(({ message }) => message)
      check(
        notices.map(({ type }) => type).join() === 'hello,subscribed,snapshot,snapshot',
        () => `with since=start the stream began with ${notices.map(({ type }) => type).join(', ')}`,
      )
      check(
        new Set(notices.map(({ id }) => id)).size === 1,
        () => `before the replay the ids are ${notices.map(({ id }) => id).join(', ')}`,
      )
      const [replayed, said] = [start.length - notices.length, whole.first('live')?.replayed]
      check(said === replayed, () => `live.replayed is ${said}, and ${replayed} messages came between the snapshots and live`)
      checkReceipt(whole.first('live'), String(whole.first('subscribed')?.id), idsOf(whole.tape).slice(0, replayed))
    },
  ),
  onEach(
    'messages',
    '§2',
    'Each message fits its schema, begins with the six common fields, and has a greater id than the one before.',
    async (server, transport) => {
      const stream = await server.openLive(transport, 'symbols=*&types=*&since=start')
      await server.expectMore(stream)
      let last: string | null = null
      for (const { type, text, message } of stream.received) {
        const schema = schemas.get(type)
        const read = schema?.safeParse(message)
        check(
          !read || read.success,
          () => `${shortened(text)} does not fit: ${read?.error?.issues[0]?.path.join('.')} ${read?.error?.issues[0]?.message}`,
        )
        if (!('prev' in message)) continue
        check(
          Object.keys(message).slice(0, 6).join() === 'type,id,prev,symbol,address,time',
          () => `the first fields of ${shortened(text)}`,
        )
        const id = String(message.id)
        check(last === null || isAfter(id, last), () => `${id} comes after ${last}`)
        last = id
      }
    },
  ),
  rule('id-lines', '§1', 'SSE repeats each id that is not null in its id line, and names heartbeats alone.', async (server) => {
    const stream = await server.openLive('sse', `symbols=*&types=*&since=start&heartbeat=${HEARTBEAT_S}`)
    await server.expectMessage(stream, 'heartbeat')
    for (const { text, message, id, event, type } of stream.received) {
      const expected = typeof message.id === 'string' ? message.id : undefined
      check(id === expected, () => `the id line of ${shortened(text)} is ${id ?? 'absent'}`)
      check(event === (type === 'heartbeat' ? type : undefined), () => `the event line of a ${type} is ${event ?? 'absent'}`)
    }
  }),
  rule(
    'same-bytes',
    '§1',
    'A message has the same bytes on every transport, live, replayed and from the history.',
    async (server) => {
      const streams = await Promise.all(jsonTransports.map((transport) => server.openLive(transport, ALL)))
      const [live] = streams as [ServerStream]
      const start = streams.map(newestOf).reduce((one, other) => (isAfter(other, one) ? other : one))
      const last = (await server.expectMore(live, SOME)).at(-1)?.id ?? ''
      for (const stream of streams) await stream.until(() => stream.tape.some(({ id }) => id === last))
      const stored = await server.fetch(`/v1/events?types=*&format=ndjson&after=${start}&through=${last}`)
      const expected = stored.text.trimEnd().split('\n')
      const upToLast = ({ tape, texts }: ServerStream) =>
        texts.slice(0, tape.findIndex(({ id }) => id === last) + 1).slice(tape.findIndex(({ id }) => isAfter(id, start)))
      const read = streams.map((stream, at): [string, readonly string[]] => [`live over ${jsonTransports[at]}`, upToLast(stream)])
      for (const transport of jsonTransports)
        read.push([`replayed over ${transport}`, upToLast(await server.openLive(transport, ALL, start))])
      for (const [name, texts] of read)
        for (const [index, text] of expected.entries())
          check(
            texts[index] === text,
            () => `${name}, message ${index + 1} is ${shortened(texts[index] ?? 'absent')}, and in the history ${shortened(text)}`,
          )
    },
  ),
  onEach(
    'chain',
    '§2',
    'prev names the message before of the same address and type, in the replay and live.',
    async (server, transport) => {
      const stream = await server.openLive(transport, `${ALL}&since=start`)
      await server.expectMore(stream, SOME)
      const oldest = String(stream.first('hello')?.oldest)
      const lastIds = new Map<string, string>()
      for (const { type, address, id, prev } of stream.tape) {
        const channel = `${address} ${type}`
        const last = lastIds.get(channel)
        const isRight = last === undefined ? prev === null || !isAfter(prev, oldest) : prev === last
        check(isRight, () => `prev of the ${type} ${id} is ${prev}, and the ${type} before it is ${last ?? 'none'}`)
        lastIds.set(channel, id)
      }
    },
  ),
  onEach('join', '§3', 'Nothing is lost or sent twice between the replay and the live messages.', async (server, transport) => {
    const witness = await server.openLive('ws', ALL)
    const start = newestOf(witness)
    const joined: ServerStream[] = []
    for (let nth = 0; nth < JOINS; nth += 1) {
      const more = server.expectMore(witness, SOME)
      joined.push(server.open(transport, ALL, start))
      await more
    }
    const last = newestOf(witness)
    const expected = idsOf(await storedBetween(server, start, last))
    for (const stream of joined) {
      await stream.until(() => stream.tape.some(({ id }) => id === last) || stream.end !== null)
      const received = idsOf(stream.tape)
      checkSameIds(received.slice(0, received.indexOf(last) + 1), expected, `a stream that joined after ${start}`)
    }
  }),
  onEach(
    'resume',
    '§1',
    'A stream after a position begins with the next message, and counts what it replays.',
    async (server, transport) => {
      const first = await server.openLive('ws', ALL)
      const [from] = await server.expectMore(first, SOME)
      first.close()
      const after = from?.id ?? ''
      const stream = await server.openLive(transport, ALL, after)
      check(stream.first('subscribed')?.resume === 'full', () => `subscribed.resume is ${stream.first('subscribed')?.resume}`)
      check(stream.first('gap') === undefined, () => `a gap came: ${JSON.stringify(stream.first('gap'))}`)
      const { id, replayed } = stream.first('live') ?? {}
      const expected = idsOf(await storedBetween(server, after, String(id)))
      check(replayed === expected.length, () => `live.replayed is ${replayed}, and ${expected.length} messages lie in between`)
      checkSameIds(idsOf(stream.tape).slice(0, expected.length), expected, `the replay after ${after}`)
      checkReceipt(stream.first('live'), after, expected)
    },
  ),
  rule(
    'last-event-id',
    '§6',
    'Last-Event-ID wins over since, an empty one is ignored, and an unreadable one is a gap epoch.',
    async (server) => {
      const first = await server.openLive('ws', ALL)
      const messages = await server.expectMore(first, SOME)
      const [from, next] = idsOf(messages)
      for (const transport of jsonTransports) {
        const resumed = await server.openLive(transport, `${ALL}&since=now`, undefined, { 'last-event-id': from })
        check(
          resumed.tape[0]?.id === next,
          () => `${transport} with Last-Event-ID ${from} and since=now begins with ${resumed.tape[0]?.id}, and must with ${next}`,
        )
      }
      const empty = await server.openLive('sse', `${ALL}&since=${from}`, undefined, { 'last-event-id': '' })
      check(
        empty.tape[0]?.id === next,
        () => `with an empty Last-Event-ID and since=${from} the first message is ${empty.tape[0]?.id}`,
      )
      await checkGap(server, server.open('sse', ALL, 'yesterday'), 'epoch', null)
    },
  ),
  onEach(
    'gap-epoch',
    '§3',
    'A position of another tape is a gap epoch, and the stream continues at the oldest position.',
    async (server, transport) => {
      const stream = server.open(transport, ALL, 'zzzzzz9.7')
      await checkGap(server, stream, 'epoch', 'zzzzzz9.7')
      check(
        stream.first('gap')?.through === stream.first('hello')?.oldest,
        () => `gap.through is ${stream.first('gap')?.through}, and hello.oldest ${stream.first('hello')?.oldest}`,
      )
    },
  ),
  onEach(
    'gap-ahead',
    '§3',
    'A position after the end of the tape is a gap ahead, and the stream continues at the end.',
    async (server, transport) => {
      const end = String((await server.openLive('ws', ALL)).first('hello')?.end)
      const [epoch, seq] = end.split('.')
      const ahead = `${epoch}.${Number(seq) + FAR_AHEAD}`
      const stream = server.open(transport, ALL, ahead)
      await checkGap(server, stream, 'ahead', ahead)
      check(stream.first('live')?.replayed === 0, () => `live.replayed is ${stream.first('live')?.replayed}`)
    },
  ),
  rule(
    'since',
    '§6',
    'A start, a duration and a time begin at the first message that was written then or later.',
    async (server) => {
      const live = await server.openLive('ws', ALL)
      const [message] = await server.expectMore(live)
      const through = newestOf(live)
      const query = `types=*&through=${through}`
      for (const [since, isIncluded] of [
        ['start', true],
        [message?.time ?? '', true],
        ['1h', true],
        ['2100-01-01T00:00:00Z', false],
      ] as const) {
        const stream = await server.openLive('ndjson', `${ALL}&since=${encodeURIComponent(since)}`)
        const isThere = stream.tape.some(({ id }) => id === message?.id)
        check(
          isThere === isIncluded,
          () => `since=${since}: ${message?.id} of ${message?.time} is ${isThere ? '' : 'not '}replayed`,
        )
        const before = stream.tape.find(({ time }) => since === message?.time && time < since)
        check(before === undefined, () => `since=${since}: ${before?.id} of ${before?.time} is replayed`)
        const stored = isIncluded
          ? (await server.history(`${query}&since=${encodeURIComponent(since)}`)).some(({ id }) => id === message?.id)
          : false
        check(stored === isIncluded, () => `/v1/events with since=${since} ${stored ? 'has' : 'lacks'} ${message?.id}`)
      }
    },
  ),
  onEach(
    'heartbeat',
    '§3',
    'A heartbeat counts the messages of the connection, and its id is where a resume continues.',
    async (server, transport) => {
      const first = await server.openLive('ws', ALL)
      const [from] = await server.expectMore(first, SOME)
      const stream = await server.openLive(transport, `${ALL}&heartbeat=${HEARTBEAT_S}`, from?.id)
      await server.expectMore(stream)
      const seen = stream.received.length
      await stream.until(() => stream.received.slice(seen).some(({ type }) => type === 'heartbeat'))
      const at = stream.received.findIndex(({ type }, index) => index >= seen && type === 'heartbeat')
      check(at >= 0, () => `no heartbeat came within ${WAIT_MS / 1_000} s with heartbeat=${HEARTBEAT_S}`)
      const sent = stream.received.slice(0, at).filter(({ message }) => 'prev' in message)
      const { message } = stream.received[at] as Received
      check(
        message.sent === sent.length,
        () => `heartbeat.sent is ${message.sent}, and ${sent.length} messages of the tape came before`,
      )
      const [last, id] = [String(sent.at(-1)?.message.id), String(message.id)]
      check(!isAfter(last, id), () => `heartbeat.id is ${id}, and ${last} came before`)
      const back = await server.openLive(transport, ALL, id)
      const expected = idsOf(await storedBetween(server, id, newestOf(back)))
      checkSameIds(idsOf(back.tape).slice(0, expected.length), expected, `a resume after the heartbeat ${id}`)
    },
  ),
  rule('types', '§6', 'A stream has the selected types; without types, all but approval and log.', async (server) => {
    const all = await server.openLive('ndjson', `${ALL}&since=start`)
    await server.expectMore(all)
    const known = new Set(all.tape.map(({ type }) => type))
    const [one = 'transfer'] = [...known].filter((type) => !['seal', 'retract', 'amend'].includes(type))
    const selected = await server.openLive('ndjson', `symbols=*&types=${one}&since=start&snapshot=false`)
    const other = selected.tape.find(({ type }) => type !== one && !['seal', 'retract', 'amend'].includes(type))
    check(selected.tape.length > 0 && other === undefined, () => `types=${one} sent ${other ? `a ${other.type}` : 'nothing'}`)
    const plain = await server.openLive('ndjson', 'symbols=*&since=start&snapshot=false')
    const hidden = plain.tape.find(({ type }) => type === 'approval' || type === 'log')
    check(hidden === undefined, () => `without types a ${hidden?.type} came`)
  }),
  rule('value-filters', '§6', 'A value filter applies to movements alone, and an unknown value never passes.', async (server) => {
    const stream = await server.openLive('ndjson', `${ALL}&since=start&min_value=1000000`)
    const movements = stream.tape.filter(({ type }) => ['transfer', 'mint', 'burn', 'seize'].includes(type))
    const small = movements.find(
      (movement) => !(Number((movement as { reference_value?: string | null }).reference_value ?? 0) >= 1_000_000),
    )
    check(small === undefined, () => `min_value=1000000 sent ${shortened(JSON.stringify(small))}`)
    check(
      stream.tape.some(({ type }) => type === 'token' || type === 'nav' || type === 'status'),
      () => 'with min_value no message of another type came',
    )
  }),
  rule(
    'symbols',
    '§6',
    'A stream has the messages of its tokens; an unknown symbol beside known ones is rejected with a suggestion.',
    async (server) => {
      const [symbol] = server.symbols
      const stream = await server.openLive('ws', `symbols=${symbol.toLowerCase()},NO_SUCH_TOKEN&types=*&since=start`)
      const other = stream.tape.find((message) => message.symbol !== symbol && message.symbol !== '*')
      check(other === undefined, () => `symbols=${symbol} sent a message of ${other?.symbol}`)
      const { symbols, rejected } = stream.first('subscribed') as {
        symbols: unknown
        rejected: readonly { symbol: string; reason: string }[]
      }
      check(JSON.stringify(symbols) === JSON.stringify([symbol]), () => `subscribed.symbols is ${JSON.stringify(symbols)}`)
      check(
        rejected.length === 1 && rejected[0]?.reason === 'unknown_symbol',
        () => `subscribed.rejected is ${JSON.stringify(rejected)}`,
      )
    },
  ),
  rule(
    'seals',
    '§2',
    'A seal comes after the messages of its keys, with their types and the digest of the keys.',
    async (server) => {
      const stream = await server.openLive('ws', ALL)
      // Facts of the first block may have come before the stream began.
      await server.expectMore(stream)
      const blockOf = (message: JudgedMessage) => message.block?.number ?? 0
      const first = Math.max(...stream.tape.map(blockOf))
      const isWhole = (message: JudgedMessage) => message.type === 'seal' && blockOf(message) > first
      for (let blocks = 0; blocks < BLOCKS && !stream.tape.some(isWhole); blocks += 1) {
        await server.expectMore(stream, SOME)
        await server.expectSeal(stream)
      }
      check(stream.tape.some(isWhole), () => `${BLOCKS} blocks were sealed, and no seal came of one after ${first}`)
      const published = new Map<string, string>()
      for (const message of stream.tape) {
        if (message.key !== undefined && !published.has(message.key)) published.set(message.key, message.type)
        if (!isWhole(message)) continue
        const { keys, types, count, digest } = message as JudgedMessage & {
          keys: readonly string[]
          types: readonly string[]
          count: number
          digest: string
        }
        for (const [index, key] of keys.entries())
          check(
            types[index] === 'part' || published.has(key),
            () => `the seal ${message.id} lists ${key}, which no message before has`,
          )
        check(
          count === keys.length && types.length === keys.length,
          () => `the seal ${message.id} has ${keys.length} keys, ${types.length} types and the count ${count}`,
        )
        const expected = lineDigest(keys)
        check(digest === expected, () => `the digest of the seal ${message.id} is ${digest}, and of its keys ${expected}`)
      }
    },
  ),
  onEach(
    'sealed-view',
    '§2',
    'With stage=sealed facts come sealed, just before their seal, under its position.',
    async (server, transport) => {
      const stream = await server.openLive(transport, `${ALL}&stage=sealed`)
      const witness = await server.openLive('ws', ALL)
      const made = await server.expectMore(witness, SOME)
      await server.expectSeal(stream)
      const sealAt = stream.tape.findIndex(({ type }) => type === 'seal')
      const sealMessage = stream.tape[sealAt] as JudgedMessage
      const facts = stream.tape.slice(0, sealAt).filter(({ key }) => key !== undefined)
      for (const fact of facts)
        check(
          (fact as { stage?: string }).stage === 'sealed',
          () => `${fact.id} has the stage ${(fact as { stage?: string }).stage}`,
        )
      // A part is in the message that it is a part of.
      const expected = (sealMessage.types ?? []).flatMap((type, index) => (type === 'part' ? [] : `${sealMessage.id}.${index + 1}`))
      checkSameIds(idsOf(facts).slice(-expected.length), expected, 'the facts before the seal')
      // On its own the chain may seal only a part of them yet.
      const sealed = server.control.seal ? made.filter(({ key }) => key !== undefined) : []
      check(facts.length >= sealed.length, () => `${sealed.length} facts were sealed, and ${facts.length} came`)
      const resumed = await server.openLive(transport, `${ALL}&stage=sealed`, expected[0])
      const wanted = [...expected.slice(1), sealMessage.id]
      checkSameIds(idsOf(resumed.tape).slice(0, wanted.length), wanted, `a resume after ${expected[0]}`)
    },
  ),
  rule('refusals', '§5', 'A wrong request is refused with status, reason, a sentence, and the wrong parameter.', async (server) => {
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
        () => `/v1/stream?${query}: HTTP ${answer.status}, code ${record.code}, and must be ${status}`,
      )
      check(record.reason === reason, () => `/v1/stream?${query}: the reason is ${record.reason}, and must be ${reason}`)
      check(
        typeof record.message === 'string' && !record.message.includes('\n'),
        () => `/v1/stream?${query}: the message is no line of text`,
      )
      check(
        parameter === null || record.details?.[0]?.parameter === parameter,
        () => `/v1/stream?${query}: details name ${record.details?.[0]?.parameter}, and must name ${parameter}`,
      )
      const stream = server.open('ws', query)
      const error = await server.expectMessage(stream, 'error')
      check(
        error.code === status && error.reason === reason,
        () => `/v1/ws?${query}: error ${error.code} ${error.reason}, and must be ${status} ${reason}`,
      )
    }
  }),
  rule(
    'requests',
    '§6',
    'subscribe, list, unsubscribe and ping are answered with their req; a wrong one with an error.',
    async (server) => {
      const [one, other] = server.symbols
      const stream = server.open('ws', '')
      await server.expectMessage(stream, 'hello')
      const subscribed = await ask(stream, { type: 'subscribe', req: 1, symbols: [one] }, 'subscribed')
      check(
        subscribed.req === 1 && JSON.stringify(subscribed.symbols) === JSON.stringify([one]),
        () => `subscribe got ${JSON.stringify(subscribed)}`,
      )
      await server.expectMessage(stream, 'live')
      const added = await ask(stream, { type: 'subscribe', req: 'b', symbols: [other], types: ['nav'] }, 'subscribed')
      check(
        added.req === 'b' && JSON.stringify(added.types) === '["nav"]',
        () => `the second subscribe got ${JSON.stringify(added)}`,
      )
      const listed = await ask(stream, { type: 'list', req: 3 }, 'subscribed')
      check(listed.req === 3 && (listed.symbols as readonly string[]).length === 2, () => `list got ${JSON.stringify(listed)}`)
      const sent = (type: string) => stream.received.flatMap(({ message }) => (message.type === type ? [message.symbol] : []))
      check(
        sent('snapshot').join() === [one, other].join() && sent('live').length === 1,
        () => `two subscriptions got the snapshots ${sent('snapshot').join(', ')} and ${sent('live').length} live`,
      )
      const removed = await ask(stream, { type: 'unsubscribe', req: 4, symbols: [other] }, 'unsubscribed')
      check(removed.req === 4, () => `unsubscribe got ${JSON.stringify(removed)}`)
      const pong = await ask(stream, { type: 'ping', req: 5 }, 'pong')
      check(pong.req === 5, () => `ping got ${JSON.stringify(pong)}`)
      for (const [message, reason] of [
        [{ type: 'subscribe', req: 6, symbols: [one], since: 'start' }, 'since_not_first'],
        [{ type: 'subscribe', req: 7, symbols: [one], stage: 'sealed' }, 'stage_not_first'],
        [{ type: 'subscribe', req: 8, symbols: [one], min_value: 'much' }, 'bad_parameter'],
      ] as const) {
        const error = await ask(stream, message, 'error')
        check(
          error.req === message.req && error.reason === reason,
          () => `${JSON.stringify(message)} got ${JSON.stringify(error)}, and must get ${reason}`,
        )
      }
    },
  ),
  rule(
    'bad-messages',
    '§7',
    'The tenth bad message in a row closes the connection with 4000; a good one before it resets the count.',
    async (server) => {
      const stream = await server.openLive('ws', ALL)
      for (let nth = 0; nth < BAD_MESSAGES_BOUND; nth += 1) await ask(stream, '{', 'error')
      await ask(stream, { type: 'ping', req: 1 }, 'pong')
      for (let nth = 0; nth < BAD_MESSAGES_BOUND; nth += 1) await ask(stream, '{', 'error')
      check(stream.end === null, () => `nine bad messages after a good one ended the connection with ${stream.end?.code}`)
      stream.send('{')
      await stream.until(() => stream.end !== null)
      checkClose(stream, 'protocol')
    },
  ),
  rule(
    'long-message',
    '§7',
    `A message of more than ${MESSAGE_BOUND_BYTES} bytes closes the connection with 1009.`,
    async (server) => {
      const stream = await server.openLive('ws', ALL)
      const padded = (bytes: number) => JSON.stringify({ type: 'ping', req: 1 }).padEnd(bytes, ' ')
      await ask(stream, padded(MESSAGE_BOUND_BYTES), 'pong')
      stream.send(padded(MESSAGE_BOUND_BYTES + 1))
      await stream.until(() => stream.end !== null)
      check(stream.end?.code === 1009, () => `the close code is ${stream.end?.code ?? 'absent'}`)
    },
  ),
  rule(
    'history',
    '§8',
    'Pages, NDJSON and the descending order have the same messages; a key has all of its messages.',
    async (server) => {
      const live = await server.openLive('ws', ALL)
      const start = newestOf(live)
      const made = await server.expectMore(live, SOME)
      const last = newestOf(live)
      const range = `types=*&after=${start}&through=${last}`
      const whole = await server.fetch(`/v1/events?${range}&format=ndjson&receipt=true`)
      const lines = whole.text
        .trimEnd()
        .split('\n')
        .map((line) => JSON.parse(line) as JudgedMessage)
      const expected = idsOf(lines.slice(0, -1))
      const receipt = { type: 'receipt', after: start, through: last, messages: expected.length, digest: lineDigest(expected) }
      check(
        JSON.stringify(lines.at(-1)) === JSON.stringify(receipt),
        () => `the receipt is ${JSON.stringify(lines.at(-1))}, and must be ${JSON.stringify(receipt)}`,
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
        () => `/v1/events/${key} answered ${shortened(JSON.stringify(fact))}`,
      )
    },
  ),
  rule('snapshot', '§9', 'A stream after as_of of /v1/snapshot has every message since, and none before.', async (server) => {
    const live = await server.openLive('ws', ALL)
    await server.expectMore(live)
    const { json } = await server.fetch('/v1/snapshot?symbols=*')
    const { as_of: asOf, snapshots } = json as { as_of: string; snapshots: readonly { type: string }[] }
    check(
      snapshots.length > 0 && snapshots.every(({ type }) => type === 'snapshot'),
      () => '/v1/snapshot has no whole snapshot messages',
    )
    const stream = await server.openLive('sse', ALL, asOf)
    await server.expectMore(stream, SOME)
    const expected = idsOf(await storedBetween(server, asOf, newestOf(stream)))
    checkSameIds(idsOf(stream.tape).slice(0, expected.length), expected, `a stream after ${asOf}`)
  }),
  onEach(
    'restart',
    '§4',
    'A server that stops says bye with a position, and after its start the stream continues there.',
    async (server, transport) => {
      const restart = server.need('restart')
      const stream = await server.openLive(transport, ALL)
      await server.expectMore(stream, SOME)
      const idle = server.open('ws', '')
      await server.expectMessage(idle, 'hello')
      const restarted = restart()
      for (const one of [stream, idle]) await one.until(() => one.end !== null)
      await server.expectMessage(idle, 'bye', 'a connection without a subscription got no bye')
      checkClose(idle, 'going_away')
      const bye = await server.expectMessage(stream, 'bye')
      check(bye.reason === 'going_away' && typeof bye.retry_ms === 'number', () => `the bye is ${JSON.stringify(bye)}`)
      if (transport === 'ws') checkClose(stream, 'going_away')
      await restarted
      const back = await server.openLive(transport, ALL, String(bye.id))
      check(back.first('gap') === undefined, () => `after the restart a gap came: ${JSON.stringify(back.first('gap'))}`)
      await server.expectMore(back)
      const expected = idsOf(await storedBetween(server, String(bye.id), newestOf(back)))
      checkSameIds(idsOf(back.tape).slice(0, expected.length), expected, `a resume after the bye ${bye.id}`)
      check(isAfter(String(back.tape[0]?.id), newestOf(stream)), () => `${back.tape[0]?.id} was sent again`)
    },
  ),
]

/** Checks that `live` is a receipt of the messages that were replayed after a position. */
function checkReceipt(live: Readonly<Record<string, unknown>> | undefined, after: string, ids: readonly string[]): void {
  const { id, after: begin, through, digest } = live ?? {}
  check(begin === after && through === id, () => `live is of ${begin} to ${through}, and must be of ${after} to ${id}`)
  const expected = lineDigest(ids)
  check(digest === expected, () => `live.digest is ${digest}, and of the ids after ${after} it is ${expected}`)
}

function checkClose(stream: ServerStream, reason: keyof typeof closeCodes): void {
  const { code, reason: text } = stream.end ?? { code: null, reason: '' }
  check(code === closeCodes[reason], () => `the close code is ${code}, and must be ${closeCodes[reason]}`)
  check(text.split(' ')[0] === reason, () => `the close reason is '${text}', and must begin with ${reason}`)
}
