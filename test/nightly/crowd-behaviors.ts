import { closeCodes } from '../../src/protocol/close-codes.ts'
import { formatRequest } from '../integration/http/raw-connection.ts'
import { handshakeRequest } from '../integration/http/raw-websocket-client.ts'
import type { SeededRandom } from '../simulation/seeded-random.ts'
import { type ConnectionEnd, CrowdConnection } from './crowd-connection.ts'
import { CHANGING_SYMBOL_COUNT, EVERYTHING_QUERY, pickFrom, type SelectionChoices } from './crowd-selections.ts'
import {
  type CrowdTransport,
  connectToRelay,
  FramesReader,
  type RelayAddress,
  ResponseReader,
} from './crowd-stream-readers.ts'
import { hostileRequests } from './hostile-requests.ts'
import type { RecordLatency } from './latency-recorder.ts'
import { orderOfPosition, type ReceivedHistory } from './received-history.ts'

/** How each of the crowd behaves, until it is over. */

/** Where one of them stands, and with whom it speaks of what it hears. */
type ClientContext = {
  readonly way: RelayAddress
  readonly random: SeededRandom
  readonly pool: readonly [string, ...string[]]
  readonly offer: SelectionChoices
  readonly story: ReceivedHistory
  readonly stopSignal: AbortSignal
  readonly recordLatency: RecordLatency
  /** Whether it stops reading now and then. */
  readonly isStaller: boolean
  /** Counts how a connection ended that was not ended by us. */
  readonly countEnding: (action: string) => void
}

const streamTransports = ['ws', 'sse', 'sse-named', 'ndjson'] as const
/** How many of those who stop reading for a while want what is told fastest. */
const EVERYTHING_PERCENT = 40

/** Resolves when the time has passed, or when it is over. */
const pause = (ms: number, { stopSignal }: ClientContext): Promise<void> =>
  new Promise((resolve) => {
    if (stopSignal.aborted) return resolve()
    const done = () => {
      clearTimeout(timer)
      stopSignal.removeEventListener('abort', done)
      resolve()
    }
    const timer = setTimeout(done, ms)
    stopSignal.addEventListener('abort', done)
  })

const untilStopped = ({ stopSignal }: ClientContext): Promise<void> =>
  new Promise((resolve) => {
    if (stopSignal.aborted) resolve()
    else stopSignal.addEventListener('abort', () => resolve())
  })

/** Stays for so long, or until the other side ends it; then how it ended, and null while it has not. */
async function stayFor(
  connection: CrowdConnection,
  ms: number | null,
  context: ClientContext,
): Promise<ConnectionEnd | null> {
  const waiting = ms === null ? untilStopped(context) : pause(ms, context)
  const over = await Promise.race([connection.ended, waiting.then(() => null)])
  if (over) checkEnding(over, context)
  return over
}

/**
 * Whoever is sent away without having asked for it read too slowly or did not answer, and was told so. Who reads nothing
 * for longer than a farewell waits may find the connection cut, and its last word with it.
 */
function checkEnding({ bye, code }: ConnectionEnd, { story, countEnding, stopSignal, isStaller }: ClientContext): void {
  if (stopSignal.aborted) return
  const reason = bye?.reason
  if (reason === undefined && code === null && isStaller) return countEnding('cut')
  if (reason !== 'too_slow' && reason !== 'no_pong') return story.addFault(`ended with ${code}, ${JSON.stringify(bye)}`)
  if (code !== null && code !== closeCodes[reason]) story.addFault(`was ${reason}, and was closed with ${code}`)
  countEnding(`${reason} ${code ?? 'without a code'}`)
}

type ListeningHabit = {
  /** How long it stays; null for all the time. */
  readonly stayMs: (random: SeededRandom) => number | null
  /** How long it reads nothing before it goes on, where it does so at all. */
  readonly stallMs?: (random: SeededRandom) => number
}

const leaveModes = ['reset', 'close', 'half', 'farewell'] as const

/** Listens, leaves somehow, and comes back with the last position: over and over, as its habit is. */
const listeningClient =
  ({ stayMs, stallMs }: ListeningHabit) =>
  async (context: ClientContext): Promise<void> => {
    const { way, random, story, stopSignal, recordLatency } = context
    const query = stallMs && random.chance(EVERYTHING_PERCENT) ? EVERYTHING_QUERY : random.pick(context.pool)
    const transport = random.pick(streamTransports)
    while (!stopSignal.aborted) {
      const connection = new CrowdConnection(way, story, {
        ...{
          transport,
          query,
          heartbeatS: random.int(1, 15),
          resumesByHeader: random.chance(50),
          snapshot: random.chance(10),
        },
        ...(stallMs || query.includes('stage=sealed') ? {} : { recordLatency }),
      })
      let ended = await stayFor(connection, stayMs(random), context)
      if (!ended && stallMs && !stopSignal.aborted) {
        connection.socket.pause()
        await pause(stallMs(random), context)
        connection.socket.resume()
        ended = await stayFor(connection, stayMs(random), context)
      }
      if (!ended) await connection.leave(stopSignal.aborted ? 'close' : random.pick(leaveModes))
      await pause(random.int(50, 3_000), context)
    }
  }

/** Reads lines, and comes back as somebody new. */
async function textReader(context: ClientContext): Promise<void> {
  const { way, random, story, stopSignal } = context
  while (!stopSignal.aborted) {
    const query = `symbols=${pickFrom(random, context.offer.symbols)}`
    const connection = new CrowdConnection(way, story, { transport: 'text', query, heartbeatS: 15 })
    if (!(await stayFor(connection, random.int(5_000, 60_000), context))) await connection.leave('reset')
    await pause(random.int(50, 3_000), context)
  }
}

/** Asks for everything, and never reads any of it. */
async function nonReader(context: ClientContext): Promise<void> {
  const { way, random, stopSignal } = context
  const transport: CrowdTransport = random.pick(streamTransports)
  const query = `${EVERYTHING_QUERY}&format=${transport === 'ndjson' ? 'ndjson' : 'sse'}`
  while (!stopSignal.aborted) {
    const socket = connectToRelay(way)
    socket.on('error', () => socket.destroy())
    socket.write(
      transport === 'ws' ? handshakeRequest(`/v1/ws?${EVERYTHING_QUERY}`) : formatRequest(`GET /v1/stream?${query}`),
    )
    await pause(random.int(40_000, 90_000), context)
    socket.destroy()
  }
}

/** Says too much at once, is sent away, and comes back with its position. */
async function floodingClient(context: ClientContext): Promise<void> {
  const { way, random, story, stopSignal, countEnding } = context
  const query = random.pick(context.pool)
  while (!stopSignal.aborted) {
    const connection = new CrowdConnection(way, story, { transport: 'ws', query, heartbeatS: 15 })
    await Promise.race([connection.live, connection.ended])
    if (await stayFor(connection, random.int(500, 8_000), context)) continue
    for (let sent = 0; sent < FLOOD_MESSAGES && !stopSignal.aborted; sent += 1)
      connection.sendJson({ type: 'ping', req: sent })
    const ended = stopSignal.aborted
      ? null
      : await Promise.race([connection.ended, untilStopped(context).then(() => null)])
    if (!ended) await connection.leave('close')
    else if (
      ended.bye?.reason !== 'too_many_messages' ||
      (ended.code !== null && ended.code !== closeCodes.too_many_messages)
    )
      story.addFault(`said ${FLOOD_MESSAGES} things at once, and ended with ${ended.code} ${JSON.stringify(ended.bye)}`)
    else countEnding(`too_many_messages ${ended.code ?? 'without a code'}`)
    await pause(random.int(200, 3_000), context)
  }
}

const FLOOD_MESSAGES = 120

/** Changes what it hears over and over, and makes mistakes between; each selection is a piece of its story. */
async function selectionChanger(context: ClientContext): Promise<void> {
  const { way, random, story, stopSignal } = context
  const symbols = new Set([pickFrom(random, context.offer.symbols.slice(0, CHANGING_SYMBOL_COUNT))])
  let types: string | null = null
  let minValue: string | null = null
  const queryOf = (): string => {
    const query = new URLSearchParams({ symbols: [...symbols].toSorted().join(',') })
    if (types !== null) query.set('types', types)
    if (minValue !== null) query.set('min_value', minValue)
    return query.toString()
  }
  let req = 0
  while (!stopSignal.aborted) {
    const connection = new CrowdConnection(way, story, {
      transport: 'ws',
      query: queryOf(),
      heartbeatS: random.int(1, 15),
    })
    await Promise.race([connection.live, connection.ended, untilStopped(context)])
    const changes = random.int(3, 20)
    let ended: ConnectionEnd | null = null
    for (let change = 0; change < changes && !ended && !stopSignal.aborted; change += 1) {
      req += 1
      const symbol = pickFrom(random, context.offer.symbols.slice(0, CHANGING_SYMBOL_COUNT))
      const action = random.int(0, 4)
      if (action === 0) {
        await connection.sendRequest({ type: 'nonsense', req }, 'error', () => {})
      } else if (action === 1 && symbols.size > 1 && symbols.has(symbol)) {
        await connection.sendRequest({ type: 'unsubscribe', symbols: [symbol], req }, 'unsubscribed', () => {
          symbols.delete(symbol)
          // It names no position: the piece before ends with what was heard, and so begins the next.
          story.beginSegment(queryOf(), null)
        })
      } else {
        const others = action === 2
        const nextTypes = others ? random.pick([null, '*', 'transfer']) : types
        const nextValue = others ? random.pick([null, '1000']) : minValue
        const options = others ? { types: nextTypes?.split(',') ?? null, min_value: nextValue } : { symbols: [symbol] }
        await connection.sendRequest(
          { type: 'subscribe', snapshot: random.chance(10), ...options, req },
          'subscribed',
          ({ id }) => {
            if (!others) symbols.add(symbol)
            types = nextTypes
            minValue = nextValue
            story.passPosition(id ?? '')
            story.beginSegment(queryOf(), orderOfPosition(id ?? ''))
          },
        )
      }
      ended = await stayFor(connection, random.int(150, 1_500), context)
    }
    if (!ended) await connection.leave(stopSignal.aborted ? 'close' : random.pick(leaveModes))
    await pause(random.int(50, 3_000), context)
  }
}

/** Plays one prank after the other, and stays for none to be over. */
async function hostileClient(context: ClientContext): Promise<void> {
  const { way, random, story, stopSignal } = context
  while (!stopSignal.aborted) {
    const { bytesFor, code } = random.pick(hostileRequests)
    const socket = connectToRelay(way)
    const closed = new Promise<void>((resolve) => socket.once('close', () => resolve()))
    const frames = new FramesReader({
      text: () => {},
      ping: () => {},
      close: (payload) => {
        const published = payload.readUInt16BE(0)
        if (code !== undefined && published !== code)
          story.addFault(`played a prank of ${code}, and was closed with ${published}`)
      },
    })
    const answer = new ResponseReader(frames, () => {})
    socket.on('data', (came: Buffer) => {
      if (code !== undefined) answer.read(came)
    })
    socket.on('end', () => socket.end())
    socket.on('error', () => socket.destroy())
    for (const piece of bytesFor(random)) socket.write(piece)
    await Promise.race([closed, pause(random.int(20, 4_000), context)])
    if (random.chance(50)) socket.resetAndDestroy()
    else socket.destroy()
    await pause(random.int(500, 4_000), context)
  }
}

type ClientBehavior = {
  readonly name: string
  readonly percent: number
  readonly run: (context: ClientContext) => Promise<void>
}

/** Of a hundred, so many are such. */
const behaviors: readonly ClientBehavior[] = [
  { name: 'steady', percent: 35, run: listeningClient({ stayMs: () => null }) },
  { name: 'comer', percent: 25, run: listeningClient({ stayMs: (random) => random.int(200, 20_000) }) },
  {
    name: 'staller',
    percent: 12,
    run: listeningClient({ stayMs: (random) => random.int(500, 6_000), stallMs: (random) => random.int(500, 40_000) }),
  },
  { name: 'changer', percent: 8, run: selectionChanger },
  { name: 'prankster', percent: 6, run: hostileClient },
  { name: 'mute', percent: 5, run: nonReader },
  { name: 'reader', percent: 5, run: textReader },
  { name: 'flooder', percent: 4, run: floodingClient },
]

export function behaviorOf(nth: number): ClientBehavior {
  let left = nth % 100
  for (const character of behaviors) {
    left -= character.percent
    if (left < 0) return character
  }
  throw new Error('a hundred of them are more than a hundred')
}
