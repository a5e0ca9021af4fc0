import { farewells } from '../../src/protocol/close-codes.ts'
import { request } from '../integration/http/raw-connection.ts'
import { handshake } from '../integration/http/raw-websocket-client.ts'
import type { Dice } from '../simulation/seeded-random.ts'
import { Connection, type Over } from './crowd-connection.ts'
import { CHANGING_SYMBOLS, EVERYTHING, type Offer, pick } from './crowd-selections.ts'
import { AnswerReader, type Carrier, call, FramesReader, type Way } from './crowd-stream-readers.ts'
import { pranks } from './hostile-requests.ts'
import type { TookOne } from './latency-recorder.ts'
import { orderOfPosition, type Story } from './received-history.ts'

/** How each of the crowd behaves, until it is over. */

/** Where one of them stands, and with whom it speaks of what it hears. */
type Setting = {
  readonly way: Way
  readonly dice: Dice
  readonly pool: readonly [string, ...string[]]
  readonly offer: Offer
  readonly story: Story
  readonly over: AbortSignal
  readonly took: TookOne
  /** Whether it stops reading now and then. */
  readonly stalls: boolean
  /** Counts how a connection ended that was not ended by us. */
  readonly count: (what: string) => void
}

const carriersHeard = ['ws', 'sse', 'sse-named', 'ndjson'] as const
/** How many of those who stop reading for a while want what is told fastest. */
const EVERYTHING_PERCENT = 40

/** Resolves when the time has passed, or when it is over. */
const pause = (ms: number, { over }: Setting): Promise<void> =>
  new Promise((resolve) => {
    if (over.aborted) return resolve()
    const done = () => {
      clearTimeout(timer)
      over.removeEventListener('abort', done)
      resolve()
    }
    const timer = setTimeout(done, ms)
    over.addEventListener('abort', done)
  })

const whenOver = ({ over }: Setting): Promise<void> =>
  new Promise((resolve) => {
    if (over.aborted) resolve()
    else over.addEventListener('abort', () => resolve())
  })

/** Stays for so long, or until the other side ends it; then how it ended, and null while it has not. */
async function stay(connection: Connection, ms: number | null, setting: Setting): Promise<Over | null> {
  const time = ms === null ? whenOver(setting) : pause(ms, setting)
  const over = await Promise.race([connection.over, time.then(() => null)])
  if (over) note(over, setting)
  return over
}

/**
 * Whoever is sent away without having asked for it read too slowly or did not answer, and was told so. Who reads nothing
 * for longer than a farewell waits may find the connection cut, and its last word with it.
 */
function note({ bye, code }: Over, { story, count, over, stalls }: Setting): void {
  if (over.aborted) return
  const reason = bye?.reason
  if (reason === undefined && code === null && stalls) return count('cut')
  if (reason !== 'too_slow' && reason !== 'no_pong') return story.fault(`ended with ${code}, ${JSON.stringify(bye)}`)
  if (code !== null && code !== farewells[reason]) story.fault(`was ${reason}, and was closed with ${code}`)
  count(`${reason} ${code ?? 'without a code'}`)
}

type Habit = {
  /** How long it stays; null for all the time. */
  readonly stays: (dice: Dice) => number | null
  /** How long it reads nothing before it goes on, where it does so at all. */
  readonly stalls?: (dice: Dice) => number
}

const leavings = ['reset', 'close', 'half', 'farewell'] as const

/** Listens, leaves somehow, and comes back with the last position: over and over, as its habit is. */
const listener =
  ({ stays, stalls }: Habit) =>
  async (setting: Setting): Promise<void> => {
    const { way, dice, story, over, took } = setting
    const query = stalls && dice.chance(EVERYTHING_PERCENT) ? EVERYTHING : dice.pick(setting.pool)
    const carrier = dice.pick(carriersHeard)
    while (!over.aborted) {
      const connection = new Connection(way, story, {
        ...{ carrier, query, heartbeatS: dice.int(1, 15), byHeader: dice.chance(50), snapshot: dice.chance(10) },
        ...(stalls || query.includes('stage=sealed') ? {} : { took }),
      })
      let ended = await stay(connection, stays(dice), setting)
      if (!ended && stalls && !over.aborted) {
        connection.socket.pause()
        await pause(stalls(dice), setting)
        connection.socket.resume()
        ended = await stay(connection, stays(dice), setting)
      }
      if (!ended) await connection.leave(over.aborted ? 'close' : dice.pick(leavings))
      await pause(dice.int(50, 3_000), setting)
    }
  }

/** Reads lines, and comes back as somebody new. */
async function reader(setting: Setting): Promise<void> {
  const { way, dice, story, over } = setting
  while (!over.aborted) {
    const query = `symbols=${pick(dice, setting.offer.symbols)}`
    const connection = new Connection(way, story, { carrier: 'text', query, heartbeatS: 15 })
    if (!(await stay(connection, dice.int(5_000, 60_000), setting))) await connection.leave('reset')
    await pause(dice.int(50, 3_000), setting)
  }
}

/** Asks for everything, and never reads any of it. */
async function mute(setting: Setting): Promise<void> {
  const { way, dice, over } = setting
  const carrier: Carrier = dice.pick(carriersHeard)
  const query = `${EVERYTHING}&format=${carrier === 'ndjson' ? 'ndjson' : 'sse'}`
  while (!over.aborted) {
    const socket = call(way)
    socket.on('error', () => socket.destroy())
    socket.write(carrier === 'ws' ? handshake(`/v1/ws?${EVERYTHING}`) : request(`GET /v1/stream?${query}`))
    await pause(dice.int(40_000, 90_000), setting)
    socket.destroy()
  }
}

/** Says too much at once, is sent away, and comes back with its position. */
async function flooder(setting: Setting): Promise<void> {
  const { way, dice, story, over, count } = setting
  const query = dice.pick(setting.pool)
  while (!over.aborted) {
    const connection = new Connection(way, story, { carrier: 'ws', query, heartbeatS: 15 })
    await Promise.race([connection.live, connection.over])
    if (await stay(connection, dice.int(500, 8_000), setting)) continue
    for (let said = 0; said < FLOOD && !over.aborted; said += 1) connection.say({ type: 'ping', req: said })
    const ended = over.aborted ? null : await Promise.race([connection.over, whenOver(setting).then(() => null)])
    if (!ended) await connection.leave('close')
    else if (
      ended.bye?.reason !== 'too_many_messages' ||
      (ended.code !== null && ended.code !== farewells.too_many_messages)
    )
      story.fault(`said ${FLOOD} things at once, and ended with ${ended.code} ${JSON.stringify(ended.bye)}`)
    else count(`too_many_messages ${ended.code ?? 'without a code'}`)
    await pause(dice.int(200, 3_000), setting)
  }
}

const FLOOD = 120

/** Changes what it hears over and over, and makes mistakes between; each selection is a piece of its story. */
async function changer(setting: Setting): Promise<void> {
  const { way, dice, story, over } = setting
  const symbols = new Set([pick(dice, setting.offer.symbols.slice(0, CHANGING_SYMBOLS))])
  let types: string | null = null
  let minValue: string | null = null
  const queryOf = (): string => {
    const query = new URLSearchParams({ symbols: [...symbols].toSorted().join(',') })
    if (types !== null) query.set('types', types)
    if (minValue !== null) query.set('min_value', minValue)
    return query.toString()
  }
  let req = 0
  while (!over.aborted) {
    const connection = new Connection(way, story, { carrier: 'ws', query: queryOf(), heartbeatS: dice.int(1, 15) })
    await Promise.race([connection.live, connection.over, whenOver(setting)])
    const changes = dice.int(3, 20)
    let ended: Over | null = null
    for (let change = 0; change < changes && !ended && !over.aborted; change += 1) {
      req += 1
      const symbol = pick(dice, setting.offer.symbols.slice(0, CHANGING_SYMBOLS))
      const what = dice.int(0, 4)
      if (what === 0) {
        await connection.ask({ type: 'nonsense', req }, 'error', () => {})
      } else if (what === 1 && symbols.size > 1 && symbols.has(symbol)) {
        await connection.ask({ type: 'unsubscribe', symbols: [symbol], req }, 'unsubscribed', () => {
          symbols.delete(symbol)
          // It names no position: the piece before ends with what was heard, and so begins the next.
          story.begin(queryOf(), null)
        })
      } else {
        const others = what === 2
        const nextTypes = others ? dice.pick([null, '*', 'transfer']) : types
        const nextValue = others ? dice.pick([null, '1000']) : minValue
        const options = others ? { types: nextTypes?.split(',') ?? null, min_value: nextValue } : { symbols: [symbol] }
        await connection.ask(
          { type: 'subscribe', snapshot: dice.chance(10), ...options, req },
          'subscribed',
          ({ id }) => {
            if (!others) symbols.add(symbol)
            types = nextTypes
            minValue = nextValue
            story.pass(id ?? '')
            story.begin(queryOf(), orderOfPosition(id ?? ''))
          },
        )
      }
      ended = await stay(connection, dice.int(150, 1_500), setting)
    }
    if (!ended) await connection.leave(over.aborted ? 'close' : dice.pick(leavings))
    await pause(dice.int(50, 3_000), setting)
  }
}

/** Plays one prank after the other, and stays for none to be over. */
async function prankster(setting: Setting): Promise<void> {
  const { way, dice, story, over } = setting
  while (!over.aborted) {
    const { says, code } = dice.pick(pranks)
    const socket = call(way)
    const closed = new Promise<void>((resolve) => socket.once('close', () => resolve()))
    const frames = new FramesReader({
      text: () => {},
      ping: () => {},
      close: (payload) => {
        const told = payload.readUInt16BE(0)
        if (code !== undefined && told !== code) story.fault(`played a prank of ${code}, and was closed with ${told}`)
      },
    })
    const answer = new AnswerReader(frames, () => {})
    socket.on('data', (came: Buffer) => {
      if (code !== undefined) answer.read(came)
    })
    socket.on('end', () => socket.end())
    socket.on('error', () => socket.destroy())
    for (const piece of says(dice)) socket.write(piece)
    await Promise.race([closed, pause(dice.int(20, 4_000), setting)])
    if (dice.chance(50)) socket.resetAndDestroy()
    else socket.destroy()
    await pause(dice.int(500, 4_000), setting)
  }
}

type Character = {
  readonly name: string
  readonly percent: number
  readonly live: (setting: Setting) => Promise<void>
}

/** Of a hundred, so many are such. */
const characters: readonly Character[] = [
  { name: 'steady', percent: 35, live: listener({ stays: () => null }) },
  { name: 'comer', percent: 25, live: listener({ stays: (dice) => dice.int(200, 20_000) }) },
  {
    name: 'staller',
    percent: 12,
    live: listener({ stays: (dice) => dice.int(500, 6_000), stalls: (dice) => dice.int(500, 40_000) }),
  },
  { name: 'changer', percent: 8, live: changer },
  { name: 'prankster', percent: 6, live: prankster },
  { name: 'mute', percent: 5, live: mute },
  { name: 'reader', percent: 5, live: reader },
  { name: 'flooder', percent: 4, live: flooder },
]

export function characterOf(nth: number): Character {
  let left = nth % 100
  for (const character of characters) {
    left -= character.percent
    if (left < 0) return character
  }
  throw new Error('a hundred of them are more than a hundred')
}
