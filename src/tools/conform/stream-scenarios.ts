import { Notice } from '../../protocol/notices.ts'
import { Update } from '../../protocol/updates.ts'
import { lineDigest } from '../../relay/tape/line-digest.ts'
import { ALL } from './judged-server.ts'
import { NotApplicable } from './rule-verdict.ts'
import {
  check,
  checkClose,
  checkGap,
  checkOrder,
  checkReceipt,
  checkSameIds,
  HEARTBEAT_S,
  idsOf,
  isAfter,
  newestOf,
  type ServerScenarios,
  SOME,
  shortened,
  storedBetween,
} from './server-checks.ts'
import { type JudgedMessage, jsonTransports, type Received, type ServerStream, WAIT_MS } from './server-stream.ts'

/** Blocks after which one has to be sealed that began after the stream. */
const BLOCKS = 4
/** Streams that join while messages come, one after the other. */
const JOINS = 8
const FAR_AHEAD = 1_000_000_000_000

const schemas = new Map([...Update.options, ...Notice.options].map((schema) => [String(schema.shape.type.value), schema]))

/** Scenarios about the beginning, the continuation and the end of a stream, and about its messages. */
export const streamScenarios = {
  async beginning(server, transport) {
    const stream = await server.openLive(transport, `symbols=${server.symbols.join(',')}`)
    const types = stream.received.map(({ type }) => type)
    checkOrder(types, ['hello', 'subscribed', 'snapshot', 'live'])
    check(
      types.slice(0, 4).join() === 'hello,subscribed,snapshot,snapshot',
      `the stream began with ${types.slice(0, 5).join(', ')}`,
    )
    const [hello, subscribed, live] = ['hello', 'subscribed', 'live'].map((type) => stream.first(type))
    check(hello?.protocol === 'stocktape.v1', `hello.protocol is ${hello?.protocol}`)
    check(subscribed?.resume === 'none', `subscribed.resume is ${subscribed?.resume}, and no position was given`)
    check(
      JSON.stringify(subscribed?.symbols) === JSON.stringify(server.symbols),
      `subscribed.symbols is ${JSON.stringify(subscribed?.symbols)}`,
    )
    check(live?.replayed === 0, `live.replayed is ${live?.replayed}, and nothing was replayed`)
    const whole = await server.openLive(transport, `symbols=${server.symbols.join(',')}&since=start`)
    const start = whole.received.slice(
      0,
      whole.received.findIndex(({ type }) => type === 'live'),
    )
    const notices = start.slice(0, 4).map(({ message }) => message)
    check(
      notices.map(({ type }) => type).join() === 'hello,subscribed,snapshot,snapshot',
      `with since=start the stream began with ${notices.map(({ type }) => type).join(', ')}`,
    )
    check(
      new Set(notices.map(({ id }) => id)).size === 1,
      `before the replay the ids are ${notices.map(({ id }) => id).join(', ')}`,
    )
    const [replayed, said] = [start.length - notices.length, whole.first('live')?.replayed]
    check(said === replayed, `live.replayed is ${said}, and ${replayed} messages came between the snapshots and live`)
    checkReceipt(whole.first('live'), String(whole.first('subscribed')?.id), idsOf(whole.tape).slice(0, replayed))
  },

  async messages(server, transport) {
    const stream = await server.openLive(transport, 'symbols=*&types=*&since=start')
    await server.expectMore(stream)
    let last: string | null = null
    for (const { type, text, message } of stream.received) {
      const schema = schemas.get(type)
      const read = schema?.safeParse(message)
      check(
        !read || read.success,
        `${shortened(text)} does not fit: ${read?.error?.issues[0]?.path.join('.')} ${read?.error?.issues[0]?.message}`,
      )
      if (!('prev' in message)) continue
      check(
        Object.keys(message).slice(0, 6).join() === 'type,id,prev,symbol,address,time',
        `the first fields of ${shortened(text)}`,
      )
      const id = String(message.id)
      check(last === null || isAfter(id, last), `${id} comes after ${last}`)
      last = id
    }
  },

  async 'id-lines'(server) {
    const stream = await server.openLive('sse', `symbols=*&types=*&since=start&heartbeat=${HEARTBEAT_S}`)
    await server.expectMessage(stream, 'heartbeat')
    for (const { text, message, id, event, type } of stream.received) {
      const expected = typeof message.id === 'string' ? message.id : undefined
      check(id === expected, `the id line of ${shortened(text)} is ${id ?? 'absent'}`)
      check(event === (type === 'heartbeat' ? type : undefined), `the event line of a ${type} is ${event ?? 'absent'}`)
    }
  },

  async 'same-bytes'(server) {
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
          `${name}, message ${index + 1} is ${shortened(texts[index] ?? 'absent')}, and in the history ${shortened(text)}`,
        )
  },

  async chain(server, transport) {
    const stream = await server.openLive(transport, `${ALL}&since=start`)
    await server.expectMore(stream, SOME)
    const oldest = String(stream.first('hello')?.oldest)
    const lastIds = new Map<string, string>()
    for (const { type, address, id, prev } of stream.tape) {
      const channel = `${address} ${type}`
      const last = lastIds.get(channel)
      const isRight = last === undefined ? prev === null || !isAfter(prev, oldest) : prev === last
      check(isRight, `prev of the ${type} ${id} is ${prev}, and the ${type} before it is ${last ?? 'none'}`)
      lastIds.set(channel, id)
    }
  },

  async join(server, transport) {
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
  },

  async resume(server, transport) {
    const first = await server.openLive('ws', ALL)
    const [from] = await server.expectMore(first, SOME)
    first.close()
    const after = from?.id ?? ''
    const stream = await server.openLive(transport, ALL, after)
    check(stream.first('subscribed')?.resume === 'full', `subscribed.resume is ${stream.first('subscribed')?.resume}`)
    check(stream.first('gap') === undefined, `a gap came: ${JSON.stringify(stream.first('gap'))}`)
    const { id, replayed } = stream.first('live') ?? {}
    const expected = idsOf(await storedBetween(server, after, String(id)))
    check(replayed === expected.length, `live.replayed is ${replayed}, and ${expected.length} messages lie in between`)
    checkSameIds(idsOf(stream.tape).slice(0, expected.length), expected, `the replay after ${after}`)
    checkReceipt(stream.first('live'), after, expected)
  },

  async 'last-event-id'(server) {
    const first = await server.openLive('ws', ALL)
    const messages = await server.expectMore(first, SOME)
    const [from, next] = idsOf(messages)
    for (const transport of jsonTransports) {
      const resumed = await server.openLive(transport, `${ALL}&since=now`, undefined, { 'last-event-id': from })
      check(
        resumed.tape[0]?.id === next,
        `${transport} with Last-Event-ID ${from} and since=now begins with ${resumed.tape[0]?.id}, and must with ${next}`,
      )
    }
    const empty = await server.openLive('sse', `${ALL}&since=${from}`, undefined, { 'last-event-id': '' })
    check(empty.tape[0]?.id === next, `with an empty Last-Event-ID and since=${from} the first message is ${empty.tape[0]?.id}`)
    await checkGap(server, server.open('sse', ALL, 'yesterday'), 'epoch', null)
  },

  async 'gap-epoch'(server, transport) {
    const stream = server.open(transport, ALL, 'zzzzzz9.7')
    await checkGap(server, stream, 'epoch', 'zzzzzz9.7')
    check(
      stream.first('gap')?.through === stream.first('hello')?.oldest,
      `gap.through is ${stream.first('gap')?.through}, and hello.oldest ${stream.first('hello')?.oldest}`,
    )
  },

  async 'gap-ahead'(server, transport) {
    const end = String((await server.openLive('ws', ALL)).first('hello')?.end)
    const [epoch, seq] = end.split('.')
    const ahead = `${epoch}.${Number(seq) + FAR_AHEAD}`
    const stream = server.open(transport, ALL, ahead)
    await checkGap(server, stream, 'ahead', ahead)
    check(stream.first('live')?.replayed === 0, `live.replayed is ${stream.first('live')?.replayed}`)
  },

  async heartbeat(server, transport) {
    const first = await server.openLive('ws', ALL)
    const [from] = await server.expectMore(first, SOME)
    const stream = await server.openLive(transport, `${ALL}&heartbeat=${HEARTBEAT_S}`, from?.id)
    await server.expectMore(stream)
    const seen = stream.received.length
    await stream.until(() => stream.received.slice(seen).some(({ type }) => type === 'heartbeat'))
    const at = stream.received.findIndex(({ type }, index) => index >= seen && type === 'heartbeat')
    check(at >= 0, `no heartbeat came within ${WAIT_MS / 1_000} s with heartbeat=${HEARTBEAT_S}`)
    const sent = stream.received.slice(0, at).filter(({ message }) => 'prev' in message)
    const { message } = stream.received[at] as Received
    check(message.sent === sent.length, `heartbeat.sent is ${message.sent}, and ${sent.length} messages of the tape came before`)
    const [last, id] = [String(sent.at(-1)?.message.id), String(message.id)]
    check(!isAfter(last, id), `heartbeat.id is ${id}, and ${last} came before`)
    const back = await server.openLive(transport, ALL, id)
    const expected = idsOf(await storedBetween(server, id, newestOf(back)))
    checkSameIds(idsOf(back.tape).slice(0, expected.length), expected, `a resume after the heartbeat ${id}`)
  },

  async seals(server) {
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
    check(stream.tape.some(isWhole), `${BLOCKS} blocks were sealed, and no seal came of one after ${first}`)
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
        check(types[index] === 'part' || published.has(key), `the seal ${message.id} lists ${key}, which no message before has`)
      check(
        count === keys.length && types.length === keys.length,
        `the seal ${message.id} has ${keys.length} keys, ${types.length} types and the count ${count}`,
      )
      const expected = lineDigest(keys)
      check(digest === expected, `the digest of the seal ${message.id} is ${digest}, and of its keys ${expected}`)
    }
  },

  async 'sealed-view'(server, transport) {
    const stream = await server.openLive(transport, `${ALL}&stage=sealed`)
    const witness = await server.openLive('ws', ALL)
    const made = await server.expectMore(witness, SOME)
    await server.expectSeal(stream)
    const sealAt = stream.tape.findIndex(({ type }) => type === 'seal')
    const sealMessage = stream.tape[sealAt] as JudgedMessage
    const facts = stream.tape.slice(0, sealAt).filter(({ key }) => key !== undefined)
    for (const fact of facts)
      check((fact as { stage?: string }).stage === 'sealed', `${fact.id} has the stage ${(fact as { stage?: string }).stage}`)
    // A part is in the message that it is a part of.
    const expected = (sealMessage.types ?? []).flatMap((type, index) => (type === 'part' ? [] : `${sealMessage.id}.${index + 1}`))
    checkSameIds(idsOf(facts).slice(-expected.length), expected, 'the facts before the seal')
    // On its own the chain may seal only a part of them yet.
    const sealed = server.control.seal ? made.filter(({ key }) => key !== undefined) : []
    check(facts.length >= sealed.length, `${sealed.length} facts were sealed, and ${facts.length} came`)
    const resumed = await server.openLive(transport, `${ALL}&stage=sealed`, expected[0])
    const wanted = [...expected.slice(1), sealMessage.id]
    checkSameIds(idsOf(resumed.tape).slice(0, wanted.length), wanted, `a resume after ${expected[0]}`)
  },

  async restart(server, transport) {
    const { restart } = server.control
    if (!restart) throw new NotApplicable('it needs control: restart')
    const stream = await server.openLive(transport, ALL)
    await server.expectMore(stream, SOME)
    const idle = server.open('ws', '')
    await server.expectMessage(idle, 'hello')
    const restarted = restart()
    for (const one of [stream, idle]) await one.until(() => one.end !== null)
    await server.expectMessage(idle, 'bye', 'a connection without a subscription got no bye')
    checkClose(idle, 'going_away')
    const bye = await server.expectMessage(stream, 'bye')
    check(bye.reason === 'going_away' && typeof bye.retry_ms === 'number', `the bye is ${JSON.stringify(bye)}`)
    if (transport === 'ws') checkClose(stream, 'going_away')
    await restarted
    const back = await server.openLive(transport, ALL, String(bye.id))
    check(back.first('gap') === undefined, `after the restart a gap came: ${JSON.stringify(back.first('gap'))}`)
    await server.expectMore(back)
    const expected = idsOf(await storedBetween(server, String(bye.id), newestOf(back)))
    checkSameIds(idsOf(back.tape).slice(0, expected.length), expected, `a resume after the bye ${bye.id}`)
    check(isAfter(String(back.tape[0]?.id), newestOf(stream)), `${back.tape[0]?.id} was sent again`)
  },
} satisfies ServerScenarios
